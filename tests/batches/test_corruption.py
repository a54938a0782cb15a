"""Negatives are false, differ from their fact in one place, and come from what was seen in such a place."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.corruption import Corrupter, Corruption, Exchange, KnownFacts, value_at
from hynt.batches.masked_batch import fill, mask
from hynt.models.checking import example_facts

FACTS = example_facts(literals=True)
ROWS = torch.arange(len(FACTS)).repeat(20)


def written(facts):
    """Each fact as a plain value in which the order of qualifiers does not count."""
    found = []
    for row in range(len(facts)):
        pairs = range(int(facts.offsets[row]), int(facts.offsets[row + 1]))
        qualifiers = sorted((int(facts.qualifier_relation[i]), int(facts.qualifier_entity[i])) for i in pairs)
        triplet = (int(facts.head[row]), int(facts.relation[row]), int(facts.tail_entity[row]))
        found.append((triplet, tuple(qualifiers)))
    return found


def changed(row, asked, entity, relation):
    triplet, offset = list(written(FACTS)[row][0]), int(FACTS.offsets[row])
    count = int(FACTS.qualifier_counts()[row])
    pairs = [[int(FACTS.qualifier_relation[offset + i]), int(FACTS.qualifier_entity[offset + i])] for i in range(count)]
    if asked <= 2:
        triplet[asked] = relation if asked == 1 else entity
    else:
        pairs[(asked - 3) // 2][(asked - 3) % 2] = relation if asked % 2 else entity
    return tuple(triplet), tuple(sorted((q, v) for q, v in pairs))


def drawn(corruption, share):
    of_relation = torch.rand(len(ROWS), generator=torch.Generator().manual_seed(1)) < share
    generator = torch.Generator().manual_seed(0)
    where = torch.rand(len(ROWS), generator=generator, dtype=torch.float64)
    return Corrupter(FACTS, corruption).draw(ROWS, of_relation, where, generator), of_relation


@pytest.mark.parametrize("corruption", [Corruption(), Corruption(pool="all"), Corruption(pool="answers")])
def test_negatives_are_no_training_facts_and_differ_in_the_drawn_place(corruption):
    (exchange, false), of_relation = drawn(corruption, 0.5)
    assert bool(false.all())
    assert bool(((exchange.asked % 2 == 1) == of_relation).all())
    known, seen = set(written(FACTS)), set()
    for row, asked, entity, relation in zip(
        ROWS.tolist(), exchange.asked.tolist(), exchange.entity.tolist(), exchange.relation.tolist(), strict=True
    ):
        assert changed(row, asked, entity, relation) not in known
        seen.add(min(asked, 3 + (asked - 3) % 2))
    assert seen == {0, 1, 2, 3, 4}


def test_keys_find_true_facts_whatever_the_order_of_qualifiers():
    known = KnownFacts.of(FACTS)
    rows = torch.arange(len(FACTS))
    zeros = torch.zeros_like(rows)
    same = Exchange(zeros, FACTS.head.long(), zeros)
    assert bool(known.holds(rows, same).all())
    turned = torch.cat([torch.arange(int(a), int(b)).flip(0) for a, b in pairwise(FACTS.offsets)])
    order = torch.cat([turned, torch.tensor([FACTS.qualifier_total])])
    other = replace(
        FACTS, qualifier_relation=FACTS.qualifier_relation[order], qualifier_entity=FACTS.qualifier_entity[order]
    )
    assert torch.equal(KnownFacts.of(other).of_fact, known.of_fact)


def test_new_values_were_seen_in_such_a_place_unless_all_are_true():
    (exchange, _), _ = drawn(Corruption(), 0.0)
    heads = {}
    for (head, relation, _), _ in written(FACTS):
        heads.setdefault(relation, set()).add(head)
    asks_head = exchange.asked == 0
    pairs = list(zip(FACTS.relation[ROWS[asks_head]].tolist(), exchange.entity[asks_head].tolist(), strict=True))
    assert len(pairs) > 100
    inside = [entity in heads[relation] for relation, entity in pairs]
    assert sum(inside) > 0.95 * len(inside)


def test_new_values_can_be_those_among_which_an_answer_is_looked_for():
    (exchange, _), _ = drawn(Corruption(pool="answers"), 0.0)
    beside = {}
    for (_, relation, tail), _ in written(FACTS):
        beside.setdefault(relation, set()).add(tail)
    old, is_tail = value_at(FACTS, ROWS, exchange.asked), exchange.asked == 2
    is_number = old > FACTS.sizes.mask_entity
    assert bool((exchange.entity[~is_number] < FACTS.sizes.entities).all())
    assert set(exchange.entity[~is_number].tolist()) == set(range(FACTS.sizes.entities))  # any of them
    numbers = is_number & is_tail
    pairs = zip(FACTS.relation[ROWS[numbers]].tolist(), exchange.entity[numbers].tolist(), strict=True)
    several = [entity in beside[relation] for relation, entity in pairs if len(beside[relation]) > 1]
    assert len(several) > 20
    assert all(several)


def test_the_share_of_relations_is_by_the_number_of_ids_or_as_set():
    sizes = FACTS.sizes
    expected = sizes.relations / (sizes.relations + sizes.entities + sizes.literals)
    assert Corrupter(FACTS, Corruption()).relation_share == expected
    assert Corrupter(FACTS, Corruption(relations=0.25)).relation_share == 0.25


def test_where_everything_is_true_there_is_no_negative():
    full = example_facts(literals=False)
    entities = 2
    head = torch.arange(4) // entities
    tail = torch.arange(4) % entities
    few = replace(
        full,
        sizes=full.sizes._replace(entities=entities),
        head=head.int(),
        relation=torch.zeros(4).int(),
        tail_entity=tail.int(),
        offsets=torch.zeros(5).long(),
        qualifier_relation=torch.zeros(1).int(),
        qualifier_entity=torch.zeros(1).int(),
    )
    rows = torch.arange(4)
    _, false = Corrupter(few, Corruption()).draw(rows, rows < 0, rows / 4, torch.Generator().manual_seed(0))
    assert not bool(false.any())


def test_filling_with_the_answer_restores_the_fact():
    counts = FACTS.qualifier_counts()
    for row in range(len(FACTS)):
        layout = layout_of([(1, int(counts[row]))])
        for asked in range(3 + 2 * int(counts[row])):
            batch, answers = mask(FACTS, torch.tensor([row]), torch.tensor([asked]), layout)
            whole = fill(batch, answers.entity, answers.relation)
            other, told = mask(FACTS, torch.tensor([row]), torch.tensor([0]), layout)
            expected = fill(other, told.entity, told.relation)
            for name in ("head", "relation", "tail_entity", "qualifier_relation", "qualifier_entity"):
                assert torch.equal(getattr(whole, name), getattr(expected, name))
