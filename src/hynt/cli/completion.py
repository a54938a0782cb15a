"""What a shell offers after Tab: models, presets, formats, and the graphs and runs that lie nearby.

No torch here: a key is answered at once.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hynt.files import MANIFEST_NAME

_PRESETS = Path(__file__).parents[1] / "training" / "presets"
_WEIGHTS = "weights.safetensors"  # as `hynt.runs.run_folder` names them, which needs torch
_DEPTH, _MOST = 2, 500
"""How many folders deep graphs and runs are looked for, and in how many folders."""


def offering_values(command: Any) -> Any:
    """The command, or group of commands, with values for what takes one of a few."""
    for one in getattr(command, "commands", {}).values():
        offering_values(one)
    for parameter in command.params:
        offered = _offered(parameter)
        if offered is not None:
            parameter._custom_shell_complete = _matching(offered)
    return command


def _offered(parameter: Any) -> Callable[[Any, str], Iterator[str]] | None:
    by_option = {"--model": _models, "--preset": _presets, "--format": _formats}
    for name in parameter.opts:
        if name in by_option:
            return by_option[name]
    kinds = set((parameter.metavar or "").strip("[]…").split("|"))
    if not kinds & {"GRAPH", "RUN"} or "--out" in parameter.opts:
        return None
    return lambda _, begun: _folders(begun, graphs="GRAPH" in kinds, runs="RUN" in kinds)


def _matching(offered: Callable[[Any, str], Iterator[str]]) -> Callable[[Any, Any, str], list[str]]:
    return lambda context, _, begun: sorted({one for one in offered(context, begun) if one.startswith(begun)})


def _models(context: Any, begun: str) -> Iterator[str]:  # noqa: ARG001 - as all of these are called
    return (path.stem for path in _PRESETS.glob("*.toml"))


def _presets(context: Any, begun: str) -> Iterator[str]:  # noqa: ARG001
    model = context.params.get("model")
    for path in _PRESETS.glob("*.toml"):
        if model in (None, path.stem):
            yield from tomllib.loads(path.read_text(encoding="utf-8"))


def _formats(context: Any, begun: str) -> Iterator[str]:  # noqa: ARG001
    from hynt.formats.registry import FORMATS

    return iter(FORMATS)


def _folders(begun: str, *, graphs: bool, runs: bool) -> Iterator[str]:
    """Graphs and runs below what is typed so far, as one would type them."""
    yield "world"
    start, looked = os.path.dirname(begun), 0  # noqa: PTH120 - as typed, `~` and `..` included
    waiting = [(start, 0)]
    while waiting and looked < _MOST:
        where, depth = waiting.pop(0)
        looked += 1
        try:
            inner = sorted(entry.name for entry in os.scandir(where or ".") if entry.is_dir() and entry.name[0] != ".")
        except OSError:
            continue
        for name in inner:
            path = os.path.join(where, name)  # noqa: PTH118
            if not Path(path, MANIFEST_NAME).is_file():
                waiting += [(path, depth + 1)] if depth + 1 < _DEPTH else []
            elif runs if Path(path, _WEIGHTS).exists() else graphs:
                yield path
