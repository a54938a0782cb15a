"""`hynt report`: one page that says what a run is and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, RunArgument, ScoringDevice
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, note_to_person

if TYPE_CHECKING:
    from rich.console import Console

SPLITS = ("valid", "test")


def report(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the page, as .html.")],
    split: Annotated[str, typer.Option("--split", help="The held-out split to measure on: valid or test.")] = "test",
    entity: Annotated[
        str | None, typer.Option("--entity", help="Whose facts to draw; by default the head with the most relations.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again, instead of using kept figures without reading the split.")
    ] = False,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Write one self-contained page about RUN: metrics, breakdowns, calibration, coverage, surest answers, settings."""
    from hynt.front.run import Run

    check_save(save)
    opened = Run(run, device.value, note_to_person)
    made = opened.report(out, split, entity=entity, again=again, progress=True)
    result: dict[str, Any] = {
        "run": str(run),
        "out": str(out),
        "bytes": out.stat().st_size,
        **opened.described(),
        "split": split,
        "reads_of_split": made.measurements["reads_now"],
        "reused": made.reused,
        "sections": list(made.sections),
    }
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{result['out']}: {result['bytes'] / 1e3:,.0f} kB, {len(result['sections'])} sections", soft_wrap=True
    )
    how = "measured before; the split was not read again" if result["reused"] else "measured now"
    console.print(f"figures of the {result['split']} split: {how}; times it was read: {result['reads_of_split']}")
