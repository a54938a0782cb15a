"""Answers to whole files of questions, and facts that a graph lacks."""
