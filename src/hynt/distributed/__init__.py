"""One job in several processes: starting them, what they add up, and tables sharded over them."""
