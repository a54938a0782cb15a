"""Builds the embedded graph `world` from five pinned source packages. Not part of the installed package."""
