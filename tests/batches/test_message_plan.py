"""Slots, messages and sorted lists against loops over facts."""

from __future__ import annotations

import torch

from hynt.batches.fact_slots import HEAD_ROLE, QUALIFIER_ROLE, TAIL_ROLE, Links, NumberRows, slots_of
from hynt.batches.message_plan import plan_observed, plan_training
from tests.batches.random_graphs import mixed_facts

FACTS = mixed_facts(120)


def test_a_list_is_sorted_by_row_and_keeps_the_order_of_its_items():
    links = Links.of(torch.tensor([2, 0, 4, 2, 0]), 4)
    assert links.order.tolist() == [1, 4, 0, 3, 2]
    assert links.offsets.tolist() == [0, 2, 2, 4, 4, 5]


def either(entity, number, is_number):
    return (None, float(number)) if is_number else (int(entity), None)


def components(facts, row):
    """(role, entity or None, number or None, relation) of each slot."""
    head, relation = int(facts.head[row]), int(facts.relation[row])
    is_number = bool(facts.tail_is_number[row])
    found = [(HEAD_ROLE, head, None, relation)]
    found.append((TAIL_ROLE, *either(facts.tail_entity[row], facts.tail_number[row], is_number), relation))
    for q in range(int(facts.offsets[row]), int(facts.offsets[row + 1])):
        is_number = bool(facts.qualifier_is_number[q])
        value = either(facts.qualifier_entity[q], facts.qualifier_number[q], is_number)
        found.append((QUALIFIER_ROLE, *value, int(facts.qualifier_relation[q])))
    return found


def listed(slots, numbers, slot):
    is_number = bool(slots.is_number[slot])
    number = float(numbers.value[slots.number[slot].long()]) if is_number else None
    return int(slots.role[slot]), None if is_number else int(slots.entity[slot]), number, int(slots.relation[slot])


def test_slots_say_what_the_facts_say():
    numbers, rows = NumberRows.of(FACTS), torch.tensor([5, 0, 77, 119])
    slots = slots_of(FACTS, rows, numbers, 60)
    at = 0
    for row in rows.tolist():
        expected = components(FACTS, row)
        assert [listed(slots, numbers, at + k) for k in range(len(expected))] == expected
        assert slots.first[at : at + len(expected)].tolist() == [at] * len(expected)
        assert slots.stop[at : at + len(expected)].tolist() == [at + len(expected)] * len(expected)
        at += len(expected)
    assert not slots.there[at:].any()
    assert (slots.stop[at:] == slots.first[at:]).all()


def test_a_small_capacity_costs_qualifiers_and_nothing_else():
    rows = torch.argsort(FACTS.qualifier_counts(), descending=True)[:4]
    slots = slots_of(FACTS, rows, NumberRows.of(FACTS), 3)
    assert slots.there.sum() == 2 * 4 + 3
    assert [int(((slots.fact == k) & slots.there & (slots.role != QUALIFIER_ROLE)).sum()) for k in range(4)] == [2] * 4


def heard(plan):
    """Who receives which slot's message: sets of (slot, node) for values and relations."""
    found = []
    for links in (plan.to_values, plan.to_relations):
        pairs = zip(plan.message_slot.tolist(), links.row.tolist(), strict=False)
        found.append({(slot, node) for slot, node in pairs if node < links.rows})
    return found


def test_observed_facts_reach_their_entities_and_relations():
    rows = torch.arange(40)
    plan = plan_observed(FACTS, NumberRows.of(FACTS), rows)
    values, relations, at = set(), set(), 0
    for row in rows.tolist():
        for k, (role, entity, _, relation) in enumerate(components(FACTS, row)):
            if entity is not None:
                values.add((at + k, entity))
            if role != TAIL_ROLE:
                relations.add((at + k, relation))
        at += len(components(FACTS, row))
    assert heard(plan) == [values, relations]


def test_training_plans_refuse_nothing_when_there_are_no_numbers_or_qualifiers():
    plain = mixed_facts(30, seed=3)
    keep = (plain.qualifier_counts() == 0) & ~plain.tail_is_number
    rows = torch.nonzero(keep).squeeze(1)
    plan, questions = plan_training(plain, NumberRows.of(plain), (rows[:-2], rows[:0]), rows[-2:], 0, 0)
    assert len(plan.message_slot) == 2 * (len(rows) - 2) + 3 * 2
    assert questions.targets.there.all()


def test_a_number_that_many_facts_give_is_kept_once():
    facts, twice = mixed_facts(120), torch.tensor([0.25, 0.5])
    for place in ("tail", "qualifier"):  # few different ones
        column, value = getattr(facts, f"{place}_number"), getattr(facts, f"{place}_value")
        column.copy_(twice[(column > 0.5).long()])
        value.copy_(3 * column)
    numbers = NumberRows.of(facts)
    once = numbers.distinct()
    assert len(once.value) == len({(a, b) for a, b in zip(once.relation.tolist(), once.value.tolist(), strict=True)})
    assert len(once.value) < len(numbers.value) / 2
    for column, is_number in (("of_tail", facts.tail_is_number), ("of_qualifier", facts.qualifier_is_number)):
        before, after = (getattr(one, column)[is_number].long() for one in (numbers, once))
        assert torch.equal(numbers.value[before], once.value[after])
        assert torch.equal(numbers.relation[before], once.relation[after])
        assert torch.equal(numbers.plain[before], once.plain[after])
    facts.tail_value[torch.nonzero(facts.tail_is_number)[0]] = 1.0  # as good as the same on the scale
    assert len(NumberRows.of(facts).distinct().value) == len(once.value) + 1
