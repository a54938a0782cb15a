"""`hynt embeddings`: the vectors of all entities as a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hynt.cli.options import RunArgument
from hynt.cli.output import JsonFlag, deliver


def embeddings(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The Parquet file to write.")],
    as_json: JsonFlag = False,
) -> None:
    """Write id, name, type and vector of every entity of RUN's graph."""
    from hynt.front.run import Run

    entities, width = Run(run, "cpu").embeddings(out).shape
    result = {"run": str(run), "out": str(out), "entities": entities, "width": width}
    told = f"{entities:,} vectors of {width} numbers in {out}"
    deliver(result, as_json=as_json, save=None, text=lambda console: console.print(told, soft_wrap=True))
