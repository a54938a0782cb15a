"""The benchmark's plain reference is the same model: equal scores, loss and gradients on the same weights."""

from __future__ import annotations

import random

import pytest
import torch

from benchmarks.naive_reference import Fact, NaiveHynt, facts_as_lists, naive_loss, naive_steps, padded_batch
from hynt.batches.buckets import layout_of, rows_by_bucket
from hynt.batches.masked_batch import AskableComponents, Task, mask
from hynt.models.contract import Entities, Relations, ScaledNumber
from hynt.objectives.losses import LossSettings, joint_loss, masked_fact_losses
from hynt.objectives.masked_facts import PackedStep, StepShape
from tests.models.small_models import FORMS, facts_of, small_model

PAPER = FORMS["paper"]


class Given(random.Random):
    """Draws what it is told to."""

    def __init__(self, positions: list[int]) -> None:
        super().__init__(0)
        self.positions = iter(positions)

    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return next(self.positions)


@pytest.mark.parametrize("longest", [None, 7])
def test_scores_loss_and_gradients_agree(longest):
    facts = facts_of([0, 1, 2, 3, 4] * 12)
    ours = small_model("paper", facts)
    naive = NaiveHynt(facts.sizes, PAPER)
    naive.take_weights(ours)
    ours.train()
    naive.train()
    asked, task = AskableComponents.of(facts).drawn(torch.rand(len(facts), dtype=torch.float64))
    groups = rows_by_bucket(facts.qualifier_counts())
    rows = torch.cat([chosen for _, chosen in groups])
    layout = layout_of((len(chosen), capacity) for capacity, chosen in groups)
    batch, answers = mask(facts, rows, asked[rows], layout)
    lists = facts_as_lists(facts)
    padded = padded_batch([lists[i] for i in rows.tolist()], facts.sizes, longest, Given(asked[rows].tolist()))
    assert padded.task.tolist() == task[rows].tolist()

    question = ours.read(batch)
    scores = naive(padded)
    place = torch.arange(len(rows)), padded.place
    for kind, candidates in ((Task.LINK, Entities()), (Task.RELATION, Relations())):
        chosen = torch.nonzero(padded.task == kind).squeeze(1)
        torch.testing.assert_close(
            scores[kind][place][chosen], ours.score(question.take(chosen), candidates), rtol=1e-4, atol=1e-5
        )
    chosen = torch.nonzero(padded.task == Task.NUMBER).squeeze(1)
    number = scores[2][(*place, padded.answer_relation)][chosen]
    torch.testing.assert_close(number, ours.score(question.take(chosen), ScaledNumber()), rtol=1e-4, atol=1e-5)

    by_task = [torch.nonzero(padded.task == kind).squeeze(1) for kind in Task]
    shape = StepShape(layout, tuple(len(one) for one in by_task))
    indices = torch.cat([rows, asked[rows], *by_task])
    step = PackedStep(shape, indices, torch.ones(len(rows)))
    loss = joint_loss(masked_fact_losses(ours, batch, answers, step.asks, 0.3), LossSettings(smoothing=0.3))
    plain = naive_loss(naive, padded, 0.3)
    torch.testing.assert_close(plain, loss, rtol=1e-5, atol=1e-6)
    loss.backward()
    plain.backward()
    for name in ("entity", "relation", "context_position", "number_weight", "entity_output"):
        torch.testing.assert_close(getattr(naive, name).grad, getattr(ours, name).grad, rtol=1e-3, atol=1e-6)


def test_weights_come_back_as_they_were():
    facts = facts_of([0, 1, 2] * 5)
    first, second = (small_model("paper", facts, seed) for seed in (1, 2))
    naive = NaiveHynt(facts.sizes, PAPER)
    naive.take_weights(first)
    naive.give_weights(second)
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


def test_an_epoch_has_every_fact_once():
    facts = facts_of([0] * 5)
    lists = [Fact([index, 0, 0], [False] * 3) for index in range(50)]
    batches = list(naive_steps(lists, facts.sizes, 8, Given([1] * 50), None))
    assert [len(batch.head) for batch in batches] == [8] * 6 + [2]
    assert sorted(torch.cat([batch.head for batch in batches]).tolist()) == list(range(50))
