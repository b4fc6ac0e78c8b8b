"""The encoder-decoder Transformer; built on torch only."""
