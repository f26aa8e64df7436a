"""Corpora that need no file: a grammar of two languages, and tasks whose answer is computed."""
