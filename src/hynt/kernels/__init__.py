"""Fast forms of what models and losses compute, each beside the plain form it must equal."""
