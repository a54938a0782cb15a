"""Tables and pictures of graphs and results."""
