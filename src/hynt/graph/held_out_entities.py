"""Entities kept out of training, to see how well a model answers about what it never met.

Every fact that names a held-out entity leaves the training graph. A share of these facts is observed, so that the
entities are known by something, and the rest is asked. Which entities and which facts follows from their names, their
content and the seed, so that facts added elsewhere change nothing. Hubs are left alone: without them the rest of the
graph would be another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hynt.errors import UsageError
from hynt.graph.arrays import Flags
from hynt.graph.changes import fact_hashes, names_any, without_names
from hynt.graph.components import ENTITY_KIND, components
from hynt.graph.content_hash import Hashes, mixed, name_hashes
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.splitting import SPLITS

HUBS = 0.01
"""The share of entities, those with the most facts, that are never held out."""


class HeldOutEntities(NamedTuple):
    """A graph to train on, and one to ask about."""

    training: KnowledgeGraph  # with the splits it had; no fact names a held-out entity
    asked: KnowledgeGraph  # train: what is observed; valid and test: facts of held-out entities
    entities: tuple[str, ...]  # those held out


def hold_out(graph: KnowledgeGraph, share: float, seed: int = 0, observed: float = 0.7) -> HeldOutEntities:
    """Holds out a `share` of the entities; `observed` is the share of their facts that is read and not asked."""
    for name, value in (("inductive", share), ("observed", observed)):
        if not 0 < value < 1:
            raise UsageError(f"{value:g} is no share.", where=name, advice="Give one above 0 and below 1, such as 0.1.")
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
    parts = components(concatenate(list(graph.splits.values())), graph.vocabulary.relation_is_number)
    count = np.bincount(parts.entity[parts.kind == ENTITY_KIND], minlength=graph.vocabulary.entity_count)
    hubs = np.zeros(len(count), dtype=np.bool_)
    hubs[np.argsort(-count, kind="stable")[: int(np.ceil(HUBS * len(count)))]] = True
    return hubs
