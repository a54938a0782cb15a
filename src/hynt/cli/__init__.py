"""The command line: one file per verb, and the only room that prints."""
