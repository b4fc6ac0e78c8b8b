"""From parallel text to memory-mapped id arrays: load, clean, tokenize, encode. Knows no model."""
