"""A graph: facts in splits, the vocabulary that gives them ids, names and units for people, and where it all came
from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.graph.fact import Fact
from hynt.graph.fact_table import FactTable
from hynt.graph.splitting import SPLITS
from hynt.graph.vocabulary import Entity, Relation, Vocabulary

# The manifest of a saved graph: what it is, where it came from, and the hash of every file.

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
_MAX_BYTES = 4 * 2**20


@dataclass(frozen=True)
class FileRecord:
    """One file of a saved graph."""

    sha256: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class Manifest:
    """Facts about a graph that are not facts of it."""

    name: str = ""
    source: str = ""  # what it was made from, in the maker's words; never an absolute path
    format: str = ""
    licence: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    importing: Mapping[str, Any] = field(default_factory=dict)  # read = kept + rejected, duplicates, splits, …
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """The file's whole text. It holds its own hash, so that a changed byte shows here too."""
        content = asdict(self)
        digest = hashlib.sha256(_text(content).encode()).hexdigest()
        return _text({**content, "manifest_sha256": digest})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, refused when it is missing, damaged or of a schema this version cannot read."""
    path = folder / MANIFEST_NAME
    again = "Import the graph again, or restore the file."
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataError("the manifest is larger than any manifest.", where=str(path), advice=again)
        text = path.read_bytes()
        content = json.loads(text)
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            word = "newer" if isinstance(version, int) and version > SCHEMA_VERSION else "unknown"
            raise DataError(
                f"the graph has schema version {version!r}, {word} to this hynt, which reads version {SCHEMA_VERSION}.",
                where=str(path),
                advice="Upgrade hynt, or import the graph again from its source.",
            )
        del content["manifest_sha256"]
        files = {name: FileRecord(**record) for name, record in content.pop("files").items()}
        manifest = Manifest(**content, files=files)
        if manifest.to_json().encode() != text:
            raise DataError("the manifest was changed: its hash is not its own.", where=str(path), advice=again)
        return manifest
    except FileNotFoundError:
        raise DataError(
            "this folder is not a saved graph: it has no manifest.json.",
            where=str(folder),
            advice="Make one with: hynt data import SOURCE --format F --out DIR.",
        ) from None
    except OSError as problem:
        raise DataError(f"the manifest cannot be read: {problem.strerror}.", where=str(path), advice=again) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError("the manifest is damaged.", where=str(path), advice=again) from None


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph:
    """Facts with ids; `entities` holds names and types for people, aligned with the vocabulary's entity ids."""

    vocabulary: Vocabulary
    splits: Mapping[str, FactTable]  # some of train, valid, test, in this order
    entities: tuple[Entity, ...]
    manifest: Manifest = field(default_factory=Manifest)

    def __post_init__(self) -> None:
        if [split for split in SPLITS if split in self.splits] != list(self.splits):
            raise UsageError(f"splits are {', '.join(SPLITS)} in this order, not {', '.join(self.splits)}.")

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations by id, with kind, unit and label."""
        return self.vocabulary.relations

    @property
    def name(self) -> str:
        return self.manifest.name

    def __len__(self) -> int:
        """How many facts all splits hold together."""
        return sum(len(table) for table in self.splits.values())

    def __repr__(self) -> str:
        """What it holds, in one line: the facts themselves may be millions."""
        splits = ", ".join(f"{name} {len(table):,}" for name, table in self.splits.items())
        numeric = int(self.vocabulary.relation_is_number.sum())
        return (
            f"<graph {self.name or 'without a name'}: {len(self):,} facts ({splits}), {len(self.entities):,} entities, "
            f"{len(self.relations):,} relations, {numeric:,} of them with numbers>"
        )

    def split(self, name: str) -> FactTable:
        """The facts of a split."""
        if name not in self.splits:
            raise UsageError(
                f"this graph has no split {name!r}.", where="split", advice=f"It has {', '.join(self.splits)}."
            )
        return self.splits[name]

    def facts(self, split: str | None = None) -> Iterator[Fact]:
        """Facts one by one with names and units, of one split or of all."""
        for name in [split] if split else list(self.splits):
            yield from self.split(name).facts(self.vocabulary)

    @cached_property
    def entity_labels(self) -> tuple[str, ...]:
        """A name to show for each entity id: its label, or the id itself where it has none."""
        return tuple(entity.label or entity.name for entity in self.entities)

    @cached_property
    def relation_labels(self) -> tuple[str, ...]:
        """A name to show for each relation id."""
        return tuple(relation.label or relation.name for relation in self.relations)

    def __eq__(self, other: object) -> bool:
        """The same facts in the same order under the same names; the manifest is not compared."""
        if not isinstance(other, KnowledgeGraph):
            return NotImplemented
        return (
            self.vocabulary == other.vocabulary
            and self.entities == other.entities
            and list(self.splits) == list(other.splits)
            and all(self.splits[name] == other.splits[name] for name in self.splits)
        )

    __hash__ = None  # type: ignore[assignment]
