"""`hynt create`: a graph from a dump of Wikidata, YAGO3 or Freebase."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hynt.cli.create.options import DumpOptions
from hynt.cli.create.telling import print_result, result_mapping
from hynt.cli.interruption import interruptible
from hynt.cli.option_groups import with_option_groups
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.cli.progress import ReadingProgress
from hynt.errors import UsageError
from hynt.files import check_new_folder
from hynt.names import advice_on


@with_option_groups
def create(
    source: Annotated[str, typer.Argument(metavar="wikidata|yago|freebase", help="The kind of dump.")],
    dump: Annotated[
        Path, typer.Argument(metavar="DUMP", help="A file (plain, .gz, .bz2, .zst), or the folder of its parts.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="GRAPH", help="The folder to write the graph to.")],
    options: DumpOptions,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the graph at --out.")] = False,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Make a graph from a dump of Wikidata, YAGO3 or Freebase.

    Stopped builds go on where they were when the same command is given again.
    """
    from hynt.creation.sources.registry import SOURCES

    if source not in SOURCES:
        raise UsageError(f"there is no source {source!r}.", advice=advice_on(source, SOURCES))
    options.refuse_foreign(source)
    check_save(save)
    check_new_folder(out, "--out")

    from hynt.creation.building import create_graph

    with interruptible(), ReadingProgress() as progress:
        result = create_graph(source, dump, out, options.creation(), overwrite=overwrite, progress=progress)
    told = result_mapping(result, out)
    deliver(told, as_json=as_json, save=save, text=lambda console: print_result(told, console))
