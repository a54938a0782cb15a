"""How a result is told: as text for people, or with `--json` as one JSON object; with `--save` to a file as well.

What the data says never reaches a terminal raw: control characters are shown, not obeyed.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hynt.cli.options import option
from hynt.files import check_place, write_whole
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_FILES = 160  # columns where standard output is no terminal


@dataclass(frozen=True)
class Output:
    """For people, or for a program."""

    as_json: bool = option(False, "Print one JSON object on standard output, and nothing else there.", "--json")

    def deliver(self, result: Mapping[str, Any], text: Callable[[Console], None]) -> None:
        """Print the result as JSON or as text."""
        if self.as_json:
            sys.stdout.flush()
            sys.stdout.buffer.write(_encoded(result))
            sys.stdout.buffer.flush()
        else:
            text(console())


@dataclass(frozen=True)
class SavedOutput(Output):
    """The same, and to a file as well; a place that cannot be written to is refused before a long job."""

    save: Path | None = option(None, "Write the JSON object to this file as well.", metavar="FILE")

    def __post_init__(self) -> None:
        if self.save is not None:
            check_place(self.save, "--save")

    def deliver(self, result: Mapping[str, Any], text: Callable[[Console], None]) -> None:
        """Save the result if asked to, then print it."""
        if self.save is not None:
            write_whole(self.save, _encoded(result, indent=2))
        super().deliver(result, text)


def note_to_person(text: str) -> None:
    """On standard error, so that output stays what it is."""
    print(wrapped(f"note: {visible(text)}", sys.stderr), file=sys.stderr, flush=True)


def wrapped(text: str, stream: TextIO) -> str:
    """Lines that end at words on a terminal; elsewhere as they are."""
    if not stream.isatty():
        return text
    return "\n".join(_filled(line, shutil.get_terminal_size().columns, 4) for line in text.split("\n"))


def hanging(text: str, width: int) -> str:
    """Lines that begin with spaces end at words, and go on below their first word."""
    return "\n".join(
        _filled(line, width, len(line) - len(line.lstrip(" ")) + 2) if line.startswith(" ") else line
        for line in text.split("\n")
    )


def _filled(line: str, width: int, indent: int) -> str:
    return textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def console() -> Console:
    """Standard output for people: neither markup nor emoji codes in the data mean anything there."""
    from rich.console import Console
    from rich.table import Table

    class FittingConsole(Console):
        """Tells a wide table in parts, one below the other, rather than breaking words and cutting numbers. Lines end
        at words on a terminal, and nowhere else; but a command is there to be copied.
        """

        def print(self, *objects: Any, **how: Any) -> None:
            if len(objects) == 1 and isinstance(objects[0], Table):
                for part in _parts(objects[0], self.width):
                    super().print(part, **how)
                return
            is_whole = not self.is_terminal or any(str(one).lstrip().startswith("hynt ") for one in objects)
            told = objects if is_whole else tuple(hanging(str(one), self.width) for one in objects)
            super().print(*told, soft_wrap=is_whole, **how)

    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return FittingConsole(file=sys.stdout, markup=False, emoji=False, highlight=False, width=width)


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    justify: Any = "center",
    numbers: Container[int] | None = None,
) -> None:
    """Rows of cells below their headings; where it is said which columns hold `numbers`, without lines between them."""
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify=justify, box=HEAVY_HEAD if numbers is None else SIMPLE_HEAD)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place in (numbers or ()) else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(visible, row))
    console.print(table)


_LONGEST_WORD = 32
"""An id or a path may be longer; then it goes on in the next line."""


def _parts(table: Table, width: int) -> list[Table]:
    """The table, or tables that fit together: each with the first column and as many of the others, in their order, as
    there is room for. Numbers stay whole, words unbroken.
    """
    from rich.cells import cell_len

    columns = table.columns
    cells = [[str(cell) for cell in (column.header, *column._cells)] for column in columns]
    whole = [max(map(cell_len, one)) for one in cells]
    least = [
        min(max(cell_len(word) for cell in one for word in cell.split() or [""]), _LONGEST_WORD)
        if column.justify != "right"
        else max(*map(cell_len, one[1:]), *map(cell_len, one[0].split()), 1)
        for column, one in zip(columns, cells, strict=True)
    ]
    if _taken(whole) <= width:
        return [table]
    groups = [[0]]
    for place in range(1, len(columns)):
        if len(groups[-1]) > 1 and _taken([least[one] for one in (*groups[-1], place)]) > width:
            groups.append([0])
        groups[-1].append(place)
    parts: list[Table] = []
    for group in groups:
        part = copy(table)
        part.title = None if parts else table.title
        part.columns = [copy(columns[place]) for place in group]
        room = max(width - _taken([least[place] for place in group]), 0)
        wanting = sorted(range(len(group)), key=lambda at: whole[group[at]] - least[group[at]])
        for count, at in enumerate(wanting):  # those that want little get it all, the others share what is left
            place = group[at]
            more = min(whole[place] - least[place], room // (len(group) - count))
            part.columns[at].width, part.columns[at].overflow = least[place] + more, "fold"
            room -= more
        parts.append(part)
    return parts


def _taken(widths: Sequence[int]) -> int:
    """What columns of these widths take: each has a margin on both sides and a line."""
    return sum(widths) + 3 * len(widths) + 1


def _encoded(result: Mapping[str, Any], indent: int | None = None) -> bytes:
    """UTF-8; a stray byte of a file name, which Python holds as a lone surrogate, stays an escape that JSON knows."""
    text = json.dumps(result, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
    return text.encode("utf-8", "backslashreplace")
