"""From source lines to translations, scores and reports; it decodes with a model and never trains one."""
