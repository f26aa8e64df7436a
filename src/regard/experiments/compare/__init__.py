"""Several models on the same text, tokenizer, batches and budget: one table, one page."""
