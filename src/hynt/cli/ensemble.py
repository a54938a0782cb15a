"""`hynt ensemble`: several runs on one graph as one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.options import ScoringDevice
from hynt.cli.output import JsonFlag, deliver, note_to_person

if TYPE_CHECKING:
    from rich.console import Console


def ensemble(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN…", help="Runs that were trained on one graph.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the new run.")],
    device: ScoringDevice = "auto",
    as_json: JsonFlag = False,
) -> None:
    """Make one run of several: how much each of them counts is fitted on the validation split."""
    from hynt.front.ensembling import ensemble as joined

    made = joined(runs, out, device=device, note=note_to_person)
    summary = {"run": str(out), **made.described(), "members": made.manifest["training"]["members"]}

    def text(console: Console) -> None:
        console.print(f"{' and '.join(summary['members'])} as one run, kept in {out}")
        console.print(f"next: hynt evaluate {out}")

    deliver(summary, as_json=as_json, save=None, text=text)
