"""`hynt calibrate`: how far a run's probabilities and intervals can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.options import Device, RunArgument, ScoringDevice
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, note_to_person

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.front.evaluating import CalibrationReport


def calibrate(
    run: RunArgument,
    split: Annotated[
        str | None, typer.Option("--split", help="Measure on this split as well, such as test; the reading is counted.")
    ] = None,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Fit RUN's probabilities and intervals on the validation split, once, and say how well they fit."""
    from hynt.front.run import Run

    check_save(save)
    found = Run(run, device.value, note_to_person).calibrate(split)
    result = {"run": str(run), **found.to_dict()}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, found))


def _print(console: Console, report: CalibrationReport) -> None:
    from rich.table import Table

    found, measured = report["calibration"], report.to_dict().get("measured")
    if not report.calibrated:
        console.print(f"not calibrated: {found['reason']}")
        return
    table = Table("task", "split", "temperature", "calibration error before", "after", "questions")
    for row in report.rows():
        table.add_row(*row)
    console.print(table)
    if "number" in found:
        own = sum("0.9" in entry["own"] for entry in found["number"].values())
        console.print(f"intervals: {own} of {len(found['number'])} relations have their own at 90%, the others share")
    if measured and "number" in measured:
        table = Table("level", "coverage", "mean width (scaled)", "median width", "questions")
        for level, part in measured["number"]["levels"].items():
            cells = ("-" if part[name] is None else f"{part[name]:.4f}" for name in _COLUMNS)
            table.add_row(f"{float(level):.0%}", *cells, f"{measured['number']['questions']:,}")
        console.print(table)


_COLUMNS = ("coverage", "mean_width", "median_width")
