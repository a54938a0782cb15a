"""`hynt data export`: a graph as files of another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hynt.cli.arguments import GraphArgument
from hynt.cli.data.options import FormatOption
from hynt.cli.interruption import interruptible
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, visible
from hynt.errors import UsageError
from hynt.files import check_new_folder


def export(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="What to write; it must not exist yet.")],
    format: FormatOption = "",
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Write a graph in another format."""
    from hynt.formats.registry import FORMATS, get_format
    from hynt.graph.storage import load_graph

    check_save(save)
    chosen = get_format(format, out.name)
    if chosen.write is None:
        writers = ", ".join(name for name, known in FORMATS.items() if known.write is not None)
        raise UsageError(f"the format {format} is only read, not written.", where="--format", advice=f"Use {writers}.")
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists already.", where="--out", advice="Choose a new name, or remove it first.")
    check_new_folder(out, "--out")
    loaded = load_graph(graph)
    with interruptible():
        files = [str(path) for path in chosen.write(loaded, out)]
    result: dict[str, Any] = {
        "graph": graph,
        "format": format,
        "out": str(out),
        "files": files,
        "facts": {split: len(table) for split, table in loaded.splits.items()},
    }
    deliver(
        result,
        as_json=json,
        save=save,
        text=lambda screen: screen.print(f"{len(loaded):,} facts written to {visible(str(out))}", soft_wrap=True),
    )
