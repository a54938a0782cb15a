"""`hynt pull`: take a run that was given away, checked to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import JsonFlag, deliver
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def pull(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or hf:owner/name on the hub.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The run folder to make.")],
    as_json: JsonFlag = False,
) -> None:
    """Take the run in SOURCE. Each file is checked by its hash first; files that no run has are passed over."""
    from hynt.front.sharing import pulled

    result = pulled(source, out)
    deliver(result, as_json=as_json, save=None, text=lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{visible(result['model'])} on {visible(result['graph'])}: {len(result['files'])} files, "
        f"all as listed, in {result['run']}"
    )
    if result["passed_over"]:
        console.print(f"passed over, since no run has them: {visible(', '.join(result['passed_over']))}")
    if not result["graph_included"]:
        console.print("the graph was not given away with the run: put it where the model card says")
    console.print(f"next: hynt predict {result['run']} --help")
