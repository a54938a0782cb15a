"""What a model reads: facts with one component masked in each. The masked answer is nowhere in there; `MaskedAnswers`
holds it, apart. `mask` makes both, with no loop and no data-dependent shape.

Training masks one component per fact and epoch, drawn uniformly from those allowed. Three switches take kinds of
components out; they are the rows "without masking" of the paper's ablation table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum

import torch
from torch import Tensor

from hynt.batches.buckets import BatchLayout, LayoutIndex, layout_index
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.graph.fact_table import (
    FIRST_QUALIFIER,
    HEAD,
    RELATION,
    TAIL,
    component_count,
    qualifier_of,
    relation_position,
)


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
    stays visible. A scaled number tells something of its relation, so where the relation is asked for it may be read
    only as the graph has it.
    """

    sizes: Sizes
    layout: BatchLayout
    places: LayoutIndex  # index tensors of the layout
    head: Tensor  # (rows,) int64 entity id
    relation: Tensor  # (rows,) int64 relation id
    tail_entity: Tensor  # (rows,) int64 entity id; for a number its literal's id or the id of a masked entity
    tail_number: Tensor  # (rows,) float32 scaled number; 0 for an entity or a masked number
    tail_value: Tensor  # (rows,) float64 the same in the graph's unit
    tail_is_number: Tensor  # (rows,) bool
    tail_number_masked: Tensor  # (rows,) bool the tail is a number and asked for
    qualifier_relation: Tensor  # (slots,) int64
    qualifier_entity: Tensor  # (slots,) int64, as tail_entity
    qualifier_number: Tensor  # (slots,) float32, as tail_number
    qualifier_value: Tensor  # (slots,) float64, as tail_value
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
        return _task_at(self.asked, self._where_asked(self.tail_number_masked, self.qualifier_number_masked))

    @property
    def number_beside(self) -> Tensor:
        """(rows,) float64: the number beside an asked relation, in the graph's unit; 0 without one."""
        return torch.where(self.asks_relation, self._where_asked(self.tail_value, self.qualifier_value), 0.0)

    def asked_relation(self) -> Tensor:
        """(rows,) int64: the relation beside the asked component, or the id of a masked relation where it is what is
        asked.
        """
        return self._where_asked(self.relation, self.qualifier_relation)

    def _where_asked(self, of_triplet: Tensor, of_slot: Tensor) -> Tensor:
        """(rows,) what holds where something is asked: of the triplet (rows,), or of the qualifier, by slot."""
        if not self.layout.slots:
            return of_triplet
        return torch.where(self.asks_qualifier, of_slot[self.slot_of_asked], of_triplet)

    def with_tensors(self, **changed: Tensor) -> MaskedBatch:
        """A copy with some tensors exchanged."""
        return replace(self, **changed)  # type: ignore[arg-type]

    def tensors(self) -> dict[str, Tensor]:
        """All tensor fields by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def _task_at(position: Tensor, is_number: Tensor) -> Tensor:
    """(n,) int64: the `Task` of asking for each position (n,), whose value `is_number` (n,) or is not."""
    return torch.where(position % 2 == 1, int(Task.RELATION), torch.where(is_number, int(Task.NUMBER), int(Task.LINK)))


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


@dataclass(frozen=True)
class Masking:
    """What training may mask besides entities of the triplet, which it always may."""

    numbers: bool = True
    relations: bool = True
    qualifiers: bool = True


@dataclass(frozen=True, eq=False)
class AskableComponents:
    """The components that may be asked for, end to end: those of fact i are offsets[i] … offsets[i + 1], never none."""

    offsets: Tensor  # (n + 1,) int64
    position: Tensor  # (components,) int64
    task: Tensor  # (components,) int64 a `Task`

    @classmethod
    def of(cls, facts: FactTensors, masking: Masking | None = None) -> AskableComponents:
        """All components of all facts that `masking` (by default everything) lets be asked for, in the order of
        positions.
        """
        masking = masking or Masking()
        count, device = facts.qualifier_counts(), facts.device
        owner = torch.repeat_interleave(torch.arange(len(facts), device=device), component_count(count))
        first = FIRST_QUALIFIER * torch.arange(len(facts), device=device) + 2 * facts.offsets[:-1]
        position = torch.arange(len(owner), device=device) - first[owner]
        slot = facts.qualifier_at(owner, position)
        number = torch.where(
            position > TAIL, facts.qualifier_is_number[slot], facts.tail_is_number[owner] & (position == TAIL)
        )
        task = _task_at(position, number)
        allowed = torch.ones_like(number)
        if not masking.numbers:
            allowed &= task != Task.NUMBER
        if not masking.relations:
            allowed &= task != Task.RELATION
        if not masking.qualifiers:
            allowed &= position <= TAIL
        counts = torch.zeros(len(facts), dtype=torch.int64, device=device).index_add_(0, owner, allowed.long())
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(offsets, position[allowed], task[allowed])

    def __len__(self) -> int:
        """How many components there are in all."""
        return len(self.position)

    def counts(self) -> Tensor:
        """(n,) int64: how many components of each fact may be asked for."""
        return self.offsets[1:] - self.offsets[:-1]

    def owner(self) -> Tensor:
        """(components,) int64: the fact each component belongs to."""
        return torch.repeat_interleave(torch.arange(len(self.offsets) - 1, device=self.offsets.device), self.counts())

    def drawn(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """(position, task), (n,) each: one component per fact, drawn by (n,) float64 numbers in [0, 1)."""
        counts = self.counts()
        chosen = self.offsets[:-1] + (uniform * counts).long().clamp(max=counts - 1)
        return self.position[chosen], self.task[chosen]

    def task_likelihood(self) -> Tensor:
        """(n, 3) float64: how likely each task is to be asked of each fact."""
        tally = torch.zeros(len(self.offsets) - 1, len(Task), dtype=torch.float64, device=self.position.device)
        ones = torch.ones(len(self), dtype=torch.float64, device=self.position.device)
        tally.index_put_((self.owner(), self.task), ones, accumulate=True)
        return tally / self.counts().unsqueeze(1)


def mask(
    facts: FactTensors, rows: Tensor, asked: Tensor, layout: BatchLayout, at: LayoutIndex | None = None
) -> tuple[MaskedBatch, MaskedAnswers]:
    """Hides the component at position `asked` (rows,) of each fact in `rows` (rows,), both int64 on the facts' device.

    Rows must come in the layout's order, and no fact may have more qualifiers than its segment's capacity: what is
    over would not be read. That is the caller's to see to (`rows_by_bucket`), because looking here would make the
    device wait.
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
        tail_value=torch.where(tail_masked, 0.0, facts.tail_value[rows]),
        tail_is_number=tail_is_number,
        tail_number_masked=tail_masked & tail_is_number,
        qualifier_relation=torch.where(relation_masked, sizes.mask_relation, facts.qualifier_relation[slot].long()),
        qualifier_entity=torch.where(value_masked, sizes.mask_entity, facts.qualifier_entity[slot].long()),
        qualifier_number=torch.where(value_masked, 0.0, facts.qualifier_number[slot]),
        qualifier_value=torch.where(value_masked, 0.0, facts.qualifier_value[slot]),
        qualifier_is_number=slot_is_number,
        qualifier_number_masked=value_masked & slot_is_number,
        qualifier_present=present,
        asked=asked,
    )
    return batch, _answers(facts, rows, asked, tail_is_number)


def _answers(facts: FactTensors, rows: Tensor, asked: Tensor, tail_is_number: Tensor) -> MaskedAnswers:
    in_qualifier, slot = asked > TAIL, facts.qualifier_at(rows, asked)
    number = torch.where(in_qualifier, facts.qualifier_is_number[slot], tail_is_number & (asked == TAIL))
    of_triplet = torch.where(asked == HEAD, facts.head[rows], facts.tail_entity[rows])
    return MaskedAnswers(
        task=_task_at(asked, number),
        entity=torch.where(in_qualifier, facts.qualifier_entity[slot], of_triplet).long(),
        relation=torch.where(in_qualifier, facts.qualifier_relation[slot], facts.relation[rows]).long(),
        number=torch.where(in_qualifier, facts.qualifier_number[slot], facts.tail_number[rows]),
        value=torch.where(in_qualifier, facts.qualifier_value[slot], facts.tail_value[rows]),
    )


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
