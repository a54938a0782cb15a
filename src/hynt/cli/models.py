"""`hynt models`: each model with what it reads and answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hynt.cli.output import JsonFlag, deliver

if TYPE_CHECKING:
    from rich.console import Console


def models(as_json: JsonFlag = False) -> None:
    """List the models: what each reads, what it is trained on, and what it can be asked."""
    from hynt.models.registry import MODELS

    listed = MODELS.listed()
    found = {
        name: {
            "summary": entry.summary,
            "trained_on": entry.trained_on,
            "reads": ["head", "relation", "tail", *sorted(part.value for part in entry.reads)],
            "answers": {
                task: sorted(position.value for asked, position in entry.answers if asked.name.lower() == task)
                for task in ("link", "relation", "number")
            },
        }
        for name, entry in listed.entries.items()
    }
    for problem in listed.problems.values():
        print(f"note: {problem}", file=sys.stderr)
    result = {"models": found, "problems": listed.problems}
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, found))


def _print(console: Console, found: dict[str, Any]) -> None:
    for name, model in found.items():
        console.print(f"{name}: {model['summary']}")
        console.print(f"  reads    {', '.join(model['reads'])}")
        answers = [f"{task} ({', '.join(positions)})" for task, positions in model["answers"].items() if positions]
        console.print(f"  answers  {'; '.join(answers)}")
        console.print(f"  trained  {model['trained_on']}")
