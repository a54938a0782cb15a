"""What a model reads: facts with one component masked in each. The masked answer is nowhere
in here; `MaskedAnswers` holds it, apart.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, LayoutIndex
from hynt.batches.fact_tensors import Sizes
from hynt.graph.fact_table import TAIL, qualifier_of, relation_position


class Task(IntEnum):
    """What is asked for: an entity, a relation, or a number."""

    LINK = 0
    RELATION = 1
    NUMBER = 2


TASKS = tuple(Task)
"""All tasks, as a plain tuple: inside a compiled step an enumeration itself cannot be looped over."""


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """`rows` questions in a layout with `slots` qualifier slots. A masked entity or relation has the id that `sizes`
    names for it.

    A masked number reads 0 and is marked by `tail_number_masked` or `qualifier_number_masked`; "it is a number"
    stays visible.
    """

    sizes: Sizes
    layout: BatchLayout
    places: LayoutIndex  # index tensors of the layout
    head: Tensor  # (rows,) int64 entity id
    relation: Tensor  # (rows,) int64 relation id
    tail_entity: Tensor  # (rows,) int64 entity id; for a number its literal's id or the id of a masked entity
    tail_number: Tensor  # (rows,) float32 scaled number; 0 for an entity or a masked number
    tail_is_number: Tensor  # (rows,) bool
    tail_number_masked: Tensor  # (rows,) bool the tail is a number and asked for
    qualifier_relation: Tensor  # (slots,) int64
    qualifier_entity: Tensor  # (slots,) int64, as tail_entity
    qualifier_number: Tensor  # (slots,) float32, as tail_number
    qualifier_is_number: Tensor  # (slots,) bool
    qualifier_number_masked: Tensor  # (slots,) bool
    qualifier_present: Tensor  # (slots,) bool: false in padding, whose other fields mean nothing
    asked: Tensor  # (rows,) int64 position of the masked component

    def __len__(self) -> int:
        return self.layout.rows

    @property
    def asks_qualifier(self) -> Tensor:
        """(rows,) bool: a component of a qualifier is asked for, not one of the triplet."""
        return self.asked > TAIL

    @property
    def asks_relation(self) -> Tensor:
        """(rows,) bool: a relation is asked for, of the triplet or of a qualifier."""
        return self.asked % 2 == 1

    @property
    def asked_slot(self) -> Tensor:
        """(rows,) int64: which of its row's slots the asked qualifier is, from 0; 0 where the triplet is asked."""
        return qualifier_of(self.asked).clamp(min=0)

    @property
    def slot_of_asked(self) -> Tensor:
        """(rows,) int64: the asked qualifier's place among all slots; meaningless, but in range, where the triplet is
        asked.
        """
        return (self.places.row_slot + self.asked_slot).clamp(max=max(self.layout.slots - 1, 0))

    def task(self) -> Tensor:
        """(rows,) int64: the `Task` of each row, from what is visible."""
        number = self.tail_number_masked
        if self.layout.slots:
            number = torch.where(self.asks_qualifier, self.qualifier_number_masked[self.slot_of_asked], number)
        asks_value = torch.where(number, int(Task.NUMBER), int(Task.LINK))
        return torch.where(self.asks_relation, int(Task.RELATION), asks_value)

    def asked_relation(self) -> Tensor:
        """(rows,) int64: the relation beside the asked component, or the id of a masked relation where it is what is
        asked.
        """
        if not self.layout.slots:
            return self.relation
        return torch.where(self.asks_qualifier, self.qualifier_relation[self.slot_of_asked], self.relation)

    def with_tensors(self, **changed: Tensor) -> MaskedBatch:
        """A copy with some tensors exchanged."""
        return replace(self, **changed)  # type: ignore[arg-type]

    def tensors(self) -> dict[str, Tensor]:
        """All tensor fields by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def asked_slots(asked: Tensor, places: LayoutIndex) -> tuple[Tensor, Tensor]:
    """(slots,) bool each: whether the relation, and whether the value, of this very qualifier is asked for."""
    first, asked = relation_position(places.slot_within), asked[places.slot_row]
    return asked == first, asked == first + 1


@dataclass(frozen=True, eq=False)
class MaskedAnswers:
    """What was masked, row by row. Only the field that the row's task names is meaningful."""

    task: Tensor  # (rows,) int64 a `Task`
    entity: Tensor  # (rows,) int64 entity id; for a number its literal's id where literals have ids
    relation: Tensor  # (rows,) int64 relation id
    number: Tensor  # (rows,) float32 scaled number
    value: Tensor  # (rows,) float64 the number in the graph's unit
