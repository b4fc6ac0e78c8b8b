"""Training: loss, schedule, checkpoints, the loop. Knows ids and models; not text or scores."""
