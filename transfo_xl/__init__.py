"""Transformer-XL: configuration, model, task heads and tokenizer."""
