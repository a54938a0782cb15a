"""A question with something taken away: qualifiers removed, or further components hidden beside the asked one.

A qualifier is removed from the fact, and the rest is a question as any other. A component cannot be removed, but it can
be hidden: the model then reads the vector that it has for a hidden entity, relation or number. It has learned that
vector with one hidden component per fact, so an answer with two hidden ones says what a component was worth, and is not
an answer to rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.columns import AskedFact
from hynt.batches.buckets import bucket_capacity
from hynt.batches.masked_batch import MaskedBatch
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    HEAD,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    TAIL,
    concatenate,
    qualifier_of,
)
from hynt.graph.vocabulary import Ids
from hynt.runs.opening import LoadedRun
from hynt.runs.place import whole_run
from hynt.runs.scoring import ReadTile, read_tiles, with_stored_literals

Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChangedQuestion:
    """A question, and the positions that are hidden besides its blank."""

    asked: AskedFact
    hidden: frozenset[int] = frozenset()


def without_qualifiers(asked: AskedFact, removed: frozenset[int]) -> AskedFact:
    """The question without these qualifiers, numbered from 0; not one of them may hold the blank."""
    table, count = asked.table, int(asked.table.offsets[1])
    kept = np.array([number not in removed for number in range(count)] * len(table), dtype=np.bool_)
    position = asked.position
    if position >= FIRST_QUALIFIER:
        own = qualifier_of(position)
        position -= 2 * sum(number < own for number in removed)
    return replace(asked, table=table.with_qualifiers(kept), position=position)


def also_mask(batch: MaskedBatch, hidden: Tensor) -> MaskedBatch:
    """Hides more components: `hidden` (rows, positions) bool says which; positions that a fact lacks are not read."""
    sizes, at = batch.sizes, batch.places
    head, relation, tail = (hidden[:, place] for place in (HEAD, RELATION, TAIL))
    of_relation = hidden[at.slot_row, FIRST_QUALIFIER + 2 * at.slot_within]
    of_value = hidden[at.slot_row, FIRST_QUALIFIER + 1 + 2 * at.slot_within]
    beside = (batch.asked + 1).clamp(max=hidden.shape[1] - 1)  # of a relation: its value
    return batch.with_tensors(
        head=torch.where(head, sizes.mask_entity, batch.head),
        relation=torch.where(relation, sizes.mask_relation, batch.relation),
        tail_entity=torch.where(tail, sizes.mask_entity, batch.tail_entity),
        tail_number=torch.where(tail, 0.0, batch.tail_number),
        tail_number_masked=batch.tail_number_masked | (tail & batch.tail_is_number),
        qualifier_relation=torch.where(of_relation, sizes.mask_relation, batch.qualifier_relation),
        qualifier_entity=torch.where(of_value, sizes.mask_entity, batch.qualifier_entity),
        qualifier_number=torch.where(of_value, 0.0, batch.qualifier_number),
        qualifier_number_masked=batch.qualifier_number_masked | (of_value & batch.qualifier_is_number),
        number_beside=torch.where(hidden.gather(1, beside.unsqueeze(1)).squeeze(1), 0.0, batch.number_beside),
    )


def changed_scores(loaded: LoadedRun, device: torch.device, changed: Sequence[ChangedQuestion]) -> list[Scores]:
    """For each question (rows, candidates) scores, or (rows,) numbers on the model's scale; all are of one kind.

    They are scored in the evaluator's own tiles, so a question of which nothing is hidden gets the predictor's bits.
    """
    kind = changed[0].asked.kind
    table = with_stored_literals(concatenate([one.asked.table for one in changed]), loaded)
    count = np.array([len(one.asked.table) for one in changed])
    owner = np.repeat(np.arange(len(changed)), count)
    position = np.array([one.asked.position for one in changed], dtype=np.int64)[owner]
    found: list[NDArray[np.float32] | None] = [None] * len(table)

    def work(tile: ReadTile) -> None:
        made = {ENTITY_KIND: tile.entities, RELATION_KIND: tile.relations, NUMBER_KIND: tile.numbers}[kind]()
        for row, scores in zip(tile.which.tolist(), made.cpu().numpy(), strict=True):
            found[row] = scores

    longest = FIRST_QUALIFIER + 2 * bucket_capacity(int(table.qualifier_counts().max()))
    flags = np.zeros((len(table), longest), dtype=np.bool_)
    for row, one in enumerate(owner.tolist()):
        flags[row, list(changed[one].hidden)] = True

    def hide(batch: MaskedBatch, numbers: Ids) -> MaskedBatch:
        return also_mask(batch, torch.from_numpy(flags[numbers]).to(device)) if flags[numbers].any() else batch

    with whole_run():
        read_tiles(loaded, table, np.arange(len(table), dtype=np.int64), position, device, work, hide)
    ends = np.cumsum(count)
    return [np.stack(found[end - size : end]).astype(np.float64) for size, end in zip(count, ends, strict=True)]  # type: ignore[arg-type]
