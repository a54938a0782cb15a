"""Facts of a graph that look wrong, each judged by a model that did not see it."""
