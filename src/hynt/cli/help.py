"""What is shown before a command runs.

Help reads well at 80 columns: plain text, what belongs together under one heading, no word broken or cut. After Tab a
shell offers models, presets, formats, and the graphs and runs that lie nearby; no torch here, so that a key is answered
at once.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from types import MethodType
from typing import Any

import typer

from hynt.files import MANIFEST_NAME
from hynt.runs import WEIGHTS

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
    ("hynt demo", "answers at once, then trains a run to ask"),
    ("hynt data import FILES --out GRAPH", "your own facts, checked"),
    ("hynt train GRAPH --out RUN", "a model of them"),
    ("hynt predict RUN --head … --relation … --tail ?", "what is missing"),
    ("hynt serve RUN", "a page to explore it"),
)
"""What a newcomer types first."""


def show_plain_help(command: Any) -> None:
    """This help instead of typer's."""
    command.format_help = MethodType(_format_help, command)


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


def command_meant(context: Any, typed: Sequence[str]) -> str:
    """The command line that was meant, as far as it can be told; "" where it cannot. Words without an option are taken
    for the parts of a fact, in their order.
    """
    arguments = [one for one in context.command.params if one.param_type_name == "argument"]
    options = [one for one in context.command.params if one.param_type_name != "argument"]
    typed = typed[len(context.command_path.split()) - 1 :]
    words = list(takewhile(lambda word: not word.startswith("-"), typed))
    rest, extra = list(typed[len(words) :]), words[len(arguments) :]
    if context.command.name == "predict" and len(extra) == 1 and Path(extra[0]).is_file():
        return f"hynt complete {' '.join(map(shlex.quote, words))} --out FILE.parquet"  # a file of questions
    parts = [name for name in ("--head", "--relation", "--tail") if any(name in one.opts for one in options)]
    if len(extra) > len(parts) or any(one.nargs == -1 for one in arguments):
        return ""
    said = words[: len(arguments)] + [_argument(one) for one in arguments[len(words) :] if one.required]
    asked = [*extra, *"?" * (len(parts) - len(extra))] if extra and "--tail" in parts else extra
    given = dict(zip(parts, asked, strict=False))
    said += [word for name, value in given.items() for word in (name, shlex.quote(value))]
    lacking = [one for one in options if one.required and not {*one.opts} & {*rest, *given}]
    said += [word for one in lacking for word in (one.opts[0], one.metavar or "…")]
    return " ".join([context.command_path, *said, *map(shlex.quote, rest)])


def _option(option: Any, context: Any) -> tuple[str, str]:
    """What is typed and what is said of it: typer's own words, with types as a reader knows them."""
    typed, said = option.get_help_record(context)
    typed = re.sub(r"<([^>]*)>", lambda found: _KINDS.get(found[1].removesuffix(" range"), found[1]), typed)
    typed = re.sub(r"list\[(.*)\]", lambda found: _KINDS.get(found[1], found[1]), typed)  # "Repeatable." says it
    for pattern, words in _RANGES:
        said = re.sub(pattern, words, said)
    return typed, " ".join(said.split())


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=[.;:]) ", " ".join((text or "").split()), maxsplit=1)[0].rstrip(".;:")


_PRESETS = Path(__file__).parents[1] / "training" / "presets"
_DEPTH, _MOST = 2, 500
"""How many folders deep graphs and runs are looked for, and in how many folders."""


def offer_values(command: Any) -> None:
    """Values after Tab for what takes one of a few."""
    for parameter in command.params:
        offered = _offered(parameter)
        if offered is not None:
            parameter._custom_shell_complete = _matching(offered)


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
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            yield from (name for name in tables if name != "grid")  # which says what the HyNT paper searched


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
            elif runs if Path(path, WEIGHTS).exists() else graphs:
                yield path
