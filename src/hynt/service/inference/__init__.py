"""The process that holds the model, and how the front speaks to it."""
