"""Sums over a fact's other slots: what they are, and that a slot's own content is not in them, to the last bit."""

from __future__ import annotations

import torch

from hynt.batches.fact_slots import NumberRows
from hynt.batches.message_plan import plan_observed
from hynt.kernels.segment_sums import other_slots
from tests.batches.random_graphs import mixed_facts

FACTS = mixed_facts(40)
PLAN = plan_observed(FACTS, NumberRows.of(FACTS), torch.arange(40))
SLOTS = len(PLAN.slot_first)


def test_they_are_the_sums_of_the_others():
    x = torch.randn(SLOTS, 4)
    found = other_slots(x, PLAN)
    for message, slot in enumerate(PLAN.message_slot.tolist()):
        others = [x[k] for k in range(int(PLAN.slot_first[slot]), int(PLAN.slot_stop[slot])) if k != slot]
        torch.testing.assert_close(found[message], torch.stack(others).sum(0))


def test_a_slot_is_not_in_its_own_sum_to_the_last_bit():
    x = torch.randn(SLOTS, 8)
    before = other_slots(x, PLAN)
    for message, slot in enumerate(PLAN.message_slot.tolist()):
        changed = x.clone()
        changed[slot] = torch.randn(8) * 1e6
        assert torch.equal(other_slots(changed, PLAN)[message], before[message])


def test_the_way_back_is_the_transpose():
    x = torch.randn(SLOTS, 3, requires_grad=True)
    outer = torch.randn(len(PLAN.message_slot), 3)
    (slope,) = torch.autograd.grad(other_slots(x, PLAN), x, outer)
    way = torch.randn_like(x)
    torch.testing.assert_close((slope * way).sum(), (other_slots(way, PLAN) * outer).sum(), rtol=1e-4, atol=1e-4)
