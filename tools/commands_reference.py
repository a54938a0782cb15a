"""Writes `docs/reference/commands.md` from the help of every command.

python -m tools.commands_reference       # after a command, an option or its words have changed
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from hynt.cli import help as words
from hynt.cli.application import VERBS, app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"

START = """# Commands

Look up every command and option of `hynt`. Made from `hynt COMMAND --help` by `tools/commands_reference.py`; a test
keeps it up to date.

`GRAPH` is a folder made by `hynt data import`, or a built-in name (`world`; write `./world` for a folder of that name).
`RUN` is a folder made by `hynt train`, or `world`, the run that comes with hynt. Every command but `demo` and
`mcp` takes `--json`: standard output then holds [one object](json.md) and nothing else.
Failures have [exit codes](exit-codes.md). Ctrl-C leaves nothing half-written.
"""
GUIDES = {
    "demo": "index.md",
    "data": "start/own-data.md",
    "create": "how-to/creating-graphs.md",
    "models": "background/models.md",
    "train": "how-to/training.md",
    "sweep": "how-to/sweeping.md",
    "evaluate": "background/evaluation-protocol.md",
    "ensemble": "how-to/combining.md",
    "compare": "how-to/comparing.md",
    "predict": "how-to/predicting.md",
    "complete": "how-to/completing.md",
    "audit": "how-to/auditing.md",
    "trends": "how-to/trends.md",
    "update": "how-to/keeping-up-to-date.md",
    "explain": "how-to/explaining.md",
    "calibrate": "how-to/predicting.md",
    "similar": "how-to/predicting.md",
    "embeddings": "how-to/predicting.md",
    "push": "how-to/sharing-runs.md",
    "pull": "how-to/sharing-runs.md",
    "export": "how-to/sharing-runs.md",
    "report": "how-to/reporting.md",
    "serve": "how-to/serving.md",
    "mcp": "how-to/agents.md",
}


def page() -> str:
    """The whole page."""
    if set(VERBS) != set(GUIDES):
        raise SystemExit(f"give each command a page in GUIDES: {', '.join(sorted(set(VERBS) ^ set(GUIDES)))}")
    root = typer.main.get_command(app)
    context: Any = root.make_context("hynt", [], resilient_parsing=True)
    found = [(verb, root.get_command(context, verb)) for verb in VERBS]  # type: ignore[attr-defined]
    lines = [START, "| command | what it does | guide |", "|---|---|---|"]
    for verb, command in found:
        said = words._first_sentence(command.help)
        lines.append(f"| [`hynt {verb}`](#hynt-{verb}) | {_cell(said)} | [page](../{GUIDES[verb]}) |")
    lines.append("")
    for verb, command in found:
        lines += _command(command, type(context)(command, info_name=verb, parent=context), "##")
    return "\n".join(lines)


def _command(command: Any, context: Any, level: str) -> Iterator[str]:
    yield f"{level} {context.command_path}\n"
    inner = getattr(command, "commands", None)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if inner is None:
        said = " ".join([context.command_path, *(words._argument(one) for one in arguments), "[OPTIONS]"])
        yield f"```\n{said}\n```\n"
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        yield " ".join(paragraph.split()) + "\n"
    rows = [f"| `{words._argument(one)}` | {_cell(one.help or '')} |" for one in arguments if one.help]
    for option in command.get_params(context):
        if inner is None and option.param_type_name == "option" and not option.hidden and option.name != "help":
            typed, said = words._option(option, context)
            rows.append(f"| `{_cell(typed)}` | {_cell(said)} |")
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows]) + "\n"
    for name, one in (inner or {}).items():
        yield from _command(one, type(context)(one, info_name=name, parent=context), f"{level}#")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: {len(page().splitlines())} lines")
