"""`hynt export`: a run's scoring model for programs that have no torch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import JsonFlag, deliver
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


class ExportFormat(StrEnum):
    ONNX = "onnx"


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write, such as model.onnx.")],
    format: Annotated[ExportFormat, typer.Option("--format", help="The format of the file.")] = ExportFormat.ONNX,
    qualifiers: Annotated[
        int | None,
        typer.Option(
            "--qualifiers", min=1, max=256, help="The most qualifiers a fact may have; by default as in the graph."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the scoring model of RUN to FILE, after comparing its answers with torch's."""
    from hynt.front.run import Run

    result = Run(run, "cpu").export(out, format.value, qualifiers=qualifiers, overwrite=overwrite)
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{visible(result['model'])} with up to {result['qualifiers']} qualifiers per fact, "
        f"{result['bytes'] / 1e6:.1f} MB, in {result['file']}"
    )
    for name, far in result["largest_difference"].items():
        console.print(f"  {name}: at most {far:.1e} from torch, over {result['questions_tried']} questions")
