"""`python -m hynt` is the same as `hynt`."""

from hynt.cli.entry import main

if __name__ == "__main__":
    main()
