"""Tokenized text on disk, memory-mapped, and how it gets there."""
