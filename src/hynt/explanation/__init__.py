"""What mattered to an answer."""
