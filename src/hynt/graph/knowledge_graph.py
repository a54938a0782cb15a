"""A graph: facts in splits, the vocabulary that gives them ids, names and units for people, and where it all came
from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hynt.errors import UsageError
from hynt.graph.fact import Fact
from hynt.graph.fact_table import FactTable
from hynt.graph.manifest import Manifest
from hynt.graph.splitting import SPLITS
from hynt.graph.vocabulary import Entity, Relation, Vocabulary


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
