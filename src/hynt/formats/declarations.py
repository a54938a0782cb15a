"""What a source says about its names beside its facts: labels, types, kinds, units, scales, and the order of ids.

In a folder, next to the files of facts:

    entities.jsonl or entities.tsv      id, label, type
    relations.jsonl or relations.tsv    id, label, kind (entity or number), unit, scale (linear or log)
    entity2id.txt, relation2id.txt      the paper's id maps: name TAB id; they fix the order of ids

and, given by the caller, label files: id TAB label. A mistake in one of these is a `DataError`: they are small,
and made by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hynt.errors import DataError
from hynt.formats.format import Format
from hynt.formats.names import shortened
from hynt.formats.sidecars import find_sidecar, read_id_map, read_labels, read_rows
from hynt.formats.writing import write_lines
from hynt.graph.vocabulary import Entity, RelationKind, Scale
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

_KINDS: Mapping[str, RelationKind | None] = {
    "": None,
    "entity": "entity",
    "discrete": "entity",
    "number": "number",
    "numeric": "number",
}
_SCALES: Mapping[str, Scale] = {"": "linear", "linear": "linear", "log": "log"}
_IGNORED = frozenset({"count", "min", "max", "description"})  # facts about the data, which the data says better


class RelationDeclaration(NamedTuple):
    """What is known of a relation beforehand; a kind of None leaves it to the facts."""

    name: str
    kind: RelationKind | None = None
    unit: str = ""
    scale: Scale = "linear"
    label: str = ""


class Declarations(NamedTuple):
    """Everything the sidecars and label files say."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[RelationDeclaration, ...] = ()
    fixes_order: bool = False  # whether the entities' ids follow this order, whether or not facts come in another


def read_declarations(
    source: Path,
    format: Format | None = None,  # noqa: A002, ARG001 - all formats have the same sidecars so far
    *,
    entity_labels: Path | None = None,
    relation_labels: Path | None = None,
) -> Declarations:
    """What stands beside the facts of a folder, with labels from the given files. A single file has no sidecars."""
    entities = {name: Entity(name) for name in _id_map(source, "entity2id.txt")}
    for row, _ in _rows(source, "entities", ("id", "label", "type")):
        entities[row["id"]] = Entity(row["id"], row["label"], row["type"])
    fixes_order = bool(entities)
    relations = {name: RelationDeclaration(name) for name in _id_map(source, "relation2id.txt")}
    for row, where in _rows(source, "relations", ("id", "label", "kind", "unit", "scale")):
        relations[row["id"]] = _relation(row, where)
    for name, label in read_labels(entity_labels).items() if entity_labels else ():
        entities[name] = entities.get(name, Entity(name))._replace(label=label)
    for name, label in read_labels(relation_labels).items() if relation_labels else ():
        relations[name] = relations.get(name, RelationDeclaration(name))._replace(label=label)
    return Declarations(tuple(entities.values()), tuple(relations.values()), fixes_order)


def write_declarations(graph: KnowledgeGraph, folder: Path) -> list[Path]:
    """Write entities.jsonl and relations.jsonl, in the order of ids, so that an import gives the same graph."""
    entities, relations = folder / "entities.jsonl", folder / "relations.jsonl"
    write_lines(entities, (_json(id=entity.name, label=entity.label, type=entity.type) for entity in graph.entities))
    write_lines(
        relations,
        (
            _json(id=name, label=label, kind=kind, unit=unit, scale=scale if kind == "number" else "")
            for name, kind, unit, scale, label in graph.relations
        ),
    )
    return [entities, relations]


def _id_map(source: Path, name: str) -> list[str]:
    path = find_sidecar(source, {name})
    return [] if path is None else read_id_map(path)


def _rows(source: Path, stem: str, columns: tuple[str, ...]) -> Iterator[tuple[dict[str, str], str]]:
    path = find_sidecar(source, {f"{stem}.jsonl", f"{stem}.tsv"})
    return iter(()) if path is None else read_rows(path, columns, _IGNORED)


def _relation(row: dict[str, str], where: str) -> RelationDeclaration:
    vocabularies: tuple[tuple[str, Mapping[str, Any]], ...] = (("kind", _KINDS), ("scale", _SCALES))
    for column, known in vocabularies:
        if row[column] not in known:
            raise DataError(
                f"{shortened(row[column])!r} is no {column} of a relation.",
                where=where,
                advice=advice_on(row[column][:100], [name for name in known if name]),
            )
    return RelationDeclaration(row["id"], _KINDS[row["kind"]], row["unit"], _SCALES[row["scale"]], row["label"])


def _json(**columns: str) -> str:
    return json.dumps({column: text for column, text in columns.items() if text}, ensure_ascii=False)
