"""An epoch of masked facts: every fact once, static shapes, uniform draws, switches for ablations, bounded filler."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches import epoch_plan
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Masking, Task, mask
from hynt.objectives.masked_facts import MaskedEpoch, MaskedFacts
from tests.batches.random_graphs import check_fit, random_facts

LONG_TAIL = [0] * 400 + [1] * 60 + [2] * 30 + [3] * 5 + [17, 40, 358]


def questions(facts: FactTensors, plan: MaskedEpoch) -> list[tuple[int, int, Task]]:
    """(fact, asked position, task) of every place with weight, after checking that its step is sound."""
    found = []
    for index in range(len(plan)):
        step = plan.step(index)
        check_fit(facts, step.rows, step.asked, step.shape.layout)
        _, answers = mask(facts, step.rows, step.asked, step.shape.layout)
        for task in Task:
            rows, weights = step.asks.rows[task], step.asks.weights[task]
            assert len(rows) == len(weights) == step.shape.outputs[task]
            assert set(weights.tolist()) <= {0.0, 1.0}
            real = rows[weights > 0]
            assert (answers.task[real] == task).all()
            pairs = zip(step.rows[real].tolist(), step.asked[real].tolist(), strict=True)
            found += [(fact, position, task) for fact, position in pairs]
    return found


@given(st.lists(st.integers(0, 12), min_size=1, max_size=120), st.integers(1, 40), st.integers(0, 99))
def test_each_fact_comes_exactly_once_an_epoch(lengths, batch_size, seed):
    facts = random_facts(lengths, seed)
    stream = MaskedFacts(facts, batch_size)
    plan = stream.epoch(seed, epoch=3)
    assert len(plan) == stream.planner.steps == -(-len(lengths) // batch_size)
    assert sorted(fact for fact, _, _ in questions(facts, plan)) == list(range(len(lengths)))


def test_each_fact_comes_once_with_a_long_tail_whose_filler_is_bounded():
    facts = random_facts(LONG_TAIL)
    stream = MaskedFacts(facts, 16)
    plan = stream.epoch(1, 1)
    assert sorted(fact for fact, _, _ in questions(facts, plan)) == list(range(len(LONG_TAIL)))
    special = [index for index in range(len(plan)) if plan.step(index).shape != stream.regular]
    assert 0 < len(special) < stream.planner.steps
    assert [plan.step(index).shape.layout.segments[-1].capacity for index in special].count(512) == 1
    tokens = sum(plan.step(index).shape.layout.tokens for index in range(len(plan)))
    real = sum(1 + length for length in LONG_TAIL)
    padded_to_longest = len(LONG_TAIL) * (1 + max(LONG_TAIL))
    assert tokens < 1.4 * real < padded_to_longest / 100


def test_shapes_stay_the_same_over_epochs_and_plans_differ():
    facts = random_facts(LONG_TAIL)
    stream = MaskedFacts(facts, 64)
    plans = [stream.epoch(7, epoch) for epoch in range(40)]
    assert {tuple(steps.shape for steps in plan.groups) for plan in plans} == {stream.shapes}
    asked = {tuple(sorted(questions(facts, plan))) for plan in plans[:5]}
    assert len(asked) == 5


def test_a_plan_follows_from_seed_and_epoch_alone():
    facts = random_facts(LONG_TAIL)
    one, other = MaskedFacts(facts, 64).epoch(7, 5), MaskedFacts(facts, 64).epoch(7, 5)
    for mine, its in zip(one.groups, other.groups, strict=True):
        assert torch.equal(mine.indices, its.indices)
        assert torch.equal(mine.weights, its.weights)
    for seed, epoch in ((8, 5), (7, 6)):
        another = MaskedFacts(facts, 64).epoch(seed, epoch)
        assert not torch.equal(one.groups[-1].indices, another.groups[-1].indices)


def test_components_are_drawn_uniformly():
    """Chi-square over the components of each fact; with a fixed seed the verdict is fixed too."""
    lengths = [0, 1, 2, 5] * 5
    facts = random_facts(lengths)
    stream = MaskedFacts(facts, 8)
    epochs = 800
    tally = [torch.zeros(3 + 2 * length) for length in lengths]
    for epoch in range(epochs):
        plan = stream.epoch(11, epoch)
        for steps in plan.groups:
            rows, width = steps.shape.layout.rows, steps.shape.outputs
            for indices, weights in zip(steps.indices, steps.weights, strict=True):
                for row in indices[2 * rows :][weights > 0].tolist():
                    tally[int(indices[row])][int(indices[rows + row])] += 1
            assert sum(width) == steps.weights.shape[1]
    statistic = sum(float(((seen - epochs / len(seen)) ** 2 / (epochs / len(seen))).sum()) for seen in tally)
    freedom = sum(len(seen) - 1 for seen in tally)
    assert all(int(seen.sum()) == epochs for seen in tally)
    assert abs(statistic - freedom) < 3 * (2 * freedom) ** 0.5


def test_facts_change_company_between_epochs():
    facts = random_facts([0] * 64)
    stream = MaskedFacts(facts, 32)
    together = 0
    for epoch in range(200):
        plan = stream.epoch(3, epoch)
        together += any(
            {0, 1} <= set(step.tolist()) for step in plan.groups[-1].indices[:, : stream.regular.layout.rows]
        )
    assert 60 < together < 140  # by chance in about half of the epochs


@pytest.mark.parametrize("numbers, relations, qualifiers", list(itertools.product([True, False], repeat=3)))
def test_the_ablation_switches_take_out_the_right_components(numbers, relations, qualifiers):
    facts = random_facts([0, 1, 2, 3] * 10)
    masking = Masking(numbers=numbers, relations=relations, qualifiers=qualifiers)
    whole, left = AskableComponents.of(facts), AskableComponents.of(facts, masking)

    def listed(components: AskableComponents) -> set[tuple[int, int, int]]:
        columns = (components.owner(), components.position, components.task)
        return set(zip(*(column.tolist() for column in columns), strict=True))

    def stays(position: int, task: int) -> bool:
        return (
            (numbers or task != Task.NUMBER) and (relations or task != Task.RELATION) and (qualifiers or position <= 2)
        )

    expected = {component for component in listed(whole) if stays(component[1], component[2])}
    assert listed(left) == expected
    assert len(whole) == 3 * len(facts) + 2 * facts.qualifier_total
    stream = MaskedFacts(facts, 16, masking)
    asked = questions(facts, stream.epoch(1, 1))
    assert sorted(fact for fact, _, _ in asked) == list(range(len(facts)))
    assert set(asked) <= expected
    for task, there in ((Task.NUMBER, numbers), (Task.RELATION, relations)):
        assert (stream.regular.outputs[task] > 0) == there


def test_when_chance_needs_more_places_the_plan_has_them(monkeypatch):
    monkeypatch.setattr(epoch_plan, "DEVIATIONS", -3.0)
    facts = random_facts([0] * 300)
    stream = MaskedFacts(facts, 100)
    plan = stream.epoch(1, 1)
    assert plan.groups[-1].shape != stream.regular
    assert sorted(fact for fact, _, _ in questions(facts, plan)) == list(range(300))


def test_no_facts_and_no_step_are_errors():
    with pytest.raises(ValueError, match="there is nothing to train on"):
        MaskedFacts(random_facts([]), 4)
    with pytest.raises(IndexError):
        MaskedFacts(random_facts([0] * 8), 4).epoch(0, 0).step(2)
