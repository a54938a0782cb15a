"""What a source says about its names beside its facts: labels, types, kinds, units, scales, and the order of ids.

In a folder, next to the files of facts:

    entities.jsonl or entities.tsv      id, label, type
    relations.jsonl or relations.tsv    id, label, kind (entity or number), unit, scale (linear or log), display (the
                                        unit that people read), description (what its facts say)
    entity2id.txt, relation2id.txt      the paper's id maps: name TAB id; they fix the order of ids

and, given by the caller, label files: id TAB label, for relations also TAB description. A mistake in one of these is a
`DataError`: they are small, and made by hand.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_lines
from hynt.formats.lines import read_object, text_lines
from hynt.formats.source_files import bare_name
from hynt.formats.values import as_description, check_name
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.storage import is_graph, saved_names
from hynt.graph.units.conversion import display_of, with_display
from hynt.graph.vocabulary import Entity, RelationKind, Scale
from hynt.names import advice_on, shortened

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
_IGNORED = frozenset({"count", "min", "max", "description"})  # what the data says better, and what entities do not keep


class LabelFile(NamedTuple):
    """A file of labels that the caller gave, and the ids in it."""

    path: Path
    what: str  # "entity" or "relation"
    ids: tuple[str, ...]


class Declarations(NamedTuple):
    """Everything the sidecars and label files say."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[RelationDeclaration, ...] = ()
    fixes_order: bool = False  # whether the entities' ids follow this order, whether or not facts come in another
    labelled: tuple[LabelFile, ...] = ()


def read_declarations(
    source: Path, *, entity_labels: Path | None = None, relation_labels: Path | None = None
) -> Declarations:
    """What stands beside the facts of a folder, with labels from the given files. A single file has no sidecars; a
    saved graph says it itself."""
    if is_graph(source):
        held, known = saved_names(source)
        found = (RelationDeclaration(*one[:5], description=one.description) for one in known)
        return Declarations(held, tuple(found), fixes_order=True)
    entities = {name: Entity(name) for name in _id_map(source, "entity2id.txt")}
    for row, _ in _rows(source, "entities", ("id", "label", "type")):
        entities[row["id"]] = Entity(row["id"], row["label"], row["type"])
    fixes_order = bool(entities)
    relations = {name: RelationDeclaration(name) for name in _id_map(source, "relation2id.txt")}
    for row, where in _rows(source, "relations", ("id", "label", "kind", "unit", "scale", "display", "description")):
        relations[row["id"]] = _relation(row, where)
    labelled: list[LabelFile] = []
    for path, what in ((entity_labels, "entity"), (relation_labels, "relation")):
        labels = {} if path is None else read_labels(path, described=what == "relation")
        if path is not None:
            labelled.append(LabelFile(path, what, tuple(labels)))
        for name, (label, description) in labels.items():
            if what == "entity":
                entities[name] = entities.get(name, Entity(name))._replace(label=label)
            else:
                one = relations.get(name, RelationDeclaration(name))
                relations[name] = one._replace(label=label, description=description or one.description)
    return Declarations(tuple(entities.values()), tuple(relations.values()), fixes_order, tuple(labelled))


def labels_without_use(file: LabelFile, known: Iterable[str]) -> list[str]:
    """What to say of labels whose ids the graph does not have: often theirs differ by a suffix."""
    names = set(known)
    unused = [name for name in file.ids if name not in names]
    if not unused:
        return []
    example = repr(shortened(unused[0]))
    ordered = sorted(names)
    for name in unused:
        longer = ordered[bisect_left(ordered, name) % len(ordered)]
        if longer.startswith(name):
            example = f"{shortened(name)!r}, while it has {shortened(longer)!r}"
            break
    return [
        f"{len(unused):,} of {len(file.ids):,} labels in {file.path} belong to no {file.what} of this graph, such as "
        f"{example}."
    ]


def write_declarations(graph: KnowledgeGraph, folder: Path) -> list[Path]:
    """Write entities.jsonl and relations.jsonl, in the order of ids, so that an import gives the same graph."""
    entities, relations = folder / "entities.jsonl", folder / "relations.jsonl"
    write_lines(entities, (_json(id=entity.name, label=entity.label, type=entity.type) for entity in graph.entities))
    write_lines(
        relations,
        (
            _json(
                id=name,
                label=label,
                kind=kind,
                unit=unit,
                scale=scale if kind == "number" else "",
                display=display_of(unit),
                description=description,
            )
            for name, kind, unit, scale, label, description in graph.relations
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
                f"{shortened(row[column])!r} is not a {column} of a relation.",
                where=where,
                advice=advice_on(row[column][:100], [name for name in known if name]),
            )
    if row["display"]:
        try:
            with_display(row["unit"], row["display"])
        except DataError as problem:
            raise DataError.of(problem, where) from None
    said: dict[str, Any] = {**row, "kind": _KINDS[row["kind"]], "scale": _SCALES[row["scale"]]}
    return RelationDeclaration(said.pop("id"), **said)


def _json(**columns: str) -> str:
    return json.dumps({column: text for column, text in columns.items() if text}, ensure_ascii=False)


# Small files beside the facts, row by row: tables, id maps and label files. Any mistake in them is a `DataError`.

ID_COLUMNS = ("id", "name", "relation", "entity")
"""What the column of ids may be called; every one of them is read as "id"."""


def find_sidecar(folder: Path, names: Collection[str]) -> Path | None:
    """The file of one of these names, plain or compressed, in a folder; two of them are an error."""
    if not folder.is_dir():
        return None
    found = sorted(path for path in folder.iterdir() if bare_name(path.name) in names)
    if len(found) > 1:
        raise DataError(
            f"both {found[0].name} and {found[1].name} are there, and could disagree.",
            where=str(folder),
            advice="Keep one of them.",
        )
    return found[0] if found else None


def read_rows(path: Path, columns: tuple[str, ...], ignored: Collection[str]) -> Iterator[tuple[dict[str, str], str]]:
    """The rows of a .jsonl or .tsv table as column → text, each with its place; columns that are absent hold ""."""
    rows = _json_rows(path) if bare_name(path.name).endswith(".jsonl") else _table_rows(path)
    seen: set[str] = set()
    for given, where in rows:
        row = dict.fromkeys(columns, "")
        for column, text in given.items():
            known = "id" if column in ID_COLUMNS else column
            if known in row:
                row[known] = as_description(text) if known == "description" else text
            elif column not in ignored:
                raise DataError(
                    f"the column {shortened(column)!r} is not known here.",
                    where=where,
                    advice=advice_on(column[:100], columns),
                )
        try:
            check_name(row["id"], "id")
            for text in row.values():
                if text:
                    check_name(text, "text")
        except RecordProblem as problem:
            raise DataError.of(problem, where) from None
        if row["id"] in seen:
            raise _twice(row["id"], where)
        seen.add(row["id"])
        yield row, where


def read_id_map(path: Path) -> list[str]:
    """The names of an id map, `name TAB id` after an optional count, in the order of their ids 0, 1, 2 …"""
    names: dict[int, str] = {}
    declared = None
    seen: set[str] = set()
    for line, where in lines_of(path):
        cells = line.split("\t")
        if where.endswith(":1") and len(cells) == 1 and _is_id(line):
            declared = int(line)
            continue
        if len(cells) != 2 or not cells[0] or not _is_id(cells[1]):
            raise DataError("is not a pair of a name and an id.", where=where, advice="Write: name TAB id.")
        if cells[0] in seen:
            raise _twice(cells[0], where)
        if int(cells[1]) in names:
            raise _twice(cells[1], where)
        seen.add(cells[0])
        names[int(cells[1])] = cells[0]
    if sorted(names) != list(range(len(names))):
        raise DataError(
            f"the ids are not 0 to {len(names) - 1} without gaps.", where=str(path), advice="Number the names from 0."
        )
    if declared is not None and declared != len(names):
        raise DataError(
            f"the first line says {declared:,} names, but there are {len(names):,}.",
            where=f"{path}:1",
            advice="The file may be cut short: get it again or correct the line.",
        )
    return [names[identity] for identity in range(len(names))]


def read_labels(path: Path, *, described: bool = False) -> dict[str, tuple[str, str]]:
    """Labels and descriptions by id, from lines of `id TAB label` and, where names may be `described`, a third cell; a
    later line for the same id must agree.
    """
    labels: dict[str, tuple[str, str]] = {}
    for line, where in lines_of(path):
        identity, *said = line.split("\t")
        if not identity or len(said) not in (1, 1 + described) or not said[0]:
            raise DataError(
                "is not a pair of an id and a label.",
                where=where,
                advice=f"Write: id TAB label{', and TAB description where there is one' if described else ''}.",
            )
        told = (said[0], as_description("".join(said[1:])))
        if labels.setdefault(identity, told) != told:
            raise _twice(identity, where)
    return labels


def _json_rows(path: Path) -> Iterator[tuple[dict[str, str], str]]:
    for line, where in lines_of(path):
        try:
            record = read_object(line)
        except RecordProblem as problem:
            raise DataError.of(problem, where) from None
        for key, value in record.items():
            if not isinstance(value, str):
                raise DataError(
                    f"the value of {shortened(key)!r} is not a text.", where=where, advice="Write it in quotes."
                )
        yield record, where


def _table_rows(path: Path) -> Iterator[tuple[dict[str, str], str]]:
    header: list[str] | None = None
    for line, where in lines_of(path):
        cells = line.split("\t")
        if header is None:
            header = cells
            if len(set(header)) != len(header) or not set(header) & set(ID_COLUMNS):
                raise DataError(
                    "the first line is not a header with an id column.",
                    where=where,
                    advice="Name the columns: id, label, …",
                )
        elif len(cells) != len(header):
            raise DataError(
                f"{len(cells)} columns where the header has {len(header)}.",
                where=where,
                advice="Separate columns with one tab each.",
            )
        else:
            yield dict(zip(header, cells, strict=True)), where


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Lines that are not blank, with their places; the first one that is no clean text is an error."""
    report = ReadReport()
    for line in text_lines(path, ReadOptions(), report):
        _refuse_problems(report)
        if line:
            yield line, report.where
    _refuse_problems(report)


def _refuse_problems(report: ReadReport) -> None:
    if report.problems:
        where, _, what, advice = report.problems[0]
        raise DataError(what, where=where, advice=advice)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _twice(name: str, where: str) -> DataError:
    return DataError(f"{shortened(name)!r} is listed twice.", where=where, advice="Keep one of the lines.")
