"""Search for the best translation under a model; knows ids, not text."""
