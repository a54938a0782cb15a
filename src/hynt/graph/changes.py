"""Graphs made of other graphs: facts added and taken away, two graphs joined, entities merged. What was there keeps its
spelling and, unless names go, its ids.

Entities can be kept out of training, to see how well a model answers about what it never met. Every fact that names a
held-out entity leaves the training graph. A share of these facts is observed, so that the
entities are known by something, and the rest is asked. Which entities and which facts follows from their names, their
content and the seed, so that facts added elsewhere change nothing. Hubs are left alone: without them the rest of the
graph would be another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.files import new_folder
from hynt.graph.columns import ChunkStore
from hynt.graph.content_hash import Hashes, distinct, mixed, name_hashes, repeats
from hynt.graph.encoding import FactEncoder, RelationDeclaration, describe
from hynt.graph.fact import Fact
from hynt.graph.fact_table import ENTITY_KIND, FactTable, components, concatenate, empty_table
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.splitting import SPLITS
from hynt.graph.vocabulary import Entity, Flags, Ids, Relation, Vocabulary


def fact_hashes(table: FactTable, vocabulary: Vocabulary) -> Hashes:
    """(n, 2) the content of each fact, whatever ids its names have."""
    return vocabulary.fingerprints.facts(table)


def same_facts(one: Hashes, other: Hashes) -> Flags:
    """(n,) whether each fact of the first is among the second, by their content."""
    first, content = distinct(np.concatenate([other, one]))
    return np.asarray(first[content[len(other) :]] < len(other))


def with_shuffled_numbers(table: FactTable, relation_is_number: Flags, seed: int = 0) -> FactTable:
    """The same facts with the numbers of each relation shuffled among them, tails and qualifiers alike: whatever a
    model then owes to numbers, it owes to how many there are and how they spread.
    """
    relation = np.concatenate([table.relation, table.qualifier_relation])
    at = np.flatnonzero(relation_is_number[relation])
    chance = np.random.default_rng(seed).random(len(at))
    taken = np.arange(len(relation))
    taken[at[np.lexsort((at, relation[at]))]] = at[np.lexsort((chance, relation[at]))]
    number = np.concatenate([table.tail_number, table.qualifier_number])[taken]
    literal = pa.concat_arrays([table.tail_literal, table.qualifier_literal]).take(pa.array(taken))
    cut = len(table)
    return replace(
        table,
        tail_number=number[:cut],
        tail_literal=literal[:cut],
        qualifier_number=number[cut:],
        qualifier_literal=literal[cut:],
    )


def seen_triplets(asked: FactTable, learned: FactTable, vocabulary: Vocabulary) -> Flags:
    """(n,) whether the triplet of each asked fact is that of a learned one, whatever qualifiers the two have."""
    triplet = ("head", "relation", "tail")
    return same_facts(*(vocabulary.fingerprints.parts(one, triplet) for one in (asked, learned)))


def encoded(
    facts: Iterable[Fact], vocabulary: Vocabulary, labels: Sequence[Entity] = ()
) -> tuple[FactTable, Vocabulary]:
    """Facts as columns in the ids of a vocabulary, which grows by the names it lacks, with their `labels`. A fact that
    does not fit it, such as one with an entity where the relation carries numbers, is a `DataError` that says which
    one it is.
    """
    with ChunkStore() as store:
        encoder = FactEncoder(store, convert_units=False, strict=True)
        encoder.declare_entities(vocabulary.entities)
        for relation in vocabulary.relations:
            encoder.declare_relation(RelationDeclaration(*relation[:5]))
        for number, fact in enumerate(facts, 1):
            try:
                encoder.add(fact)
            except RecordProblem as problem:
                if problem.reason == "mixed-relation":  # whose advice is for an import
                    problem.advice = "Give one of the two another name."
                raise DataError.of(problem, f"fact {number}") from None
        for one in labels:
            encoder.name_relation(one.name, one.label)
        relations = encoder.finish()
        known = tuple(vocabulary.relations)
        return concatenate(list(store)) if store.fact_count else empty_table(), Vocabulary(
            tuple(encoder.entity_ids), (*known, *relations[len(known) :])
        )


def with_facts(graph: KnowledgeGraph, facts: Iterable[Fact], labels: Sequence[Entity] = ()) -> KnowledgeGraph:
    """The graph and these facts, in its training split, which every model that reads observed facts reads. A fact that
    the graph holds already is a `DataError`; `labels` are those of entities and relations that are new.
    """
    table, vocabulary = encoded(facts, graph.vocabulary, labels)
    hashes = fact_hashes(table, vocabulary)
    known = fact_hashes(graph.columns(), vocabulary)
    twice = same_facts(hashes, known) | repeats(hashes)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise DataError(
            f"the graph holds this already: {describe(table.fact(first, vocabulary))}.",
            where=f"fact {first + 1}",
            advice="Leave it out, or skip known facts (skip_known).",
        )
    splits = {"train": concatenate([graph.splits.get("train", empty_table()), table])} | {
        name: one for name, one in graph.splits.items() if name != "train"
    }
    named = {one.name: one for one in labels}
    new = vocabulary.entities[len(graph.entities) :]
    entities = (*graph.entities, *(named.get(name, Entity(name)) for name in new))
    return _remade(graph, vocabulary, splits, entities)


def are_unknown(graph: KnowledgeGraph, facts: Sequence[Fact]) -> list[bool]:
    """Whether the graph does not hold each of these facts; one that is given twice is unknown the first time."""
    table, vocabulary = encoded(facts, graph.vocabulary)
    hashes = fact_hashes(table, vocabulary)
    known = same_facts(hashes, fact_hashes(graph.columns(), vocabulary))
    found: list[bool] = (~(known | repeats(hashes))).tolist()
    return found


def without_facts(graph: KnowledgeGraph, facts: Sequence[Fact]) -> KnowledgeGraph:
    """The graph without these facts, in whatever split they are. One that it does not hold is a `DataError`."""
    table, vocabulary = encoded(facts, graph.vocabulary)
    hashes = fact_hashes(table, vocabulary)
    known = fact_hashes(graph.columns(), graph.vocabulary)
    missing = ~same_facts(hashes, known)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise DataError(
            f"the graph does not hold this: {describe(facts[first])}.",
            where=f"fact {first + 1}",
            advice="Write it as the graph has it, with all qualifiers: hynt data show lists the facts of an entity.",
        )
    splits = {
        name: one.where(~same_facts(fact_hashes(one, graph.vocabulary), hashes)) for name, one in graph.splits.items()
    }
    return _remade(graph, graph.vocabulary, splits, graph.entities)


def without_entity(graph: KnowledgeGraph, entity: int) -> KnowledgeGraph:
    """The graph without an entity and all facts that name it."""
    gone = np.array([entity], dtype=np.int64)
    splits = {name: one.where(~names_any(one, graph.vocabulary, gone)) for name, one in graph.splits.items()}
    return without_names(_remade(graph, graph.vocabulary, splits, graph.entities), gone)


def without_names(graph: KnowledgeGraph, entities: Ids) -> KnowledgeGraph:
    """The graph without these entities, which none of its facts names."""
    kept = np.ones(graph.vocabulary.entity_count, dtype=np.bool_)
    kept[entities] = False
    return _renamed(graph, np.maximum(np.cumsum(kept) - 1, 0), kept)


def merged(graph: KnowledgeGraph, one: int, other: int) -> KnowledgeGraph:
    """The graph in which two entities are one: all facts of the first are the second's. Facts that thereby become the
    same are kept once in a split.
    """
    if one == other:
        raise UsageError("an entity cannot be merged with itself.", where="merge", advice="Name two entities.")
    kept = np.arange(graph.vocabulary.entity_count) != one
    ids = np.cumsum(kept) - 1
    ids[one] = ids[other]
    made = _renamed(graph, ids, kept)
    splits = {name: table.where(~repeats(fact_hashes(table, made.vocabulary))) for name, table in made.splits.items()}
    return _remade(graph, made.vocabulary, splits, made.entities)


def joined(observed: KnowledgeGraph, asked: KnowledgeGraph) -> KnowledgeGraph:
    """What is observed as train, and the valid and test splits of the other, in one vocabulary. A relation that carries
    entities in one and numbers in the other, or numbers in another unit, is a `UsageError`.
    """
    refuse_other_kinds(observed.vocabulary, asked.vocabulary, "asked")
    first = observed.vocabulary
    lacking = [name for name in asked.vocabulary.entities if name not in first.entity_ids]
    relations = [one for one in asked.relations if one.name not in first.relation_ids]
    vocabulary = Vocabulary((*first.entities, *lacking), (*first.relations, *relations))
    entity = np.array([vocabulary.entity_ids[name] for name in asked.vocabulary.entities], dtype=np.int32)
    relation = np.array([vocabulary.relation_ids[one.name] for one in asked.relations], dtype=np.int32)
    splits = {"train": observed.split("train")} | {
        name: asked.split(name).renumbered(entity, relation, vocabulary.relation_is_number)
        for name in asked.splits
        if name != "train"
    }
    by_name = {one.name: one for one in asked.entities}
    return KnowledgeGraph(
        vocabulary,
        {name: splits[name] for name in SPLITS if name in splits},
        (*observed.entities, *(by_name[name] for name in lacking)),
        replace(asked.manifest, counts={}, files={}),
    )


def refuse_other_kinds(known: Vocabulary, other: Vocabulary, where: str) -> None:
    """Raises a `UsageError` for the first relation that the two take for different things."""
    for relation in other.relations:
        mine = known.relations[known.relation_ids[relation.name]] if relation.name in known.relation_ids else relation
        if (mine.kind, mine.unit) != (relation.kind, relation.unit):
            raise UsageError(
                f"the relation {relation.name!r} has {_values(relation)} there, and {_values(mine)} here.",
                where=where,
                advice="Import the graph with the same units and kinds, or under another relation name.",
            )


def names_any(table: FactTable, vocabulary: Vocabulary, entities: Ids) -> Flags:
    """(n,) whether each fact names one of these entities anywhere."""
    is_number, wanted = vocabulary.relation_is_number, np.zeros(vocabulary.entity_count, dtype=np.bool_)
    wanted[entities] = True
    found = wanted[table.head] | (~is_number[table.relation] & wanted[table.tail_entity])
    inner = ~is_number[table.qualifier_relation] & wanted[table.qualifier_entity]
    found[table.qualifier_owner()[inner]] = True
    return np.asarray(found)


def _values(relation: Relation) -> str:
    if relation.kind == "entity":
        return "entities"
    return f"numbers in {relation.unit}" if relation.unit else "numbers without a unit"


def _renamed(graph: KnowledgeGraph, ids: Ids, kept: Flags) -> KnowledgeGraph:
    """With new ids (entities,), and without the entities that are not `kept`."""
    vocabulary = Vocabulary(
        tuple(name for name, keep in zip(graph.vocabulary.entities, kept.tolist(), strict=True) if keep),
        graph.vocabulary.relations,
    )
    relations = np.arange(vocabulary.relation_count, dtype=np.int32)
    tables = {
        name: one.renumbered(ids.astype(np.int32), relations, vocabulary.relation_is_number)
        for name, one in graph.splits.items()
    }
    entities = tuple(one for one, keep in zip(graph.entities, kept.tolist(), strict=True) if keep)
    return _remade(graph, vocabulary, tables, entities)


def _remade(
    graph: KnowledgeGraph, vocabulary: Vocabulary, splits: dict[str, FactTable], entities: Sequence[Entity]
) -> KnowledgeGraph:
    manifest = replace(graph.manifest, counts={}, files={})
    return KnowledgeGraph(
        vocabulary, {name: splits[name] for name in SPLITS if name in splits}, tuple(entities), manifest
    )


HUBS = 0.01
"""The share of entities, those with the most facts, that are never held out."""


class HeldOutEntities(NamedTuple):
    """A graph to train on, and one to ask about."""

    training: KnowledgeGraph  # with the splits it had; no fact names a held-out entity
    asked: KnowledgeGraph  # train: what is observed; valid and test: facts of held-out entities
    entities: tuple[str, ...]  # those held out

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Saves both in a new folder, as `training` and `asked`."""
        with new_folder(Path(folder)) as staging:
            self.training.save(staging / "training")
            self.asked.save(staging / "asked")


def hold_out(graph: KnowledgeGraph, share: float, seed: int = 0, observed: float = 0.7) -> HeldOutEntities:
    """Holds out a `share` of the entities; `observed` is the share of their facts that is read and not asked."""
    for name, value in (("inductive", share), ("observed", observed)):
        if not 0 < value < 1:
            raise UsageError(
                f"{value:g} is not a share.", where=name, advice="Give one above 0 and below 1, such as 0.1."
            )
    vocabulary = graph.vocabulary
    chosen = np.flatnonzero((_drawn(name_hashes(vocabulary.entities), seed) < share) & ~_hubs(graph)).astype(np.int64)
    touched = {name: names_any(table, vocabulary, chosen) for name, table in graph.splits.items()}
    training = {name: table.where(~touched[name]) for name, table in graph.splits.items()}
    away = concatenate([table.where(touched[name]) for name, table in graph.splits.items()])
    place = _drawn(fact_hashes(away, vocabulary), seed)
    ends = (observed, (1 + observed) / 2, 1.0)
    split = np.searchsorted(ends, place, side="right")
    asked = {name: away.where(split == index) for index, name in enumerate(SPLITS)}
    if not len(training.get("train", ())) or not len(asked["test"]):
        raise UsageError(
            f"holding out {len(chosen):,} entities leaves {len(training.get('train', ())):,} facts to train on and "
            f"{len(asked['test']):,} to ask about.",
            where="inductive",
            advice="Hold out more or fewer entities, or draw others with --seed.",
        )
    asked["train"] = concatenate([training["train"], asked["train"]])
    manifest = replace(graph.manifest, counts={}, files={})
    made = [KnowledgeGraph(vocabulary, one, graph.entities, manifest) for one in (training, asked)]
    names = tuple(vocabulary.entities[index] for index in chosen.tolist())
    return HeldOutEntities(without_names(made[0], chosen), made[1], names)


def _drawn(hashes: Hashes, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(n,) numbers in [0, 1), others for another seed."""
    lanes = np.array([[seed, seed ^ 0x1B873593]], dtype=np.int64).astype(np.uint64)
    return np.asarray(mixed(hashes ^ mixed(lanes))[:, 0].astype(np.float64) / 2.0**64)


def _hubs(graph: KnowledgeGraph) -> Flags:
    """(entities,) those with the most facts; of equal ones the first."""
    parts = components(graph.columns(), graph.vocabulary.relation_is_number)
    count = np.bincount(parts.entity[parts.kind == ENTITY_KIND], minlength=graph.vocabulary.entity_count)
    hubs = np.zeros(len(count), dtype=np.bool_)
    hubs[np.argsort(-count, kind="stable")[: int(np.ceil(HUBS * len(count)))]] = True
    return hubs
