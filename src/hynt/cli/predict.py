"""`hynt predict`: ask a run for the missing component of a fact."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, visible
from hynt.cli.train import Device

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from hynt.prediction.answers import Answers, NumberAnswer

RunArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by `hynt train`.")]


def predict(
    run: RunArgument,
    head: Annotated[str | None, typer.Option("--head", help="The head's id or name, or ? for what is asked.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="The relation, or ?.")] = None,
    tail: Annotated[str | None, typer.Option("--tail", help="An entity, a number (80 kg), a date, or ?.")] = None,
    qualifiers: Annotated[
        list[str] | None,
        typer.Option("--qualifier", metavar="R=V", help="A qualifier; one side may be ?. May be said again."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many answers to show.")] = 10,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            "--candidates", metavar="type|unknown|FILE",
            help="Only entities seen in that place, only those not known, or only those of a list. May be said again.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="How sure intervals of numbers are: 0.5, 0.8, 0.9, 0.95 or 0.99.")
    ] = 0.9,
    device: Annotated[Device, typer.Option("--device", help="Where to score.")] = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:  # fmt: skip
    """Ask RUN for the one component of a fact that is written as ?."""
    from hynt.graph.lookup import NameLookup
    from hynt.prediction.asking import ask, pair_from_text
    from hynt.prediction.candidates import candidates_for, read_list
    from hynt.prediction.intervals import check_level
    from hynt.prediction.run_graph import run_graph

    # All that can be refused without the model is refused before torch is loaded.
    check_save(save)
    check_level(level)
    wishes: list[str | Iterable[str]] = [
        wish if wish in ("type", "unknown") else read_list(Path(wish)) for wish in candidates or ()
    ]
    graph = run_graph(run)
    names = NameLookup(graph)
    pairs = [pair_from_text(text, names) for text in qualifiers or ()]
    asked = ask(graph, head, relation, tail, pairs, names)
    allowed = candidates_for(graph, asked, wishes, names)

    from hynt.prediction.predictor import load

    predictor = load(run, device.value, note_to_person)
    answers = predictor.answer(asked, allowed, top, level)
    result = {"run": str(run), **predictor.described(), **answers.to_dict()}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, answers))


def note_to_person(text: str) -> None:
    """On standard error, so that output stays what it is."""
    print(f"note: {text}", file=sys.stderr, flush=True)


def _print(console: Console, answers: Answers) -> None:
    console.print(visible(answers.question), style="bold", soft_wrap=True)
    if answers.kind == "number":
        _print_number(console, answers[0])  # type: ignore[arg-type]
    else:
        _print_ranked(console, answers)
    for note in answers.notes:
        console.print(f"note: {note}", style="dim", soft_wrap=True)


def _print_ranked(console: Console, answers: Answers) -> None:
    from rich.table import Table

    table = Table("rank", answers.kind, "id", "probability", "known in")
    for answer in answers:
        found: dict[str, Any] = answer.to_dict()
        table.add_row(
            str(found["rank"]), visible(found["name"]), visible(found["id"]), f"{found['probability']:.4f}",
            ", ".join(found["known"]) or "-",
        )  # fmt: skip
    console.print(table)
    console.print(f"of {answers.candidates:,} candidate{'' if answers.candidates == 1 else 's'}", style="dim")


def _print_number(console: Console, answer: NumberAnswer) -> None:
    def between(ends: tuple[float, float]) -> str:
        return f"{answer.text(ends[0])} to {answer.text(ends[1])}"

    console.print(f"  answer          {visible(answer.text(answer.value))}")
    if answer.interval is not None:
        console.print(
            f"  {answer.level:.0%} interval    {visible(between(answer.interval))} (from {answer.interval_from})"
        )
    if answer.training_range is not None:
        console.print(f"  training range  {visible(between(answer.training_range))}")
    for known in answer.known:
        console.print(f"  known           {visible(answer.text(known.value))} (in {', '.join(known.splits)})")
