"""Many models on one graph, each within the same time."""
