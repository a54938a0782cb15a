"""Filling: from questions and something for their hidden places back to whole facts, true or not."""

from __future__ import annotations

import torch
from torch import Tensor

from hynt.batches.masked_batch import HEAD, RELATION, TAIL, MaskedBatch


def fill(batch: MaskedBatch, entity: Tensor, relation: Tensor) -> MaskedBatch:
    """The batch with `entity` or `relation`, (rows,) int64 each, in the hidden place of each row. Nothing is hidden
    any more.

    Meant for models to which a number is a literal with an id: numbers themselves are not filled in.
    """
    asked = batch.asked
    slot_asked = asked[batch.places.slot_row] - 2 * batch.places.slot_within
    of_slot = batch.places.slot_row
    return batch.with_tensors(
        head=torch.where(asked == HEAD, entity, batch.head),
        relation=torch.where(asked == RELATION, relation, batch.relation),
        tail_entity=torch.where(asked == TAIL, entity, batch.tail_entity),
        tail_number_hidden=torch.zeros_like(batch.tail_number_hidden),
        qualifier_relation=torch.where(slot_asked == 3, relation[of_slot], batch.qualifier_relation),
        qualifier_entity=torch.where(slot_asked == 4, entity[of_slot], batch.qualifier_entity),
        qualifier_number_hidden=torch.zeros_like(batch.qualifier_number_hidden),
    )
