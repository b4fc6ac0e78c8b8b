"""What training computes between matrix products, in C, where the machine has a compiler for it.

Knows tensors on a CPU; not models. Without a compiler torch's operations compute the same, several times slower.
"""
