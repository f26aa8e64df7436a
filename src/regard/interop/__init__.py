"""In and out of the ecosystem: models that others trained, and models for others to use."""
