"""Who sends to whom: the messages to slots of facts, and the lists that say who receives them.

A message goes to a slot and is made of the *other* slots of its fact. An observed slot's message is received by the
entity that stands there, and for heads and qualifiers by the slot's relation too; the message to a slot that is asked
for is received by the question. A question for a fact's relation is a copy of the fact in which the question itself
stands for the relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.batches.fact_slots import HEAD_ROLE, QUALIFIER_ROLE, ROLES, TAIL_ROLE, Links, NumberRows, Slots, slots_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch


class SummedItems(NamedTuple):
    """Which items each sum is made of, in order: those of sum i are item[offsets[i] : offsets[i + 1]]."""

    item: Tensor  # (n,) int64
    offsets: Tensor  # (sums + 1,) int64


class Received(NamedTuple):
    """Messages as their receivers read them: each beside a row of a table."""

    rows: Links  # messages → rows of the table
    receiver: Links  # messages → nodes
    in_order: Tensor  # (messages,) int32 the rows in the receivers' order

    @classmethod
    def of(cls, rows: Links, receiver: Links) -> Received:
        return cls(rows, receiver, rows.row.index_select(0, receiver.order))


class PlanSizes(NamedTuple):
    """How many rows the tables have that a plan reads."""

    entities: int  # entities that are read
    entity_nodes: int  # receivers of messages to values: those entities, then questions
    relation_nodes: int  # relations, then questions for relations; all of them are both read and receivers
    numbers: int  # numbers that are read on their relation's scale
    bare: int  # numbers that are read without their relation, behind those; one row more is just "a number"


@dataclass(frozen=True, eq=False)
class MessagePlan:
    """What a layer reads and who receives it. Messages that relations receive come first."""

    sizes: PlanSizes
    slot_first: Tensor  # (slots,) int32
    slot_stop: Tensor  # (slots,) int32
    slot_message: Tensor  # (slots,) int32 the message to this slot, or the number of messages where there is none
    value_rows: Links  # slots → entity × 3 + role, then 3 × entities + number × 2 + (role is qualifier)
    relation_rows: Links  # slots → relation node × 3 + role
    message_slot: Tensor  # (messages,) int32
    message_role: Tensor  # (messages,) int32
    context_rows: Links  # messages → relation node × 3 + role: C_role of the slot's own relation
    own_rows: (
        Links  # first messages → entity × 2 + (role is qualifier), then 2 × entities + number: D_role of its value
    )
    to_values: Links  # messages → entity nodes
    to_relations: Links  # first messages → relation nodes

    @property
    def relation_messages(self) -> int:
        """How many messages relations receive."""
        return len(self.own_rows.row)

    @cached_property
    def received_by_values(self) -> Received:
        """How value nodes receive messages."""
        return Received.of(self.context_rows, self.to_values)

    @cached_property
    def received_by_relations(self) -> Received:
        """How relation nodes receive the first messages."""
        return Received.of(self.own_rows, self.to_relations)

    @cached_property
    def slots_of_message(self) -> SummedItems:
        """The other slots of its fact, for each message."""
        slot = self.message_slot.long()
        owner, other = self._others(slot)
        return SummedItems(other, _ends(owner, len(slot)))

    @cached_property
    def messages_of_slot(self) -> SummedItems:
        """The messages that each slot has a part in."""
        slots, none = len(self.slot_first), len(self.message_slot)
        owner, other = self._others(torch.arange(slots, device=self.slot_first.device))
        message = self.slot_message.long()[other]
        received = message < none
        return SummedItems(message[received], _ends(owner[received], slots))

    def _others(self, slot: Tensor) -> tuple[Tensor, Tensor]:
        """(pairs,) int64 each: the place in `slot` (n,), ascending, and another slot of the same fact."""
        first, stop = self.slot_first.long()[slot], self.slot_stop.long()[slot]
        count = (stop - first - 1).clamp(min=0)
        owner = torch.repeat_interleave(torch.arange(len(slot), device=slot.device), count)
        other = first[owner] + torch.arange(len(owner), device=slot.device) - (count.cumsum(0) - count)[owner]
        return owner, other + (other >= slot[owner])


def _ends(owner: Tensor, sums: int) -> Tensor:
    """(sums + 1,) int64 offsets of items that belong to `owner` (n,), ascending."""
    return torch.searchsorted(owner, torch.arange(sums + 1, device=owner.device))


class _Messages(NamedTuple):
    """Messages under way to a plan."""

    slot: Tensor  # (n,) which slot they go to
    value_node: Tensor  # (n,) the entity node that receives them
    relation_node: Tensor | None  # (n,) the relation node that does; None where none can


def _plan(
    sizes: PlanSizes, slots: Slots, relation_node: Tensor, own_number: Tensor, messages: list[_Messages]
) -> MessagePlan:
    """`relation_node` (slots,) stands for each slot's relation; `own_number` (slots,) is the row of a slot's number as
    the slot's own relation may read it. Messages to relations must come first.
    """
    entities, relations, numbers = sizes.entities, sizes.relation_nodes, sizes.numbers + sizes.bare + 1
    kind = (slots.role == QUALIFIER_ROLE).to(torch.int32)
    role = slots.role
    value_row = torch.where(slots.is_number, ROLES * entities + 2 * slots.number + kind, ROLES * slots.entity + role)
    values = ROLES * entities + 2 * numbers
    own_row = torch.where(slots.is_number, 2 * entities + own_number, 2 * slots.entity + kind)
    slot = torch.cat([part.slot for part in messages]).to(torch.int32)
    carrying = [part for part in messages if part.relation_node is not None]
    first = slot[: sum(len(part.slot) for part in carrying)]
    slot_message = torch.full_like(role, len(slot))
    slot_message[slot.long()] = torch.arange(len(slot), dtype=torch.int32, device=slot.device)
    none = slots.there.logical_not()
    row = ROLES * relation_node + role
    relation_row = torch.where(none, ROLES * relations, row)
    context = Links.of(relation_row.index_select(0, slot), ROLES * relations)
    own = Links.of(torch.where(none, 2 * entities + numbers, own_row).index_select(0, first), 2 * entities + numbers)
    to_values = Links.of(torch.cat([part.value_node for part in messages]), sizes.entity_nodes)
    of_relations = [part.relation_node for part in carrying if part.relation_node is not None]
    to_relations = Links.of(torch.cat(of_relations), relations)
    return MessagePlan(
        sizes,
        slots.first,
        slots.stop,
        torch.where(none, len(slot), slot_message),
        Links.of(torch.where(none, values, value_row), values),
        Links.of(relation_row, ROLES * relations),
        slot,
        role.index_select(0, slot),
        context,
        own,
        to_values,
        to_relations,
    )


class AskedNodes(NamedTuple):
    """Which nodes of a plan are questions, one for every slot and every relation of the target facts."""

    targets: Slots  # the slots of the target facts: value question j asks for slot j
    relation: Tensor  # (targets + qualifier places,) int32 the answer of each relation question
    relation_asked: Tensor  # the same shape, bool: false for filler


def plan_training(
    facts: FactTensors,
    numbers: NumberRows,
    observed: tuple[Tensor, Tensor],
    targets: Tensor,
    observed_capacity: int,
    target_capacity: int,
    bare: int = 0,
) -> tuple[MessagePlan, AskedNodes]:
    """The plan of a step: `observed` are the facts with entities and with numbers as tails, (n,) int64 each, `targets`
    (k,) those asked about. Capacities are numbers of qualifiers. Of the numbers of targets the first `bare` have rows
    without their relation, in order; with 0 each is just "a number" there.
    """
    entities, relations = facts.sizes.entities, facts.sizes.relations
    with_entity, seen, k = len(observed[0]), len(observed[0]) + len(observed[1]), len(targets)
    known = slots_of(facts, torch.cat(observed), numbers, observed_capacity)
    asked = slots_of(facts, targets, numbers, target_capacity)
    nth = (asked.is_number.cumsum(0) - 1).clamp(min=0) if bare else torch.zeros_like(asked.number)
    unknown = (len(numbers.value) + nth).to(torch.int32)  # (slots,)
    # A copy of each target with the question in the place of the relation; a number there is one of unknown relation.
    in_copy = asked.is_number & (asked.role == TAIL_ROLE)
    copy = asked._replace(number=torch.where(in_copy, unknown, asked.number))
    at_asked, at_copy = len(known.role), len(known.role) + len(asked.role)
    parts = (known, asked.shifted(at_asked), copy.shifted(at_copy))
    slots = Slots(*(torch.cat(columns) for columns in zip(*parts, strict=True)))
    of_copy = torch.where(copy.role == QUALIFIER_ROLE, copy.relation, relations + copy.fact.to(torch.int32))
    relation_node = torch.cat([known.relation, asked.relation, of_copy])

    triplet, of_targets = _fact_starts(known, seen), _fact_starts(asked, k)
    qualifiers, asked_qualifiers = _qualifier_slots(known, seen), _qualifier_slots(asked, k)
    nodes = PlanSizes(entities, entities + len(asked.role), relations + k + target_capacity, len(numbers.value), bare)
    nobody = torch.full_like(known.entity, nodes.entity_nodes)
    to_entity = torch.where(known.is_number | known.there.logical_not(), nobody, known.entity)
    to_relation = torch.where(known.there, known.relation, nodes.relation_nodes)
    question = torch.where(
        asked.there, entities + torch.arange(len(asked.role), device=targets.device), nodes.entity_nodes
    )
    asks_qualifier = relations + k + torch.arange(target_capacity, device=targets.device)
    there = asked.there[asked_qualifiers]
    heads, tails = triplet, triplet[:with_entity] + 1
    messages = [
        _Messages(heads, to_entity[heads], to_relation[heads]),
        _Messages(at_copy + of_targets, nobody[:1].expand(k), relations + torch.arange(k, device=targets.device)),
        _Messages(qualifiers, to_entity[qualifiers], to_relation[qualifiers]),
        _Messages(
            at_asked + asked_qualifiers,
            question[asked_qualifiers],
            torch.where(there, asks_qualifier, nodes.relation_nodes),
        ),
        _Messages(at_asked + of_targets, question[of_targets], None),
        _Messages(tails, to_entity[tails], None),
        _Messages(at_asked + of_targets + 1, question[of_targets + 1], None),
    ]
    # Where a qualifier's relation is asked for, its number is one of unknown relation.
    own_number = torch.cat([known.number, unknown, unknown])
    plan = _plan(nodes, slots, relation_node, own_number, messages)
    answers = torch.cat([facts.relation[targets], asked.relation[asked_qualifiers]])
    return plan, AskedNodes(asked, answers, torch.cat([torch.ones_like(targets, dtype=torch.bool), there]))


def plan_observed(facts: FactTensors, numbers: NumberRows, rows: Tensor) -> MessagePlan:
    """The plan of reading the facts `rows` (k,) int64, without questions."""
    entities, relations, k = facts.sizes.entities, facts.sizes.relations, len(rows)
    capacity = int((facts.offsets[rows + 1] - facts.offsets[rows]).sum())
    slots = slots_of(facts, rows, numbers, capacity)
    nodes = PlanSizes(entities, entities, relations, len(numbers.value), 0)
    heads, qualifiers = _fact_starts(slots, k), _qualifier_slots(slots, k)
    tails = heads[facts.tail_is_number[rows].logical_not()] + 1
    to_entity = torch.where(slots.is_number, entities, slots.entity)
    messages = [
        _Messages(heads, to_entity[heads], slots.relation[heads]),
        _Messages(qualifiers, to_entity[qualifiers], slots.relation[qualifiers]),
        _Messages(tails, to_entity[tails], None),
    ]
    return _plan(nodes, slots, slots.relation, slots.number, messages)


class ReadPlan(NamedTuple):
    """The plan of a batch of questions, which reads only the entities and relations that the batch names."""

    plan: MessagePlan
    entity: Tensor  # (entities,) int64 which entities the plan reads
    relation: Tensor  # (relations,) int64 which relations it reads; questions follow as nodes
    number_relation: Tensor  # (numbers,) int64
    number_value: Tensor  # (numbers,) float32 scaled
    number_plain: Tensor  # (numbers,) float64 in the graph's unit
    asks_number: Tensor  # (rows,) bool
    asks_relation: Tensor  # (rows,) bool


def plan_questions(batch: MaskedBatch, bare: bool = False, numbers: bool = True) -> ReadPlan:
    """The plan of a batch with one masked component per row. Question i is value node i and relation node i, of which
    one receives the row's message and the other nothing. With `bare` a number whose relation is asked for has a row of
    its own, without that relation; else it is just "a number". Without `numbers` there are none in the graph.
    """
    rows, device = len(batch), batch.head.device
    row, of_slot = torch.arange(rows, device=device), batch.places.slot_row
    head = 2 * row + batch.places.row_slot
    count = torch.zeros_like(row).index_add_(0, of_slot, batch.qualifier_present.long())
    # Of a row: head, tail, then its places for qualifiers, of which those that are there come first.
    place = torch.cat([head, head + 1, head[of_slot] + 2 + batch.places.slot_within])

    def laid_out(of_head: Tensor, of_tail: Tensor, of_qualifier: Tensor) -> Tensor:
        columns = torch.cat([of_head, of_tail, of_qualifier])
        return torch.zeros_like(columns).index_copy_(0, place, columns)

    role = laid_out(row * 0 + HEAD_ROLE, row * 0 + TAIL_ROLE, of_slot * 0 + QUALIFIER_ROLE).to(torch.int32)
    fact = laid_out(row, row, of_slot)
    there = laid_out(row >= 0, row >= 0, batch.qualifier_present)
    is_number = laid_out(row < 0, batch.tail_is_number, batch.qualifier_is_number) & there
    # What is masked is read by nobody: the first entity or relation stands in its place.
    masked_entity, masked_relation = batch.sizes.mask_entity, batch.sizes.mask_relation
    entity = laid_out(batch.head, batch.tail_entity, batch.qualifier_entity)
    entity = torch.where(is_number | there.logical_not() | (entity >= masked_entity), 0, entity)
    relation = laid_out(batch.relation, batch.relation, batch.qualifier_relation)
    asks_itself = (relation == masked_relation) & there
    relation = torch.where((relation >= masked_relation) | there.logical_not(), 0, relation)
    entity, entity_row = torch.unique(entity, return_inverse=True)
    relation, relation_row = torch.unique(relation, return_inverse=True)
    count_of_numbers = (rows + batch.layout.slots) * int(numbers)
    number = laid_out(row * 0, row, rows + torch.arange(batch.layout.slots, device=device))
    unknown = count_of_numbers + number * int(bare)
    number = torch.where(asks_itself & is_number, unknown, number).to(torch.int32)
    slots = Slots(
        head[fact].to(torch.int32),
        torch.where(there, head[fact] + 2 + count[fact], head[fact]).to(torch.int32),
        fact,
        role,
        there,
        is_number,
        entity_row.to(torch.int32),
        number,
        relation_row.to(torch.int32),
    )
    own = count_of_numbers * int(bare)
    sizes = PlanSizes(len(entity), len(entity) + rows, len(relation) + rows, count_of_numbers, own)
    # A fact whose relation is asked for has the question there; a qualifier's own pair is not in its message at all.
    node = torch.where(asks_itself & (role != QUALIFIER_ROLE), len(relation) + fact, slots.relation)
    asked = head + torch.where(batch.asked <= 2, (batch.asked == 2).long(), 2 + batch.asked_slot)
    message = _Messages(
        asked,
        torch.where(batch.asks_relation, sizes.entity_nodes, len(entity) + row),
        torch.where(batch.asks_relation, len(relation) + row, sizes.relation_nodes),
    )
    plan = _plan(sizes, slots, node.to(torch.int32), slots.number, [message])
    number_relation = torch.cat([batch.relation, batch.qualifier_relation]).clamp(max=masked_relation - 1)
    value, plain = (
        torch.cat(both)
        for both in ((batch.tail_number, batch.qualifier_number), (batch.tail_value, batch.qualifier_value))
    )
    number_relation, value, plain = (one[:count_of_numbers] for one in (number_relation, value, plain))
    asks_number = torch.where(batch.asks_qualifier, is_number[asked], batch.tail_number_masked)
    asks_number = asks_number & batch.asks_relation.logical_not()
    return ReadPlan(plan, entity, relation, number_relation, value, plain, asks_number, batch.asks_relation)


def _fact_starts(slots: Slots, facts: int) -> Tensor:
    """(facts,) int64: the head's slot of each fact."""
    place = torch.arange(len(slots.role), device=slots.role.device)
    starts = place.new_zeros(facts + 1)
    # Only heads are written where they belong; all others go to a last place that nobody reads.
    is_head = slots.there & (slots.role == HEAD_ROLE)
    return starts.index_copy_(0, torch.where(is_head, slots.fact, facts), place)[:facts]


def _qualifier_slots(slots: Slots, facts: int) -> Tensor:
    """(capacity,) int64: the places of qualifiers, filler last."""
    place = torch.arange(len(slots.role), device=slots.role.device)
    capacity = len(place) - 2 * facts
    nth = torch.where(slots.role == QUALIFIER_ROLE, place - 2 * (slots.fact + 1), capacity)
    nth = torch.where(slots.there, nth, place - 2 * facts)
    return place.new_zeros(capacity + 1).index_copy_(0, nth, place)[:capacity]
