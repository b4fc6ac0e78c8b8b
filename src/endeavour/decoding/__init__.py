"""From sentences to their translations: search and sampling under a model, and the text around them; knows no runs."""
