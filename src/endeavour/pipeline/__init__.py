"""What training needs around its loop: data, a rehearsal, validation, final weights, fine-tuning, distillation, scores."""
