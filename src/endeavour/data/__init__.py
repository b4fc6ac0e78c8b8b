"""From parallel text to memory-mapped id arrays: obtain, clean, tokenise, encode. Knows no model."""
