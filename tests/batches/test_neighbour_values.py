"""What is known near a number that is asked for, against loops over facts."""

from __future__ import annotations

import math

import pytest
import torch

from hynt.batches.neighbour_values import CODES, FEATURES, NeighbourLists
from tests.batches.random_graphs import mixed_facts

FACTS = mixed_facts(300)
NOBODY = FACTS.sizes.entities


def qualifiers(row):
    return range(int(FACTS.offsets[row]), int(FACTS.offsets[row + 1]))


def values_of(entity, relation, observed):
    """The numbers of a relation that observed facts give an entity."""
    found = []
    for row in torch.nonzero(observed).squeeze(1).tolist():
        tail = None if FACTS.tail_is_number[row] else int(FACTS.tail_entity[row])
        if tail is None and int(FACTS.head[row]) == entity and int(FACTS.relation[row]) == relation:
            found.append(float(FACTS.tail_number[row]))
        for k in qualifiers(row):
            if FACTS.qualifier_is_number[k] and int(FACTS.qualifier_relation[k]) == relation:
                found += [float(FACTS.qualifier_number[k])] * [int(FACTS.head[row]), tail].count(entity)
    return found


def neighbours_of(entity, observed):
    found = []
    for row in torch.nonzero(observed & ~FACTS.tail_is_number).squeeze(1).tolist():
        head, tail = int(FACTS.head[row]), int(FACTS.tail_entity[row])
        found += [tail] * (head == entity) + [head] * (tail == entity)
    return found


def described(values):
    if not values:
        return [0.0] * (2 + CODES)
    mean = sum(values) / len(values)
    return [1.0, math.log1p(len(values)) / 3, *(min(max(mean * CODES - k, 0.0), 1.0) for k in range(CODES))]


def asked():
    """Heads, tails and relations of all numbers there are, and two of nobody."""
    found = [(int(FACTS.head[r]), NOBODY, int(FACTS.relation[r])) for r in range(300) if FACTS.tail_is_number[r]]
    for row in range(300):
        tail = NOBODY if FACTS.tail_is_number[row] else int(FACTS.tail_entity[row])
        number = [k for k in qualifiers(row) if FACTS.qualifier_is_number[k]]
        found += [(int(FACTS.head[row]), tail, int(FACTS.qualifier_relation[k])) for k in number]
    return [*found[:40], *found[-40:], (NOBODY, NOBODY, found[0][2]), (NOBODY, found[-1][1], found[-1][2])]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_equals_loops(share):
    observed = torch.rand(len(FACTS), generator=torch.Generator().manual_seed(1)) < share
    rows = asked()
    found = NeighbourLists.of(FACTS).seen(observed).features(*torch.tensor(rows).unbind(1))
    assert found.shape == (len(rows), FEATURES)
    for (head, tail, relation), mine in zip(rows, found, strict=True):
        around = [value for one in neighbours_of(head, observed) for value in values_of(one, relation, observed)]
        near = (values_of(head, relation, observed), values_of(tail, relation, observed), around)
        torch.testing.assert_close(
            mine, torch.tensor([x for values in near for x in described(values)]), rtol=1e-4, atol=1e-5
        )
    assert share == 0 or bool(found[:, 0].any() and found[:, 2 * (2 + CODES)].any())


def test_a_capacity_that_suffices_changes_nothing_and_a_small_one_passes_over_the_last():
    seen = NeighbourLists.of(FACTS).seen(torch.ones(len(FACTS), dtype=torch.bool))
    head, tail, relation = torch.tensor(asked()).unbind(1)
    exact = seen.features(head, tail, relation)
    assert torch.equal(seen.features(head, tail, relation, capacity=10_000), exact)
    few = seen.features(head, tail, relation, capacity=30)
    assert torch.equal(few[:, : 2 * (2 + CODES)], exact[:, : 2 * (2 + CODES)])
    assert not torch.equal(few, exact)


def test_no_numbers_and_no_questions():
    facts = mixed_facts(20)
    lists = NeighbourLists.of(facts)
    seen = lists.seen(torch.zeros(20, dtype=torch.bool))
    none = torch.zeros(0, dtype=torch.int64)
    assert seen.features(none, none, none).shape == (0, FEATURES)
    assert not seen.features(torch.tensor([0]), torch.tensor([1]), torch.tensor([0])).any()
