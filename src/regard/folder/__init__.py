"""The model folder: its layout, checkpoints, weights and model card."""
