"""Who watches a job that was called from a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hynt.progress import SILENT, Progress, ShownProgress, in_notebook

Watching = bool | Progress | None
"""Whether to show how a job goes: True, False, or None for where somebody looks; or who is to hear it."""


@contextmanager
def watched(progress: Watching, pause: float = 5.0) -> Iterator[Progress]:
    """The progress that a job is to report to; `pause` is between plain lines."""
    if progress is True or (progress is None and (in_notebook() or sys.stderr.isatty())):
        with ShownProgress(pause=pause) as shown:
            yield shown
    else:
        yield progress if isinstance(progress, Progress) else SILENT
