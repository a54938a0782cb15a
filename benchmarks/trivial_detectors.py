"""What needs no model: a number far from the middle of its relation, a value that is rare in its place.

An audit has to beat these to be worth its time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.graph.fact_table import ENTITY_KIND, NUMBER_KIND, RELATION_KIND, Components, components, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.seen_values import place_keys
from hynt.graph.vocabulary import Floats


def trivial_scores(graph: KnowledgeGraph) -> dict[str, Floats]:
    """(facts,) scores by three detectors, higher is more suspicious: robust z-scores, frequencies, and both."""
    table, is_number = concatenate(list(graph.splits.values())), graph.vocabulary.relation_is_number
    parts = components(table, is_number)
    far, rare = robust_z(parts), rarity(parts, is_number)
    numbers = parts.kind == NUMBER_KIND
    both = np.zeros(len(parts))
    for chosen, score in ((numbers, far), (parts.kind == ENTITY_KIND, rare), (parts.kind == RELATION_KIND, rare)):
        both[chosen] = share_below(score[chosen])
    return {
        "robust z-score": _highest(np.where(numbers, far, -1.0), parts, len(table)),
        "frequency": _highest(np.where(numbers, -np.inf, rare), parts, len(table)),
        "both": _highest(both, parts, len(table)),
    }


def robust_z(parts: Components) -> Floats:
    """(c,) the distance of each number from its relation's median in median absolute deviations; 0 for the others."""
    found = np.zeros(len(parts))
    numbers = np.flatnonzero(parts.kind == NUMBER_KIND)
    order = numbers[np.argsort(parts.relation[numbers], kind="stable")]
    _, starts = np.unique(parts.relation[order], return_index=True)
    for rows in np.split(order, starts[1:]) if len(order) else ():
        value = parts.number[rows]
        away = np.abs(value - np.median(value))
        scale = 1.4826 * float(np.median(away)) or 1.2533 * float(away.mean()) or 1.0
        found[rows] = away / scale
    return found


def rarity(parts: Components, relation_is_number: NDArray[np.bool_]) -> Floats:
    """(c,) minus how often each entity or relation stands in its place; 0 for numbers."""
    found = np.zeros(len(parts))
    named = np.flatnonzero(parts.kind != NUMBER_KIND)
    chosen = parts.take(named)
    value = np.where(chosen.kind == ENTITY_KIND, chosen.entity, chosen.relation)
    pairs = np.stack([place_keys(chosen.position, chosen.relation, relation_is_number), value.astype(np.int64)], axis=1)
    _, which, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    found[named] = -count[which.reshape(-1)]
    return found


def share_below(score: Floats) -> Floats:
    """(n,) the share of scores that each one exceeds: the same measure for all kinds."""
    return np.searchsorted(np.sort(score), score, side="left") / max(1, len(score))


def _highest(score: Floats, parts: Components, facts: int) -> Floats:
    found = np.full(facts, -np.inf)
    np.maximum.at(found, parts.row, score)
    return np.where(np.isfinite(found), found, -1e18)
