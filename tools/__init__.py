"""What makes the documentation: its site, its reference, and the pictures and figures in it."""
