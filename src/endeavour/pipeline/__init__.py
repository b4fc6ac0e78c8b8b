"""What training needs around its loop: data, preflight, validation, final weights, fine-tuning,
distillation and scores."""
