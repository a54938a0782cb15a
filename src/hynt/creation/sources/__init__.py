"""One file per kind of dump: which lines are wanted, and what a line says."""
