"""`hynt predict`: ask a run for the missing component of a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.options import (
    AsOf,
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
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, help="Show so many answers; else those that are stored or new, of the first 10."),
    ] = None,
    graph: OnGraph = None,
    as_of: AsOf = None,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Ask RUN for the one component of a fact that is written as ?."""

    check_save(save)
    opened = opened_run(run, device, graph, as_of)
    answers = opened.predict(**question.arguments(opened.names), top=top or 10)
    result = {"run": str(run), **opened.described(), **answers.to_dict()}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, answers, whole=top is not None))


def _print(console: Console, answers: Answers, *, whole: bool) -> None:
    from hynt.asking.answers import told_of_graph

    console.print(visible(answers.question), style="bold", soft_wrap=True)
    for told, text in told_of_graph(answers):
        console.print(f"  {told}: {visible(text)}", soft_wrap=True)
    if answers.kind == "number":
        _print_number(console, answers[0])  # type: ignore[arg-type]
    else:
        _print_ranked(console, answers, whole=whole)
    for note in answers.notes:
        console.print(f"note: {note}", style="dim", soft_wrap=True)


def _print_ranked(console: Console, answers: Answers, *, whole: bool) -> None:
    from rich.table import Table

    from hynt.asking.answers import NEW_FROM, RankedAnswer, told_of_guesses

    guesses = 0 if answers.stored or answers.new else 1  # something is always shown
    shown = list(answers) if whole else [*answers.new, *answers.guesses[:guesses]]
    if shown:
        ids = ("id",) if answers.is_ambiguous else ()  # where names do not tell answers apart
        table = Table("rank", answers.kind, *ids, "probability", "status")
        for one in shown:
            assert isinstance(one, RankedAnswer)
            named = [visible(one.name), *(visible(one.id) for _ in ids)]
            table.add_row(str(one.rank), *named, f"{one.probability:.4f}", answers.status(one))
        console.print(table)
    else:
        console.print(f"  new: none with probability {NEW_FROM:g} or more")
    folded = "" if whole else told_of_guesses(answers, guesses)
    if folded:
        console.print(f"  {visible(folded)}; --top 10 shows them", style="dim", soft_wrap=True)
    console.print(f"  of {answers.candidates:,} candidate{'' if answers.candidates == 1 else 's'}", style="dim")


def _print_number(console: Console, answer: NumberAnswer) -> None:
    def between(ends: tuple[float, float]) -> str:
        return f"{answer.text(ends[0])} to {answer.text(ends[1])}"

    console.print(f"  answer          {visible(answer.text(answer.value))}")
    if answer.interval is not None:
        console.print(
            f"  {answer.level:.0%} interval    {visible(between(answer.interval))} (from {answer.interval_from})"
        )
    if answer.training_range is not None:
        from hynt.graph.sentences import format_quantity

        reach = " to ".join(format_quantity(end, answer.unit) for end in answer.training_range)
        console.print(f"  training range  {visible(reach)}")
