"""Runs as folders: settings, checkpoints, opening one, and scoring with it."""
