"""`hynt predict`: ask a run for the missing component of a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import (
    Device,
    OnGraph,
    QuestionOptions,
    RunArgument,
    ScoringDevice,
    opened_run,
    with_option_groups,
)
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.asking.answers import Answers, NumberAnswer


@with_option_groups
def predict(
    run: RunArgument,
    question: QuestionOptions,
    top: Annotated[int, typer.Option("--top", min=1, help="How many answers to show.")] = 10,
    graph: OnGraph = None,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Ask RUN for the one component of a fact that is written as ?."""

    check_save(save)
    opened = opened_run(run, device, graph)
    answers = opened.predict(**question.arguments(opened.names), top=top)
    result = {"run": str(run), **opened.described(), **answers.to_dict()}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, answers))


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
            str(found["rank"]),
            visible(found["name"]),
            visible(found["id"]),
            f"{found['probability']:.4f}",
            ", ".join(found["known"]) or "-",
        )
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
