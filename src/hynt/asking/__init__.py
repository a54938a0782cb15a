"""Asking a run: from a question as a person writes it to an answer in words."""
