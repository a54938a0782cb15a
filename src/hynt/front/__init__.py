"""The front door: what a program, a notebook and the command line call in one go. One file per thing to do."""
