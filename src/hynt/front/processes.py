"""A verb in several processes of this machine, called from a program: each runs the command, and the first one's
answer comes back.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from hynt.errors import DataError, UsageError


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
