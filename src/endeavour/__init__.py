"""Endeavour: an English-German translation training pipeline."""
