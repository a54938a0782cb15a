"""`hynt report`: one page that says what a run is and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, RunArgument, ScoringDevice, said_with
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, note_to_person
from hynt.cli.progress import QuestionProgress
from hynt.errors import UsageError
from hynt.files import check_place, write_whole

if TYPE_CHECKING:
    from rich.console import Console

SPLITS = ("valid", "test")


def report(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the page, as .html.")],
    split: Annotated[str, typer.Option("--split", help="The held-out split to measure on: valid or test.")] = "test",
    entity: Annotated[
        str | None, typer.Option("--entity", help="Whose facts to draw; else the head with the most relations.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again; else kept figures are used and the split is not read.")
    ] = False,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Write one self-contained page about RUN: metrics, breakdowns, calibration, coverage, surest answers, settings."""
    _refuse(out, split)
    check_save(save)
    from hynt.graph.lookup import NameLookup
    from hynt.runs.place import run_graph, whole_run

    graph = run_graph(run)
    graph.split(split)
    with said_with("--entity"):
        drawn = None if entity is None else NameLookup(graph).entity(entity)

    from hynt.asking.predictor import load
    from hynt.reporting.report.page import make_report

    predictor = load(run, device.value, note_to_person)
    with whole_run(), QuestionProgress("evaluating") as progress:
        made = make_report(predictor, split, entity=drawn, again=again, asking=progress, note=note_to_person)
    content = made.page.encode("utf-8", "backslashreplace")
    write_whole(out, content)
    result: dict[str, Any] = {
        "run": str(run),
        "out": str(out),
        "bytes": len(content),
        **predictor.described(),
        "split": split,
        "reads_of_split": made.measurements["reads_now"],
        "reused": made.reused,
        "sections": list(made.sections),
    }
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result))


def _refuse(out: Path, split: str) -> None:
    """Refuses a place that cannot be written to, or a split that no report is made of, before any work."""
    if split not in SPLITS:
        raise UsageError(f"no report is made of {split!r}.", where="--split", advice=f"Choose {' or '.join(SPLITS)}.")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{out.name} is no page.", where="--out", advice="Give a file that ends in .html.")
    check_place(out, "--out")


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{result['out']}: {result['bytes'] / 1e3:,.0f} kB, {len(result['sections'])} sections", soft_wrap=True
    )
    how = "measured before; the split was not read again" if result["reused"] else "measured now"
    console.print(f"figures of the {result['split']} split: {how}; times it was read: {result['reads_of_split']}")
