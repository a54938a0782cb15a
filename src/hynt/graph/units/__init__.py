"""Units and dates: what a number was measured in, and the reference unit it is kept in."""
