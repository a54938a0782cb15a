"""Hiding: everything visible is the fact's own, and the answer is nowhere in the batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches.buckets import layout_of, rows_by_bucket
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, MaskedBatch, Task, mask
from tests.batches.random_graphs import check_fit, random_facts


def every_question(facts: FactTensors):
    """All questions, bucket by bucket: (batch, answers, rows, asked)."""
    components = AskableComponents.of(facts)
    owner = components.owner()
    for capacity, rows in rows_by_bucket(facts.qualifier_counts()[owner]):
        layout = layout_of([(len(rows), capacity)])
        fact, asked = owner[rows], components.position[rows]
        check_fit(facts, fact, asked, layout)
        yield *mask(facts, fact, asked, layout), fact, asked


def visible(batch: MaskedBatch, row: int) -> list[tuple[str, float]]:
    """A row of a batch as (kind, value) by position, "hidden" where hidden."""

    def value(entity: int, number: float, is_number: bool, hidden: bool) -> tuple[str, float]:
        if is_number:
            return ("hidden", 0) if hidden else ("number", number)
        return ("hidden", 0) if entity == batch.sizes.mask_entity else ("entity", entity)

    def relation(identity: int) -> tuple[str, float]:
        return ("hidden", 0) if identity == batch.sizes.mask_relation else ("relation", identity)

    found = [
        value(int(batch.head[row]), 0.0, False, False),
        relation(int(batch.relation[row])),
        value(
            int(batch.tail_entity[row]),
            float(batch.tail_number[row]),
            bool(batch.tail_is_number[row]),
            bool(batch.tail_number_masked[row]),
        ),
    ]
    for slot in torch.nonzero(batch.places.slot_row == row).squeeze(1).tolist():
        if batch.qualifier_present[slot]:
            found.append(relation(int(batch.qualifier_relation[slot])))
            found.append(
                value(
                    int(batch.qualifier_entity[slot]),
                    float(batch.qualifier_number[slot]),
                    bool(batch.qualifier_is_number[slot]),
                    bool(batch.qualifier_number_masked[slot]),
                )
            )
    return found


def written_out(facts: FactTensors, row: int) -> list[tuple[str, float]]:
    """A fact by position, straight from the columns."""

    def value(entity: int, number: float, is_number: bool) -> tuple[str, float]:
        return ("number", number) if is_number else ("entity", entity)

    found = [
        ("entity", int(facts.head[row])),
        ("relation", int(facts.relation[row])),
        value(int(facts.tail_entity[row]), float(facts.tail_number[row]), bool(facts.tail_is_number[row])),
    ]
    for slot in range(int(facts.offsets[row]), int(facts.offsets[row + 1])):
        found.append(("relation", int(facts.qualifier_relation[slot])))
        kind = bool(facts.qualifier_is_number[slot])
        found.append(value(int(facts.qualifier_entity[slot]), float(facts.qualifier_number[slot]), kind))
    return found


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(0, 99))
def test_a_batch_shows_the_fact_but_for_the_asked_component_and_answers_hold_that(lengths, seed):
    facts = random_facts(lengths, seed)
    asked_in_all = 0
    for batch, answers, rows, asked in every_question(facts):
        tasks = batch.task()
        assert torch.equal(tasks, answers.task)
        for row, (fact, position) in enumerate(zip(rows.tolist(), asked.tolist(), strict=True)):
            truth, seen = written_out(facts, fact), visible(batch, row)
            kind, answer = truth[position]
            assert seen == [*truth[:position], ("hidden", 0), *truth[position + 1 :]]
            assert tasks[row] == {"entity": Task.LINK, "relation": Task.RELATION, "number": Task.NUMBER}[kind]
            assert float(getattr(answers, kind)[row]) == answer
            beside = position if kind == "relation" else (1 if position <= 2 else position - 1)
            expected = batch.sizes.mask_relation if kind == "relation" else truth[beside][1]
            assert int(batch.asked_relation()[row]) == expected
            asked_in_all += 1
    assert asked_in_all == sum(3 + 2 * length for length in lengths)


def test_changing_the_answer_changes_nothing_in_the_batch():
    """The strongest form of "the answer is nowhere in the batch": rebuild it from facts with other answers."""
    one = random_facts([0, 1, 2, 3] * 4)
    for position in range(9):
        rows = torch.nonzero(3 + 2 * one.qualifier_counts() > position).squeeze(1)
        rows = rows[torch.argsort(one.qualifier_counts()[rows], stable=True)]
        found = rows_by_bucket(one.qualifier_counts()[rows])
        layout = layout_of([(len(part), capacity) for capacity, part in found])
        asked = torch.full_like(rows, position)
        before, _ = mask(one, rows, asked, layout)
        after, _ = mask(with_other_answers(one, position), rows, asked, layout)
        for name, tensor in before.tensors().items():
            assert torch.equal(tensor, after.tensors()[name]), (position, name)


def with_other_answers(facts: FactTensors, position: int) -> FactTensors:
    """The same facts with everything that stands at `position` exchanged, kinds kept."""
    changed = {name: getattr(facts, name).clone() for name in facts.__dataclass_fields__ if name != "sizes"}
    if position <= 2:
        where, names = slice(None), [("head",), ("relation",), ("tail_entity", "tail_number", "tail_value")][position]
    else:
        starts = facts.offsets[:-1][facts.qualifier_counts() > (position - 3) // 2]
        where = starts + (position - 3) // 2
        value_names = ("qualifier_entity", "qualifier_number", "qualifier_value")
        names = ("qualifier_relation",) if position % 2 else value_names
    for name in names:
        changed[name][where] += 1
    return FactTensors(sizes=facts.sizes, **changed)


def test_a_fact_too_long_for_its_place_or_a_position_it_lacks_is_refused_by_the_check():
    facts = random_facts([2, 0])
    zero = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match="more qualifiers than the 1 its segment has places for"):
        check_fit(facts, zero, zero, layout_of([(1, 1)]))
    with pytest.raises(ValueError, match="a position was asked for that its fact does not have"):
        check_fit(facts, zero + 1, zero + 3, layout_of([(1, 0)]))
    with pytest.raises(ValueError, match="the layout has 2 rows, but 1 facts and 1 positions were given"):
        check_fit(facts, zero, zero, layout_of([(2, 2)]))


def test_beside_a_hidden_relation_stands_the_number_as_it_is_written():
    facts = random_facts([0, 1, 2, 3] * 4)
    for batch, _, fact, asked in every_question(facts):
        for row, (of, position) in enumerate(zip(fact.tolist(), asked.tolist(), strict=True)):
            expected = 0.0
            if position == 1 and facts.tail_is_number[of]:
                expected = float(facts.tail_value[of])
            elif position > 2 and position % 2 == 1:
                expected = float(facts.qualifier_value[int(facts.offsets[of]) + (position - 3) // 2])
            assert float(batch.number_beside[row]) == expected
