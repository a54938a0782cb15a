"""How a result is told: as text for people, or with `--json` as one JSON object; with `--save` to a file as well.

What the data says never reaches a terminal raw: control characters are shown, not obeyed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hynt.files import check_place, write_whole
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else there.")
]
SaveFile: TypeAlias = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Write the JSON object to this file as well.")
]

_WIDTH_OF_FILES = 160  # columns where standard output is no terminal


def deliver(result: Mapping[str, Any], *, as_json: bool, save: Path | None, text: Callable[[Console], None]) -> None:
    """Save the result if asked to, then print it as JSON or as text."""
    if save is not None:
        write_whole(save, _encoded(result, indent=2))
    if as_json:
        sys.stdout.flush()
        sys.stdout.buffer.write(_encoded(result))
        sys.stdout.buffer.flush()
    else:
        text(console())


def check_save(save: Path | None) -> None:
    """Refuse a place that cannot be written to before a long job, not after it."""
    if save is not None:
        check_place(save, "--save")


def note_to_person(text: str) -> None:
    """On standard error, so that output stays what it is."""
    print(f"note: {visible(text)}", file=sys.stderr, flush=True)


def console() -> Console:
    """Standard output for people: neither markup nor emoji codes in the data mean anything there."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False, width=width)


def _encoded(result: Mapping[str, Any], indent: int | None = None) -> bytes:
    """UTF-8; a stray byte of a file name, which Python holds as a lone surrogate, stays an escape that JSON knows."""
    text = json.dumps(result, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
    return text.encode("utf-8", "backslashreplace")
