"""`hynt data clean`: removes what killed processes left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import JsonFlag, deliver
from hynt.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


def clean(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where graphs, runs and results lie.")] = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Remove hidden files and folders that killed commands left half-written in FOLDER, here by default.

    What another process is writing at the moment stays.
    """
    from hynt.leftovers import clean as removed

    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}.", where="FOLDER", advice="Name one that is there.")
    found: dict[str, Any] = {"folder": str(folder), "removed": [path.name for path in removed(folder)]}

    def text(console: Console) -> None:
        for name in found["removed"]:
            console.print(f"removed {name}", markup=False, highlight=False)
        console.print(f"{len(found['removed'])} left-overs removed from {folder}", markup=False, highlight=False)

    deliver(found, as_json=as_json, save=None, text=text)
