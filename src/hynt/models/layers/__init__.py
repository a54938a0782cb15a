"""Layers, tables and questions that at least two models share."""
