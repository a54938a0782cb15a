"""`hynt trends`: how a number moves over time, as a picture and as a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.options import Device, LevelOption, RunArgument, ScoringDevice
from hynt.cli.output import JsonFlag, deliver, note_to_person, visible
from hynt.errors import UsageError
from hynt.files import check_place, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.trends.trends import Series, Trend

TABLE = ".csv"


def trends(
    run: RunArgument,
    heads: Annotated[
        list[str], typer.Option("--head", help="An entity's id or name. Said again, each gets a panel of its own.")
    ],
    relation: Annotated[str, typer.Option("--relation", help="The relation whose numbers are followed.")],
    out: Annotated[
        list[Path],
        typer.Option("--out", metavar="FILE", help="A .png or .svg picture, or a .csv table. May be said again."),
    ],
    over: Annotated[
        str | None, typer.Option("--over", help="The qualifier that is the axis; else the date that most facts carry.")
    ] = None,
    qualifiers: Annotated[
        list[str] | None,
        typer.Option("--qualifier", metavar="R=V", help="Which series, where there are several. May be said again."),
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="Where the axis starts; else at the first value.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Where the axis ends; else at the last value.")] = None,
    points: Annotated[int, typer.Option("--points", help="How many points a curve has.")] = 100,
    level: LevelOption = 0.9,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
) -> None:
    """Draw what RUN says of a number over time, beside what the graph knows."""
    from hynt.asking.question import pair_from_text
    from hynt.calibration.intervals import check_level
    from hynt.graph.lookup import NameLookup
    from hynt.runs.place import run_graph
    from hynt.trends.plan import plan_trend

    # All that can be refused without the model is refused before torch is loaded.
    _check_files(out)
    check_level(level)
    graph = run_graph(run)
    names = NameLookup(graph)
    pairs = [pair_from_text(text, names) for text in qualifiers or ()]
    try:
        plan = plan_trend(graph, heads, relation, over, pairs, start, end, points, names)
    except UsageError as problem:
        raise UsageError(problem.what, where=_as_given(problem.where), advice=problem.advice) from None

    from hynt.asking.predictor import load
    from hynt.trends.trends import trend_of

    predictor = load(run, device.value, note_to_person)
    found = trend_of(predictor, plan, level)
    files = [(path, _content(found, path.suffix.lower())) for path in out]  # all are made before one is written
    for path, content in files:
        write_whole(path, content)
    result = {"run": str(run), **predictor.described(), "out": [str(path) for path in out], **found.to_dict()}
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, found, out))


def _as_given(where: str) -> str:
    """The qualifiers of a trend's questions start with the axis; on the command line it is not one of them."""
    return re.sub(r"qualifier (\d+)$", lambda found: f"qualifier {max(1, int(found[1]) - 1)}", where)


def _check_files(out: list[Path]) -> None:
    from hynt.reporting.chart_style import SUFFIXES, check_drawable, suffix_of

    for path in out:
        suffix = suffix_of(path, (*SUFFIXES, TABLE), "--out")
        if suffix in SUFFIXES:
            check_drawable("--out")
        check_place(path, "--out")


def _content(found: Trend, suffix: str) -> bytes:
    if suffix == TABLE:
        from hynt.reporting.trend_table import trend_csv

        return trend_csv(found)
    from hynt.reporting.chart_style import picture
    from hynt.reporting.trend_chart import trend_figure

    return picture(trend_figure(found), suffix)


def _print(console: Console, found: Trend, out: list[Path]) -> None:
    from rich.table import Table

    asked = f", asked with {visible(found.condition)}" if found.condition else ""
    span = f"{found.at_text(float(found.at[0]))} to {found.at_text(float(found.at[-1]))}"
    console.print(
        f"{visible(found.relation_name)} over {visible(found.over_name)}, {span}{asked}", style="bold", soft_wrap=True
    )
    table = Table("head", "trained on", "mean error", "held out", "mean error", f"inside {found.level:.0%} interval")
    for one in found.series:
        covered = f"{one.covered[0]} of {one.covered[1]}" if one.covered and one.covered[1] else "-"
        table.add_row(
            visible(one.name),
            str(int(one.trained_on.sum())),
            _error(found, one, trained_on=True),
            str(int((~one.trained_on).sum())),
            _error(found, one, trained_on=False),
            covered,
        )
    console.print(table)
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
    from hynt.trends.trends import difference_text

    return visible(difference_text(error, found.unit))
