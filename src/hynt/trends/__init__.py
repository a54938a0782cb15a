"""How a number moves over time, by the graph and by a run."""
