"""A page in which a trained model is watched, questioned and steered, and an HTTP interface for programs."""
