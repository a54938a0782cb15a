"""Help that reads well at 80 columns: plain text, what belongs together under one heading, no word broken or cut."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from types import MethodType
from typing import Any

import typer

_COLUMN = 26
"""Where the words about an option begin, at the latest."""

_WIDEST = 100
_KINDS = {"str": "TEXT", "int": "N", "float": "X", "path": "PATH", "file": "FILE", "directory": "DIR"}

_RANGES = (
    (r"0<=x<=9223372036854775807", "at least 0"),  # as much as a seed may be
    (r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2"),
    (r"x>=([\d.]+)", r"at least \1"),
    (r"default: \((.*?)\)", r"default: \1"),
)
"""How typer writes the numbers that an option takes and the default that has no value, and how people do."""

FIRST = (
    ("hynt demo", "a minute: train on the embedded graph, evaluate, ask"),
    ("hynt data import FILES --out GRAPH", "your own facts, checked"),
    ("hynt train GRAPH --out RUN", "a model of them"),
    ("hynt predict RUN --head … --relation … --tail ?", "what is missing"),
    ("hynt serve RUN", "a page to explore it"),
)
"""What a newcomer types first."""


def plain_help(command: Any) -> Any:
    """The command, or group of commands, with this help instead of typer's."""
    for one in getattr(command, "commands", {}).values():
        plain_help(one)
    command.format_help = MethodType(_format_help, command)
    return command


def _format_help(command: Any, context: Any, formatter: Any) -> None:
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    formatter.write("\n".join(_lines(command, context, width)).rstrip() + "\n")


def _lines(command: Any, context: Any, width: int) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    words = [_argument(one) for one in arguments]
    is_group = hasattr(command, "list_commands")
    yield " ".join([f"Usage: {context.command_path}", *words, *(["COMMAND"] if is_group else []), "[OPTIONS]"])
    yield ""
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        yield from textwrap.wrap(" ".join(paragraph.split()), width, break_long_words=False)
        yield ""
    if context.parent is None and is_group:
        yield from _section("First steps", [(typed, said) for typed, said in FIRST], width)
    if is_group:
        listed = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
        yield from _section("Commands", [(name, _first_sentence(one.help)) for name, one in listed], width)
    yield from _section("Arguments", [(_argument(one), one.help or "") for one in arguments if one.help], width)
    panels: dict[str, list[tuple[str, str]]] = {}
    for option in command.get_params(context):
        if option.param_type_name == "option" and not option.hidden:
            panel = getattr(option, "rich_help_panel", None) or "Options"
            panels.setdefault(panel, []).append(_option(option, context))
    for panel in sorted(panels, key=lambda name: name != "Options"):
        yield from _section(panel, panels[panel], width)


def _section(title: str, rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """A heading and its rows; words that do not fit beside what is typed stand below it."""
    if not rows:
        return
    yield typer.style(title, bold=True)
    column = min(_COLUMN, 4 + max(len(typed) for typed, _ in rows))
    for typed, said in rows:
        lines = textwrap.wrap(said, width - column, break_long_words=False, break_on_hyphens=False)
        if len(typed) + 4 > column or not lines:
            yield f"  {typed}"
        else:
            yield f"  {typed:{column - 2}}{lines.pop(0)}"
        yield from (" " * column + line for line in lines)
    yield ""


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("{}[]")
    name += "…" if argument.nargs == -1 and not name.endswith("…") else ""
    return name if argument.required else f"[{name}]"


def _option(option: Any, context: Any) -> tuple[str, str]:
    """What is typed and what is said of it: typer's own words, with types as a reader knows them."""
    typed, said = option.get_help_record(context)
    typed = re.sub(r"<([^>]*)>", lambda found: _KINDS.get(found[1].removesuffix(" range"), found[1]), typed)
    for pattern, words in _RANGES:
        said = re.sub(pattern, words, said)
    return typed, " ".join(said.split())


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=[.;:]) ", " ".join((text or "").split()), maxsplit=1)[0].rstrip(".;:")
