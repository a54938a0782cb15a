"""The report of a run: one page, a file per part of it."""
