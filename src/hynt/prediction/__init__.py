"""Asking a trained run: one question at a time, with probabilities that mean what they say."""
