"""Models measured on test sets."""
