"""How good a model is: every component of every fact asked in turn, ranked or measured, by one protocol."""
