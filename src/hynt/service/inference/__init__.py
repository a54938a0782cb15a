"""The process that holds the model, and how the HTTP process speaks to it."""
