"""The door of the `hynt` script. It loads nothing itself, so that Ctrl-C is heard while the rest is still loading."""

from __future__ import annotations

import sys


def main() -> None:
    """Loads the command line and hands over to it."""
    try:
        from hynt.cli.application import main as run
    except KeyboardInterrupt:
        print("interrupted: nothing was begun", file=sys.stderr)
        sys.exit(130)
    run()
