"""Probabilities and intervals that keep their word: fitted on validation, checked on test."""
