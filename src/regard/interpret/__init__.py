"""What a model does with a text, made visible: traced once, then drawn, printed or put on a page."""
