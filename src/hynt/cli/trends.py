"""`hynt trends`: how a number moves over time, as a picture and as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.options import AsOf, LevelOption, OnGraph, RunArgument, ScoringDevice, opened_run
from hynt.cli.output import JsonFlag, deliver, print_table
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.trends.trends import Series, Trend


def trends(
    run: RunArgument,
    heads: Annotated[
        list[str], typer.Option("--head", help="An entity's id or name. Repeatable; each gets a panel of its own.")
    ],
    relation: Annotated[str, typer.Option("--relation", help="The relation whose numbers are followed.")],
    out: Annotated[
        list[Path], typer.Option("--out", metavar="FILE", help="A .png or .svg picture, or a .csv table. Repeatable.")
    ],
    over: Annotated[
        str | None, typer.Option("--over", help="The qualifier that is the axis; by default the date most facts carry.")
    ] = None,
    qualifiers: Annotated[
        list[str] | None,
        typer.Option("--qualifier", metavar="R=V", help="Which series, where there are several. Repeatable."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Where the axis starts; by default at the first value.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Where the axis ends; by default at the last value.")] = None,
    points: Annotated[int, typer.Option("--points", help="How many points a curve has.")] = 100,
    level: LevelOption = 0.9,
    graph: OnGraph = None,
    as_of: AsOf = None,
    device: ScoringDevice = "auto",
    as_json: JsonFlag = False,
) -> None:
    """Draw what RUN says of a number over time, beside what the graph knows."""
    from hynt.asking.question import pair_from_text
    from hynt.front.publishing import check_drawing, draw

    check_drawing(out, with_table=True)
    opened = opened_run(run, device, graph, as_of)
    pairs = [pair_from_text(text, opened.names) for text in qualifiers or ()]
    found = opened.trends(
        heads, relation, over=over, qualifiers=pairs, start=start, end=end, points=points, level=level
    )
    draw(found, *out)
    result = {"run": str(run), **opened.described(), "out": [str(path) for path in out], **found.to_dict()}
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, found, out))


def _print(console: Console, found: Trend, out: list[Path]) -> None:
    console.print(visible(found.title), style="bold", soft_wrap=True)
    columns = ("head", "trained on", "mean error", "held out", "mean error", f"inside {found.level:.0%} interval")
    rows = [
        (
            one.name,
            str(int(one.trained_on.sum())),
            _error(found, one, trained_on=True),
            str(int((~one.trained_on).sum())),
            _error(found, one, trained_on=False),
            f"{one.covered[0]} of {one.covered[1]}" if one.covered and one.covered[1] else "-",
        )
        for one in found.series
    ]
    print_table(console, columns, rows)
    for one in found.series:
        for note in one.notes:
            console.print(f"note: {visible(one.name)}: {visible(note)}", style="dim", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {visible(note)}", style="dim", soft_wrap=True)
    console.print(f"written: {', '.join(str(path) for path in out)}", soft_wrap=True)


def _error(found: Trend, one: Series, *, trained_on: bool) -> str:
    """To three digits: an error is an estimate."""
    error = one.mean_error(trained_on=trained_on)
    if error is None:
        return "-"
    from hynt.graph.sentences import format_difference

    return format_difference(error, found.unit)
