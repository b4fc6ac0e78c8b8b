"""Scores, significance and statistics of finished translations, and what a model attends to; knows no runs."""
