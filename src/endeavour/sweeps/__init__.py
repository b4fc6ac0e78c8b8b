"""Sweeps: trainings at many points, of a grid or as a search asks for them, and their table."""
