"""`hynt data show`: the facts of one entity, readable, and a picture of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import GraphArgument
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.errors import located
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.graph.fact import Fact, Value
    from hynt.graph.knowledge_graph import KnowledgeGraph


_HEADINGS = {"head": "", "tail": "as the tail of", "value": "as the value of a qualifier of"}


class PositionOption(StrEnum):
    HEAD = "head"
    TAIL = "tail"
    VALUE = "value"


def show(
    graph: GraphArgument,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An entity's id or name.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many facts to show, of many relations.")] = 20,
    position: Annotated[
        PositionOption | None,
        typer.Option("--position", help="Only facts where it stands here; also settles a name that several share."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--out", "--picture", "-o", metavar="FILE", help="Draw its neighbourhood: .png, .svg or .pdf."),
    ] = None,
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Show the facts of an entity, with names, units and dates."""
    from hynt.front.drawing import check_drawing, draw
    from hynt.graph.entity_facts import facts_of
    from hynt.graph.lookup import POSITIONS
    from hynt.graph.storage import load_graph

    check_save(save)
    check_drawing(pictures := [] if picture is None else [picture], of_facts=True, argument="--out")
    loaded = load_graph(graph)
    positions = tuple(name for name in POSITIONS if position is None or name == position.value)
    with located("ENTITY"):
        identity = loaded.names.entity(entity, positions[0] if position else None)
    found = facts_of(loaded, identity, limit=limit, positions=positions)
    one = loaded.entities[identity]
    result: dict[str, Any] = {
        "graph": graph,
        "entity": {"id": one.name, "label": loaded.entity_labels[identity], "type": one.type},
        "counts": dict(found.counts),
        "left_out": found.left_out,
        "facts": [
            {"split": item.split, "position": item.position, **fact_as_json(item.fact, loaded)} for item in found.facts
        ],
        "picture": str(picture) if picture else None,
    }
    draw(found, *pictures)
    deliver(result, as_json=json, save=save, text=lambda out: _tell(result, out))


def _tell(result: dict[str, Any], out: Console) -> None:
    entity = result["entity"]
    about = [part for part in (entity["id"] if entity["id"] != entity["label"] else "", entity["type"]) if part]
    out.print(visible(entity["label"]) + (f" ({visible(', '.join(about))})" if about else ""), style="bold")
    if not result["facts"]:
        out.print("No facts there.")
    for position, heading in _HEADINGS.items():
        facts = [fact for fact in result["facts"] if fact["position"] == position]
        if facts and heading:
            out.print(f"{heading}:", style="dim")
        for fact in facts:
            out.print(f"  {visible(fact['text'])}", soft_wrap=True)
    if result["left_out"]:
        total = sum(result["counts"].values())
        out.print(f"… and {result['left_out']:,} more facts: --limit {total} shows all.", style="dim")
    if result["picture"]:
        out.print(f"Picture in {visible(result['picture'])}", soft_wrap=True)


# A fact as a JSON object, with ids for programs and names for people.


def fact_as_json(fact: Fact, graph: KnowledgeGraph) -> dict[str, Any]:
    """Head, relation, tail and qualifiers, and the fact as one line of text."""
    from hynt.graph.sentences import Sentences

    sentences = Sentences(graph)
    return {
        "text": sentences.fact(fact),
        "head": {"id": fact.head, "label": sentences.entity(fact.head)},
        "relation": {"id": fact.relation, "label": sentences.relation(fact.relation)},
        "tail": _value(fact.tail, graph),
        "qualifiers": [
            {"relation": {"id": name, "label": sentences.relation(name)}, "value": _value(value, graph)}
            for name, value in fact.qualifiers
        ],
    }


def _value(value: Value, graph: KnowledgeGraph) -> dict[str, Any]:
    from hynt.graph.fact import Number
    from hynt.graph.sentences import Sentences, format_stored

    if isinstance(value, Number):
        shown = format_stored(value)
        return {"number": value.value, "literal": value.literal, "unit": value.unit, "text": shown}
    return {"id": value, "label": Sentences(graph).entity(value)}
