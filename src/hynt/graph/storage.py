"""A graph as a folder: Parquet for facts and names, a manifest with the hash of each file.

    GRAPH/manifest.json  entities.parquet  relations.parquet  train.parquet  valid.parquet  test.parquet

Written whole or not at all (a new folder beside the target, flushed to disk, then renamed). On load every file is
checked against its hash, so a changed byte is found and named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.errors import DataError, UsageError
from hynt.files import MANIFEST_NAME, check_hash, new_folder, sha256_of
from hynt.graph.assembly import Assembly
from hynt.graph.columns import FACT_SCHEMA, Names, bounded_table
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import FileRecord, KnowledgeGraph, Manifest, read_manifest
from hynt.graph.splitting import SPLITS
from hynt.graph.units.conversion import display_of, with_display
from hynt.graph.vocabulary import Entity, Relation, RelationKind, Scale, Vocabulary
from hynt.leftovers import recover
from hynt.limits import LARGEST_INDEX
from hynt.names import nearest

BUILT_IN = ("world",)
_NAME_TABLES = {
    f"{file}.parquet": pa.schema([pa.field(name, pa.string(), nullable=False) for name in columns])
    for file, columns in (
        ("entities", ("entity", "label", "type")),
        ("relations", ("relation", "label", "kind", "unit", "scale")),
    )
}


def save_graph(graph: KnowledgeGraph, folder: Path, *, overwrite: bool = False) -> Manifest:
    """Write a graph that is in memory."""
    tables = {name: [table] for name, table in graph.splits.items()}
    return _save(graph.vocabulary, graph.entities, tables, graph.manifest, folder, overwrite)


def save_assembly(assembly: Assembly, manifest: Manifest, folder: Path, *, overwrite: bool = False) -> Manifest:
    """Write a graph that may be larger than memory, chunk by chunk."""
    tables = {name: assembly.tables(name) for name in assembly.split_names}
    return _save(assembly.vocabulary, assembly.entities, tables, manifest, folder, overwrite)


def load_graph(source: str | os.PathLike[str]) -> KnowledgeGraph:
    """A graph from its folder, or a built-in one by name (`world`; write `./world` for a folder of that name).

    >>> hynt.load_graph("world") == hynt.read_graph("world")
    True
    """
    folder = graph_folder(source)
    manifest = read_manifest(folder)
    needed = set(_NAME_TABLES)
    names = [split for split in SPLITS if f"{split}.parquet" in manifest.files]
    unknown = set(manifest.files) - needed - {f"{split}.parquet" for split in SPLITS}
    if not needed <= set(manifest.files) or not names or unknown:
        what = "the manifest does not list the files of a graph."
        raise DataError(what, where=str(folder / MANIFEST_NAME), advice="Import the graph again.")
    files = {name: _checked(folder, name, record) for name, record in manifest.files.items()}
    entities, relations = _names(folder, files, manifest)
    vocabulary = Vocabulary(tuple(entity.name for entity in entities), relations)
    _ = vocabulary.entity_ids, vocabulary.relation_ids  # refuses a name that is listed twice
    lookup = Names(vocabulary)
    splits = {}
    for split in names:
        path = folder / f"{split}.parquet"
        splits[split] = lookup.from_columns(_read(files[path.name], FACT_SCHEMA, path), str(path))
    return KnowledgeGraph(vocabulary, splits, entities, manifest)


def saved_names(folder: Path) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """The entities and relations of a saved graph, without its facts."""
    manifest = read_manifest(folder)
    listed = {name: _checked(folder, name, manifest.files[name]) for name in _NAME_TABLES}
    return _names(folder, listed, manifest)


def _names(
    folder: Path, files: Mapping[str, pa.Buffer], manifest: Manifest
) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    rows = {name: _rows(files[name], schema, folder / name) for name, schema in _NAME_TABLES.items()}
    relations = (_relation(row, manifest, folder / "relations.parquet") for row in rows["relations.parquet"])
    return tuple(Entity(*row) for row in rows["entities.parquet"]), tuple(relations)


def graph_folder(source: str | os.PathLike[str]) -> Path:
    """Where a graph is: the package's own folder for a built-in name, else the path itself."""
    if str(source) in BUILT_IN:
        return Path(str(resources.files("hynt") / "world" / "graph"))
    folder = Path(source)
    recover(folder)
    if folder.is_file():
        raise UsageError(
            "this is a file, and a graph is a folder.",
            where=str(source),
            advice=f"Import it first: hynt data import {source} --out GRAPH.",
        )
    if not folder.is_dir():
        near = nearest(str(source), BUILT_IN)
        meant = f"Did you mean {near}? " if near else ""
        raise UsageError(
            f"there is no graph at {str(source)!r}.",
            advice=f"{meant}Give a folder made by `hynt data import`, or a built-in name: {', '.join(BUILT_IN)}.",
        )
    if (folder / "config.toml").is_file() and (folder / MANIFEST_NAME).is_file() and not is_graph(folder):
        advice = f"Save its graph, with all updates, in Python: hynt.read_graph({str(source)!r}).save(GRAPH)."
        raise UsageError("this is a run, not a graph.", where=str(source), advice=advice)
    return folder


def is_graph(folder: Path) -> bool:
    """Whether this is the folder of a graph, and not that of a run, which has a manifest too."""
    return (folder / MANIFEST_NAME).is_file() and (folder / "entities.parquet").is_file()


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Refuses a folder that a graph would not be saved to; also called before hours of reading."""
    if folder.exists() and not overwrite:
        raise UsageError(
            f"{folder} exists already.", where="out", advice="Choose another folder, or say --overwrite to replace it."
        )
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not is_graph(folder))):
        raise UsageError(
            f"{folder} is not a saved graph, so it is not replaced.", where="out", advice="Choose another folder."
        )


def _save(
    vocabulary: Vocabulary,
    entities: Iterable[Entity],
    tables: Mapping[str, Iterable[FactTable]],
    manifest: Manifest,
    folder: Path,
    overwrite: bool,
) -> Manifest:
    folder = Path(folder)
    check_target(folder, overwrite=overwrite)
    counts = {"entities": vocabulary.entity_count, "relations": vocabulary.relation_count}
    counts["number_relations"] = int(vocabulary.relation_is_number.sum())
    names = Names(vocabulary)
    relations = [(r.name, r.label, r.kind, r.unit, r.scale) for r in vocabulary.relations]
    told = {"entities.parquet": entities, "relations.parquet": relations}
    with new_folder(folder, overwrite=overwrite) as staging:
        rows = {
            name: _write(staging / name, schema, [_batch(schema, told[name])]) for name, schema in _NAME_TABLES.items()
        }
        for split, chunks in tables.items():
            batches = (names.to_columns(chunk) for chunk in chunks)
            rows[f"{split}.parquet"] = counts[split] = _write(staging / f"{split}.parquet", FACT_SCHEMA, batches)
        paths = {name: staging / name for name in rows}
        files = {name: FileRecord(sha256_of(path), path.stat().st_size, rows[name]) for name, path in paths.items()}
        displays = {r.name: found for r in vocabulary.relations if (found := display_of(r.unit))}
        said = {r.name: r.description for r in vocabulary.relations if r.description}
        manifest = replace(manifest, counts=counts, files=files, display_units=displays, descriptions=said)
        text = manifest.to_json().encode()
        if len(text) > LARGEST_INDEX:  # only descriptions grow with the graph
            raise DataError(
                f"the manifest would take {len(text):,} bytes, and at most {LARGEST_INDEX:,} are read: the "
                "descriptions of relations are too long together.",
                where=str(folder),
                advice="Give shorter ones with --relation-labels FILE (id TAB name TAB description).",
            )
        (staging / MANIFEST_NAME).write_bytes(text)
    return manifest


def _write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _batch(schema: pa.Schema, rows: Iterable[tuple[str, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.record_batch([pa.array(column, type=pa.string()) for column in columns], schema=schema)


def _checked(folder: Path, name: str, record: FileRecord) -> pa.Buffer:
    """A file's bytes, mapped into memory, once they are known to be the ones that were written."""
    path = check_hash(folder, name, {name: record.sha256}, "Restore the file from a copy, or import the graph again.")
    with pa.memory_map(str(path)) as mapped:
        return mapped.read_buffer()


def _read(buffer: pa.Buffer, schema: pa.Schema, path: Path) -> pa.Table:
    try:
        return bounded_table(buffer, schema.names, str(path)).cast(schema)
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        raise DataError(
            f"the file is not one that hynt wrote: {str(problem).splitlines()[0]}.",
            where=str(path),
            advice="Import the graph again.",
        ) from None


def _rows(buffer: pa.Buffer, schema: pa.Schema, path: Path) -> Iterable[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in _read(buffer, schema, path).columns]
    if any(value is None for column in columns for value in column):
        raise DataError("a name is missing.", where=str(path), advice="Import the graph again.")
    return zip(*columns, strict=True)


def _relation(row: tuple[str, str, str, str, str], manifest: Manifest, path: Path) -> Relation:
    name, label, kind, unit, scale = row
    if kind not in get_args(RelationKind) or scale not in get_args(Scale):
        what = f"the relation {name!r} has the kind {kind!r} and scale {scale!r}."
        raise DataError(what, where=str(path), advice="Import the graph again.")
    unit = with_display(unit, manifest.display_units.get(name, ""))
    said = manifest.descriptions.get(name, "")
    return Relation(name, cast(RelationKind, kind), unit, cast(Scale, scale), label, said)
