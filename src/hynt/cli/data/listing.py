"""`hynt data list`: the built-in graphs, and the formats that can be read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver

if TYPE_CHECKING:
    from rich.console import Console


def list_known(json: JsonFlag = False, save: SaveFile = None) -> None:
    """List the built-in graphs, the formats, and the published graphs that are known by name."""
    from hynt.front.graphs import list_formats, list_graphs, list_published

    check_save(save)
    result = {"graphs": list_graphs(), "formats": list_formats(), "published": list_published()}
    deliver(result, as_json=json, save=save, text=lambda out: _tell(result, out))


def _tell(result: dict[str, Any], out: Console) -> None:
    from rich import box
    from rich.table import Table

    graphs = Table(title="Built-in graphs", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("name", "facts", "train", "valid", "test", "entities", "relations", "with numbers"):
        graphs.add_column(heading, justify="left" if heading == "name" else "right")
    for graph in result["graphs"]:
        splits = [f"{graph['splits'].get(split, 0):,}" for split in ("train", "valid", "test")]
        counts = [f"{graph[key]:,}" for key in ("entities", "relations", "number_relations")]
        graphs.add_row(graph["name"], f"{graph['facts']:,}", *splits, *counts)
    out.print(graphs)
    formats = Table(title="Formats", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("name", "files", "reads", "writes", "what it is"):
        formats.add_column(heading, overflow="fold")
    for known in result["formats"]:
        extra = f" (needs hynt[{known['extra']}])" if known["extra"] else ""
        writes = "yes" if known["writes"] else "no"
        formats.add_row(known["name"], " ".join(known["suffixes"]), "yes", writes, known["summary"] + extra)
    out.print(formats)
    named = ", ".join(graph["name"] for graph in result["published"])
    out.print(f"Published graphs, for hynt data import --published NAME --from FOLDER: {named}.")
    out.print("Files may be compressed with gzip, bzip2 or zstd.")
