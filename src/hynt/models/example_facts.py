"""A few small random facts of every kind and length, and ways to change them, for checking models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.fact_table import HEAD, RELATION, TAIL, FactTable, qualifier_of
from hynt.graph.vocabulary import Relation, Vocabulary

LENGTHS = (0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5)


def example_facts(seed: int = 0, *, literals: bool = False) -> FactTensors:
    """Sixty facts with 0 to 5 qualifiers; every third relation carries numbers. With ids for literals where asked."""
    vocabulary = Vocabulary(
        tuple(f"entity {i}" for i in range(17)),
        tuple(Relation(f"relation {i}", "number" if i % 3 == 2 else "entity") for i in range(7)),
    )
    random = np.random.default_rng(seed)
    lengths = np.array(LENGTHS * 5)
    n, m = len(lengths), int(lengths.sum())
    relation = random.integers(0, vocabulary.relation_count, n + m).astype(np.int32)
    is_number = vocabulary.relation_is_number[relation]
    entity = np.where(is_number, 0, random.integers(0, vocabulary.entity_count, n + m)).astype(np.int32)
    number = np.where(is_number, random.integers(1, 30, n + m), 0).astype(np.float64)
    written = [repr(v) if kind else None for v, kind in zip(number.tolist(), is_number.tolist(), strict=True)]
    table = FactTable(
        random.integers(0, vocabulary.entity_count, n).astype(np.int32),
        relation[:n],
        entity[:n],
        number[:n],
        pa.array(written[:n], type=pa.string()),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        relation[n:],
        entity[n:],
        number[n:],
        pa.array(written[n:], type=pa.string()),
    )
    return FactTensors.from_table(
        table,
        vocabulary,
        NumberScaling.fit([table], vocabulary),
        literals=distinct_literals(table) if literals else None,
    )


def exchanged(facts: FactTensors, position: int) -> FactTensors:
    """The same facts with whatever stands at `position` exchanged, its kind kept."""
    if position == HEAD:
        return replace(facts, head=next_id(facts.head, facts.sizes.entities))
    if position == RELATION:
        return replace(facts, relation=next_id(facts.relation, facts.sizes.relations))
    if position == TAIL:
        entity = next_id(next_literal(facts, facts.tail_entity), facts.sizes.entities)
        return replace(facts, tail_entity=entity, tail_number=facts.tail_number + 0.5)
    slot = qualifier_of(position)
    here = facts.offsets[:-1][facts.qualifier_counts() > slot] + slot
    if position % 2 == 1:
        return replace(facts, qualifier_relation=_at(facts.qualifier_relation, here, facts.sizes.relations))
    number = facts.qualifier_number.index_add(0, here, torch.full((len(here),), 0.5, device=facts.device))
    return replace(
        facts, qualifier_number=number, qualifier_entity=_at(facts.qualifier_entity, here, facts.sizes.entities)
    )


def next_id(ids: Tensor, count: int) -> Tensor:
    """Every id below `count` moved on by one; others stay."""
    return torch.where(ids < count, (ids + 1) % count, ids)


def next_literal(facts: FactTensors, ids: Tensor) -> Tensor:
    """Every literal's id moved on by one; others stay."""
    first, count = facts.sizes.entities + 1, facts.sizes.literals
    return torch.where(ids >= first, first + (ids - first + 1) % max(count, 1), ids)


def _at(ids: Tensor, here: Tensor, count: int) -> Tensor:
    return ids.index_put((here,), next_id(ids[here], count))
