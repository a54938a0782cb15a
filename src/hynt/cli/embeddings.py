"""`hynt embeddings` and `hynt similar`: the vectors of all entities as a Parquet file, and the entities that a run has
learned to see as most alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import RunArgument
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, print_table
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def similar(
    run: RunArgument,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An entity's id or name.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many to show.")] = 10,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """List the entities whose vectors point most nearly the same way as ENTITY's (cosine)."""
    from hynt.front.run import Run

    check_save(save)
    opened = Run(run, "cpu")
    found = [other.to_dict() for other in opened.similar(entity, top)]
    identity = opened.names.entity(entity)
    one = opened.graph.entities[identity]
    named = {"id": one.name, "name": opened.graph.entity_labels[identity], "type": one.type}
    result = {"run": str(run), "entity": named, "similar": found}
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(f"most like {visible(result['entity']['name'])}", style="bold")
    names = [other["name"] for other in result["similar"]]
    ids = ("id",) if len(set(names)) < len(names) else ()  # where names do not tell entities apart
    rows = [
        (str(one["rank"]), one["name"], *(one["id"] for _ in ids), one["type"] or "-", f"{one['similarity']:.4f}")
        for one in result["similar"]
    ]
    print_table(console, ("rank", "entity", *ids, "type", "cosine"), rows)


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
