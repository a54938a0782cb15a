"""Hiding: from facts and the positions asked for to a batch without the answers, and the answers. No loop, no
data-dependent shape.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, LayoutIndex, layout_index
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedAnswers, MaskedBatch, Task, asked_slots
from hynt.graph.fact_table import HEAD, RELATION, TAIL, component_count


def mask(
    facts: FactTensors, rows: Tensor, asked: Tensor, layout: BatchLayout, at: LayoutIndex | None = None
) -> tuple[MaskedBatch, MaskedAnswers]:
    """Hides the component at position `asked` (rows,) of each fact in `rows` (rows,), both int64 on the facts' device.

    Rows must come in the layout's order, and no fact may have more qualifiers than its segment's capacity: what is
    over would not be read. That is the caller's to see to (`rows_by_bucket`, `check_fit`), because looking here
    would make the device wait.
    """
    sizes = facts.sizes
    at = layout_index(layout, facts.device) if at is None else at
    start = facts.offsets[rows]
    count = facts.offsets[rows + 1] - start
    nowhere = facts.qualifier_total  # the filler behind the last qualifier

    present = at.slot_within < count[at.slot_row]
    slot = torch.where(present, start[at.slot_row] + at.slot_within, nowhere)
    relation_masked, value_masked = asked_slots(asked, at)
    slot_is_number = facts.qualifier_is_number[slot]
    tail_is_number = facts.tail_is_number[rows]
    tail_masked = asked == TAIL

    batch = MaskedBatch(
        sizes=sizes,
        layout=layout,
        places=at,
        head=torch.where(asked == HEAD, sizes.mask_entity, facts.head[rows].long()),
        relation=torch.where(asked == RELATION, sizes.mask_relation, facts.relation[rows].long()),
        tail_entity=torch.where(tail_masked, sizes.mask_entity, facts.tail_entity[rows].long()),
        tail_number=torch.where(tail_masked, 0.0, facts.tail_number[rows]),
        tail_is_number=tail_is_number,
        tail_number_masked=tail_masked & tail_is_number,
        qualifier_relation=torch.where(relation_masked, sizes.mask_relation, facts.qualifier_relation[slot].long()),
        qualifier_entity=torch.where(value_masked, sizes.mask_entity, facts.qualifier_entity[slot].long()),
        qualifier_number=torch.where(value_masked, 0.0, facts.qualifier_number[slot]),
        qualifier_is_number=slot_is_number,
        qualifier_number_masked=value_masked & slot_is_number,
        qualifier_present=present,
        asked=asked,
    )
    return batch, _answers(facts, rows, asked, tail_is_number)


def _answers(facts: FactTensors, rows: Tensor, asked: Tensor, tail_is_number: Tensor) -> MaskedAnswers:
    in_qualifier, slot = asked > TAIL, facts.qualifier_at(rows, asked)
    number = torch.where(in_qualifier, facts.qualifier_is_number[slot], tail_is_number & (asked == TAIL))
    task = torch.where(asked % 2 == 1, int(Task.RELATION), torch.where(number, int(Task.NUMBER), int(Task.LINK)))
    of_triplet = torch.where(asked == HEAD, facts.head[rows], facts.tail_entity[rows])
    return MaskedAnswers(
        task=task,
        entity=torch.where(in_qualifier, facts.qualifier_entity[slot], of_triplet).long(),
        relation=torch.where(in_qualifier, facts.qualifier_relation[slot], facts.relation[rows]).long(),
        number=torch.where(in_qualifier, facts.qualifier_number[slot], facts.tail_number[rows]),
        value=torch.where(in_qualifier, facts.qualifier_value[slot], facts.tail_value[rows]),
    )


def check_fit(facts: FactTensors, rows: Tensor, asked: Tensor, layout: BatchLayout) -> None:
    """Raises ValueError where `mask` could not be exact: wrong lengths, a fact longer than its place, a position it
    lacks.
    """
    if len(rows) != layout.rows or len(asked) != layout.rows:
        given = f"{len(rows)} facts and {len(asked)} positions were given"
        raise ValueError(f"the layout has {layout.rows} rows, but {given}")
    count = facts.qualifier_counts()[rows]
    for span in layout.spans():
        if bool((count[span.rows] > span.capacity).any()):
            raise ValueError(f"a fact has more qualifiers than the {span.capacity} its segment has places for")
    if bool(((asked < 0) | (asked >= component_count(count))).any()):
        raise ValueError("a position was asked for that its fact does not have")


# Filling: from questions and something for their masked places back to whole facts, true or not.


def fill(batch: MaskedBatch, entity: Tensor, relation: Tensor) -> MaskedBatch:
    """The batch with `entity` or `relation`, (rows,) int64 each, in the masked place of each row. Nothing is masked
    any more.

    Meant for models to which a number is a literal with an id: numbers themselves are not filled in.
    """
    asked = batch.asked
    asks_relation, asks_value = asked_slots(asked, batch.places)
    of_slot = batch.places.slot_row
    return batch.with_tensors(
        head=torch.where(asked == HEAD, entity, batch.head),
        relation=torch.where(asked == RELATION, relation, batch.relation),
        tail_entity=torch.where(asked == TAIL, entity, batch.tail_entity),
        tail_number_masked=torch.zeros_like(batch.tail_number_masked),
        qualifier_relation=torch.where(asks_relation, relation[of_slot], batch.qualifier_relation),
        qualifier_entity=torch.where(asks_value, entity[of_slot], batch.qualifier_entity),
        qualifier_number_masked=torch.zeros_like(batch.qualifier_number_masked),
    )
