"""Scores, significance and statistics of finished translations; models and files are unknown here."""
