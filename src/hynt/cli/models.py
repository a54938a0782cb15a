"""`hynt models`: each model with what it reads and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hynt.cli.output import JsonFlag, deliver, note_to_person

if TYPE_CHECKING:
    from rich.console import Console


def models(as_json: JsonFlag = False) -> None:
    """List the models: what each reads, what it is trained on, and what it can be asked."""
    from hynt.front.graphs import models_and_problems

    found, problems = models_and_problems()
    for problem in problems.values():
        note_to_person(problem)
    result = {"models": found, "problems": problems}
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, found))


def _print(console: Console, found: dict[str, Any]) -> None:
    for name, model in found.items():
        console.print(f"{name}: {model['summary']}")
        console.print(f"  reads    {', '.join(model['reads'])}")
        answers = [f"{task} ({', '.join(positions)})" for task, positions in model["answers"].items() if positions]
        console.print(f"  answers  {'; '.join(answers)}")
        console.print(f"  trained  {model['trained_on']}")
