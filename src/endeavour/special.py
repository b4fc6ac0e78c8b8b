"""The four special token ids every part agrees on. Imports nothing."""

PAD = 0
UNK = 1
BOS = 2
EOS = 3
