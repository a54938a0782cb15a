"""A graph: facts in splits, the vocabulary that gives them ids, names and units for people, and where it all came
from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import DataError, UsageError
from hynt.files import MANIFEST_NAME, check_regular
from hynt.graph.fact import Fact
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.seen_values import SeenValues
from hynt.graph.splitting import SPLITS, SplitRule
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from hynt.limits import LARGEST_INDEX
from hynt.names import advice_on, plural
from hynt.results import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.graph.changes import HeldOutEntities
    from hynt.graph.entity_facts import EntityFacts
    from hynt.graph.lookup import EntityPosition, NameLookup
    from hynt.graph.outliers import OutlierReport
    from hynt.graph.relation_in_use import RelationInUse
    from hynt.graph.statistics import GraphStatistics

# The manifest of a saved graph: what it is, where it came from, and the hash of every file.

SCHEMA_VERSION = 1


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
    display_units: Mapping[str, str] = field(default_factory=dict)  # relation → the unit that people read it in
    descriptions: Mapping[str, str] = field(default_factory=dict)  # relation → what its facts say, where known

    def to_json(self) -> str:
        """The file's whole text. It holds its own hash, so that a changed byte shows here too."""
        content = asdict(self)
        for name in ("display_units", "descriptions"):
            if not content[name]:  # as graphs were kept before there were any
                del content[name]
        digest = hashlib.sha256(_text(content).encode()).hexdigest()
        return _text({**content, "manifest_sha256": digest})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, refused when it is missing, damaged or of a schema this version cannot read."""
    path = folder / MANIFEST_NAME
    again = "Import the graph again, or restore the file."
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST_INDEX:
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
        if not _is_sound(manifest):
            raise DataError("the manifest is not that of a graph.", where=str(path), advice=again)
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


def _is_sound(manifest: Manifest) -> bool:
    """Whether each entry is of its kind: whoever makes a manifest by hand can make its hash, too."""
    texts = (manifest.name, manifest.source, manifest.format, manifest.licence)
    said, numbers = (manifest.display_units, manifest.descriptions), manifest.counts
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(part, dict) for part in (*said, numbers, manifest.importing))
        and all(isinstance(text, str) for part in said for text in part.values())
        and all(isinstance(count, int) for count in numbers.values())
        and all(isinstance(record.sha256, str) for record in manifest.files.values())
        and all(isinstance(size, int) for record in manifest.files.values() for size in (record.bytes, record.rows))
    )


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph(Table):
    """Facts in splits, with the entities and relations they mention. A graph is immutable: each change makes a new one.

    `entities` holds names and types for people, aligned with the vocabulary's entity ids.

    >>> graph = hynt.read_graph("world")
    >>> list(graph.splits)
    ['train', 'valid', 'test']
    >>> "Japan" in graph
    True
    >>> graph.relations[0].name, graph.relations[0].unit
    ('GDP PPP', 'USD')
    """

    vocabulary: Vocabulary
    splits: Mapping[str, FactTable]  # some of train, valid, test, in this order
    entities: tuple[Entity, ...]
    manifest: Manifest = field(default_factory=Manifest)

    def __post_init__(self) -> None:
        if [split for split in SPLITS if split in self.splits] != list(self.splits):
            what = f"splits are {', '.join(SPLITS)} in this order, not {', '.join(self.splits)}."
            raise UsageError(what, advice="Give them in this order.")

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
            f"<graph {self.name or 'without a name'}: {plural(len(self), 'fact')} ({splits}), "
            f"{plural(len(self.entities), 'entity', 'entities')}, {plural(len(self.relations), 'relation')}, "
            f"{numeric:,} of them with numbers>"
        )

    def _repr_html_(self) -> str:
        from hynt.graph.entity_facts import graph_html

        return graph_html(self)

    def __iter__(self) -> Iterator[Fact]:
        """The facts of all splits, one by one."""
        return self.facts()

    def __contains__(self, name: object) -> bool:
        """Whether an entity has this id or name."""
        return isinstance(name, str) and self.names.has_entity(name)

    def __getitem__(self, entity: str) -> EntityFacts:
        """The facts of an entity, by its id or name: those it is the head of first, then the others.

        >>> facts = hynt.read_graph("world")["Japan"]
        >>> facts[0].head
        'country/Japan'
        >>> print(facts.texts()[0])
        Japan · GDP PPP · 5,715,000,000,000 USD (point in time 2024)
        """
        from hynt.graph.entity_facts import facts_of

        return facts_of(self, self.names.entity(entity))

    @cached_property
    def names(self) -> NameLookup:
        """From what people write to ids."""
        from hynt.graph.lookup import NameLookup

        return NameLookup(self)

    @cached_property
    def seen_in_training(self) -> SeenValues:
        """The entities and relations that the training split has at each place."""
        return SeenValues.of([self.split("train")], self.vocabulary.relation_is_number)

    def split(self, name: str) -> FactTable:
        """The facts of a split as columns of ids.

        >>> graph = hynt.read_graph("world")
        >>> len(graph.split("test")) == len(list(graph.facts("test")))
        True
        """
        if name not in self.splits:
            alone = " alone: with more facts, an import sets some aside as valid and test"
            advice = f"It has {', '.join(self.splits)}{alone if tuple(self.splits) == ('train',) else ''}."
            raise UsageError(f"this graph has no split {name!r}.", where="split", advice=advice)
        return self.splits[name]

    def columns(self, splits: Iterable[str] | None = None) -> FactTable:
        """The facts of these splits, or of all, as columns of ids.

        >>> graph = hynt.read_graph("world")
        >>> len(graph.columns()) == len(graph), len(graph.columns(["valid", "test"])) < len(graph)
        (True, True)
        """
        return concatenate([self.split(name) for name in (self.splits if splits is None else splits)])

    def facts(self, split: str | None = None) -> Iterator[Fact]:
        """Facts one by one with names and units, of one split or of all.

        >>> graph = hynt.graph_from_facts([("Ann", "knows", "Bob"), ("Ann", "height", hynt.number(1.7, "m"))])
        >>> for fact in graph.facts("train"):
        ...     print(fact.head, fact.relation, fact.tail)
        Ann knows Bob
        Ann height Number(value=1.7, literal='1.7', unit='m')
        """
        for name in [split] if split else list(self.splits):
            yield from self.split(name).facts(self.vocabulary)

    def to_arrow(self, split: str | None = None) -> pa.Table:
        """An Arrow table with a row per fact: its split, head, relation, tail as entity or number, and qualifiers.

        >>> hynt.read_graph("world").to_arrow("test").column_names
        ['split', 'head', 'relation', 'tail_entity', 'tail_number', 'tail_literal', 'tail_unit', 'qualifiers']
        """
        from hynt.graph.columns import table_with_units

        return table_with_units(self, [split] if split else list(self.splits))

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the graph as a folder of Parquet files with a manifest, whole or not at all.

        >>> graph = hynt.graph_from_facts([("Ann", "knows", "Bob")])
        >>> graph.save("people")
        >>> hynt.read_graph("people") == graph
        True
        """
        from hynt.graph.storage import save_graph

        save_graph(self, Path(folder), overwrite=overwrite)

    def resplit(
        self, shares: str | tuple[float, float, float] = "8:1:1", *, seed: int = 0, by: Sequence[str] = ()
    ) -> KnowledgeGraph:
        """The same facts in new splits, drawn by their content as an import draws them. Facts that agree in all of
        `by`, some of head, relation and tail, stay together.

        >>> graph = hynt.read_graph("world").resplit("6:2:2", by=("head", "relation"))
        >>> len(graph.split("train")) < 0.75 * len(graph)
        True
        """
        from hynt.graph.assembly import with_new_splits

        return with_new_splits(self, SplitRule.of(shares, seed, by))

    def hold_out(self, share: float = 0.1, *, seed: int = 0, observed: float = 0.7) -> HeldOutEntities:
        """Two graphs: one to train on, without a share of the entities, and one to ask about these. In the second, a
        share of their facts is `observed`, and the rest are its valid and test splits. Hubs are never held out.

        >>> held = hynt.read_graph("world").hold_out(0.1)
        >>> held.entities[0] in held.training, held.entities[0] in held.asked
        (False, True)
        """
        from hynt.graph.changes import hold_out

        return hold_out(self, share, seed, observed)

    def statistics(self) -> GraphStatistics:
        """Counts of everything, and the numbers of each relation.

        >>> hynt.graph_from_facts([("Ann", "knows", "Bob")]).statistics().counts.entities
        2
        """
        from hynt.graph.statistics import graph_statistics

        return graph_statistics(self)

    def outliers(self, limit: int = 20) -> OutlierReport:
        """The range that the numbers of each relation are expected in, and the `limit` numbers that lie furthest
        outside.

        >>> found = hynt.read_graph("world").outliers(limit=3)
        >>> len(found.suspicious), found.to_dict()["found"] == found.found
        (3, True)
        """
        from hynt.graph.outliers import find_outliers

        return find_outliers(self, limit=limit)

    def facts_of(self, entity: str, *, limit: int | None = None, position: EntityPosition | None = None) -> EntityFacts:
        """The facts of an entity, as `graph[entity]` gives them: at most `limit`, of as many relations as possible, or
        only those where it stands at a position, "head", "tail" or "value", which also settles a name that several
        share.

        >>> few = hynt.read_graph("world").facts_of("Japan", limit=3, position="tail")
        >>> len(few), {fact["tail"]["label"] for fact in few.to_dict()["facts"]}
        (3, {'Japan'})
        """
        from hynt.graph.entity_facts import facts_of
        from hynt.graph.lookup import POSITIONS

        if position is not None and position not in POSITIONS:
            advice = advice_on(position, POSITIONS)
            raise UsageError(f"there is no position {position!r}.", where="position", advice=advice)
        positions = POSITIONS if position is None else (position,)
        return facts_of(self, self.names.entity(entity, position), limit=limit, positions=positions)

    def relation_in_use(self, relation: str) -> RelationInUse:
        """What a relation means and how it is used: its numbers, its commonest tails, what stands beside it, and
        examples.

        >>> found = hynt.read_graph("world").relation_in_use("capital")
        >>> found["relation"]["kind"], len(found["examples"]) > 0
        ('entity', True)
        """
        from hynt.graph.relation_in_use import RelationInUse

        return RelationInUse.of(self, relation)

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
