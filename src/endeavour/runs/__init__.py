"""Runs on disk as objects: found by name, opened, locked, written and described."""
