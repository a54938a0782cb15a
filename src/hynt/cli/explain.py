"""`hynt explain`: what mattered to an answer."""

from __future__ import annotations

from pathlib import Path
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

    from hynt.explanation.explanations import Explanation, Influence


@with_option_groups
def explain(
    run: RunArgument,
    question: QuestionOptions,
    answer: Annotated[
        str | None, typer.Option("--answer", help="The entity or relation to explain; by default the first answer.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="A .png or .svg picture.")] = None,
    graph: OnGraph = None,
    as_of: AsOf = None,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Ask RUN as predict does, and say which qualifiers and components the answer depends on."""
    from hynt.front.publishing import check_drawing, draw

    check_save(save)
    pictures = [] if out is None else [out]
    check_drawing(pictures)
    opened = opened_run(run, device, graph, as_of)
    found = opened.explain(**question.arguments(opened.names), answer=answer)
    draw(found, *pictures)
    result = {"run": str(run), **opened.described(), "out": None if out is None else str(out), **found.to_dict()}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, found, out))


def _print(console: Console, found: Explanation, out: Path | None) -> None:
    from rich.table import Table

    first = found.answers[0].to_dict()
    console.print(visible(found.answers.question), style="bold", soft_wrap=True)
    if found.about is None:
        low, high = first["low_text"], first["high_text"]
        reach = "" if low is None else f" ({first['level']:.0%} interval {low} to {high})"
        console.print(f"answer: {visible(first['text'] + reach)}", soft_wrap=True)
        table = Table("without", "says", "", "answer", "change", "in interval widths")
    else:
        console.print(f"first answer: {visible(first['name'])}, probability {first['probability']:.4f}", soft_wrap=True)
        place = f"rank {found.about.rank}, probability {found.about.probability:.4f}"
        console.print(f"explained: {visible(found.about.name)}, {place}", soft_wrap=True)
        table = Table("without", "says", "", "probability", "change", "rank", "first answer")
    looked = found.attention is not None
    if looked:
        table.add_column("context attention")
        table.add_column("prediction attention")
    unit = first.get("unit", "")
    for one in found.influences:
        shares = [_share(one.context_attention), _share(one.prediction_attention)] if looked else []
        cells = _number_cells(one, unit) if found.about is None else _ranked_cells(one)
        table.add_row(one.part, visible(one.says), one.change, *cells, *shares)
    console.print(table)
    if found.attention is not None:
        console.print(f"context attention on the triplet itself: {found.attention.on_context[0]:.0%}", style="dim")
    for note in found.notes:
        console.print(f"note: {visible(note)}", style="dim", soft_wrap=True)
    if out is not None:
        console.print(f"written: {out}", soft_wrap=True)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _signed(value: float | None, digits: int) -> str:
    """A change, with the minus sign that numbers have everywhere; one that rounds to nothing has no sign."""
    if value is None:
        return ""
    return f"{value:+.{digits}f}".replace("-", "−") if round(value, digits) else f"{0:.{digits}f}"


def _ranked_cells(one: Influence) -> tuple[str, ...]:
    return f"{one.probability:.4f}", _signed(one.probability_change, 4), str(one.rank), visible(one.answer or "")


def _number_cells(one: Influence, unit: str) -> tuple[str, ...]:
    from hynt.graph.sentences import format_difference, format_quantity

    assert one.value is not None
    assert one.value_change is not None
    sign = "−" if one.value_change < 0 else "+"
    widths = _signed(one.change_in_widths, 2)
    return format_quantity(one.value, unit), sign + format_difference(abs(one.value_change), unit), widths
