"""The pages that people see: search, ask, trends, doubtful facts, about."""
