"""What training computes between matrix products, and steps of decoding, in C, where there is a compiler for it.

Knows tensors on a CPU; not models. Without a compiler torch's operations compute the same, several times slower.
"""
