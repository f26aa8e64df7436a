"""A model folder opened for use, with either engine."""
