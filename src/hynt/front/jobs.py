"""How a job that a program calls is run: its progress, its processes, and its temporary folder."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.progress import SILENT, Progress, ShownProgress, in_notebook

Watching = bool | Progress | None
"""Whether to show how a job goes: True, False, or None for in a terminal or a notebook; or what to report it to."""


@contextmanager
def watched(progress: Watching, pause: float = 5.0) -> Iterator[Progress]:
    """The progress that a job is to report to; `pause` is between plain lines."""
    if progress is True or (progress is None and (in_notebook() or sys.stderr.isatty())):
        with ShownProgress(pause=pause) as shown:
            yield shown
    else:
        yield progress if isinstance(progress, Progress) else SILENT


class TemporaryFolder:
    """Removed when the last object that holds it is gone, or the program ends."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def options(**given: Any) -> list[str]:
    """Arguments of a call as options of the command: `train_on="train"` is `--train-on train`; what is None or False is
    left out, and an option is repeated for each item of a list.
    """
    found: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, (list, tuple)) else [] if value is None or value is False else [value]
        for one in values:
            found += [option] if one is True else [option, str(one)]
    return found


def in_processes(arguments: Sequence[str], processes: int, lost: str, advice: str) -> dict[str, Any]:
    """What the command prints with `--json`. Its refusal is raised here as the error it is."""
    from hynt.distributed.launch import launch

    with redirect_stdout(io.StringIO()) as printed:
        code = launch([*arguments, "--json"], processes, lost, advice)
    lines = printed.getvalue().splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if code:
        error = found.get("error") or {"what": f"the processes left with exit code {code}.", "where": "", "advice": ""}
        kind = UsageError if code == UsageError.exit_code else DataError
        raise kind(error["what"], where=error["where"], advice=error["advice"])
    return found
