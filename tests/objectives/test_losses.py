"""The joint loss against torch's own, and its weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional

from hynt.batches.buckets import layout_index
from hynt.batches.masked_batch import Task, mask
from hynt.models.contract import Entities, Relations, ScaledNumber, Tokens
from hynt.models.hynt import Hynt, HyntSettings
from hynt.objectives.losses import (
    LossPart,
    LossSettings,
    joint_loss,
    masked_fact_losses,
    merged_cross_entropy,
    smoothed_cross_entropy,
)
from hynt.objectives.masked_facts import MaskedFacts, PackedStep
from tests.models.small_models import SMALL, facts_of, small_model

BOTH = pytest.mark.parametrize("form", [smoothed_cross_entropy, merged_cross_entropy])


@BOTH
@pytest.mark.parametrize("smoothing", [0.0, 0.3, 0.7])
def test_smoothed_cross_entropy_and_its_gradient_equal_torchs(form, smoothing):
    torch.manual_seed(0)
    logits = (5 * torch.randn(7, 11)).requires_grad_()
    answer = torch.randint(0, 11, (7,))
    outer = torch.randn(7)
    mine = form(logits, answer, smoothing)
    its = functional.cross_entropy(logits, answer, label_smoothing=smoothing, reduction="none")
    torch.testing.assert_close(mine, its)
    torch.testing.assert_close(torch.autograd.grad(mine, logits, outer)[0], torch.autograd.grad(its, logits, outer)[0])


@BOTH
def test_smoothed_cross_entropy_takes_half_precision_and_huge_logits(form):
    logits = torch.tensor([[1000.0, -1000.0, 0.0]], dtype=torch.bfloat16, requires_grad=True)
    loss = form(logits, torch.tensor([0]), 0.1)
    assert loss.dtype == torch.float32
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert logits.grad is not None
    assert logits.grad.dtype == torch.bfloat16
    assert torch.isfinite(logits.grad).all()


def one_step(literals: bool = False, **more):
    facts = facts_of([0, 0, 0, 1, 1, 2, 3, 5] * 6, literals=literals)
    model = small_model(HyntSettings(**SMALL, **more), facts)
    step = MaskedFacts(facts, 24).epoch(1, 1).step(1)
    return facts, model, step


def losses(facts, model: Hynt, step: PackedStep) -> dict[Task, LossPart]:
    batch, answers = mask(facts, step.rows, step.asked, step.shape.layout)
    return masked_fact_losses(model, batch, answers, step.asks, smoothing=0.2)


def test_each_part_is_the_mean_over_its_own_questions():
    facts, model, step = one_step()
    parts = losses(facts, model, step)
    batch, answers = mask(facts, step.rows, step.asked, step.shape.layout)
    question = model.read(batch)
    for task, part in parts.items():
        rows, weights = step.asks.rows[task], step.asks.weights[task]
        rows = rows[weights > 0]
        asked = question.take(rows)
        if task is Task.NUMBER:
            expected = functional.mse_loss(model.score(asked, ScaledNumber()), answers.number[rows])
        else:
            kind, truth = (Entities(), answers.entity) if task is Task.LINK else (Relations(), answers.relation)
            expected = functional.cross_entropy(model.score(asked, kind), truth[rows], label_smoothing=0.2)
        torch.testing.assert_close(part.mean(), expected)
        assert int(part.weight) == len(rows) > 0


def test_filler_counts_for_nothing():
    facts, model, step = one_step()
    before = joint_loss(losses(facts, model, step), LossSettings())
    indices = step.indices.clone()
    rows = step.shape.layout.rows
    filler = torch.nonzero(step.weights == 0).squeeze(1)
    assert len(filler) > 0
    indices[2 * rows + filler] = rows - 1
    after = joint_loss(losses(facts, model, step._replace(indices=indices)), LossSettings())
    torch.testing.assert_close(before, after)


def test_the_weights_of_the_parts_and_of_other_processes():
    parts = {
        Task.LINK: LossPart(torch.tensor(6.0), torch.tensor(3.0)),
        Task.RELATION: LossPart(torch.tensor(8.0), torch.tensor(2.0)),
        Task.NUMBER: LossPart(torch.tensor(0.0), torch.tensor(0.0)),
    }
    assert float(joint_loss(parts, LossSettings(relation_weight=0.5, number_weight=7))) == 2 + 0.5 * 4
    shared = {Task.LINK: torch.tensor(6.0), Task.RELATION: torch.tensor(4.0), Task.NUMBER: torch.tensor(0.0)}
    assert float(joint_loss(parts, LossSettings(), shared)) == 1 + 2


def test_discrete_numbers_are_learned_by_cross_entropy_over_entities_and_literals():
    facts, model, step = one_step(literals=True, numbers="discrete")
    parts = losses(facts, model, step)
    batch, answers = mask(facts, step.rows, step.asked, step.shape.layout)
    rows, weights = step.asks.rows[Task.NUMBER], step.asks.weights[Task.NUMBER]
    rows = rows[weights > 0]
    logits = model.score(model.read(batch).take(rows), Tokens())
    assert logits.shape[1] == facts.sizes.entities + facts.sizes.literals
    expected = functional.cross_entropy(logits, answers.entity[rows] - 1, label_smoothing=0.2)
    torch.testing.assert_close(parts[Task.NUMBER].mean(), expected)


def test_hiding_and_the_whole_loss_compile_into_one_graph():
    """No graph break, no look at a value: what a captured step needs. Held without a compiler for machine code."""
    facts, model, step = one_step()
    at = layout_index(step.shape.layout, facts.device)

    def loss(indices, weights):
        here = PackedStep(step.shape, indices, weights)
        batch, answers = mask(facts, here.rows, here.asked, here.shape.layout, at)
        return joint_loss(masked_fact_losses(model, batch, answers, here.asks, 0.2), LossSettings())

    compiled = torch.compile(loss, fullgraph=True, dynamic=False, backend="aot_eager")
    expected = torch.autograd.grad(loss(step.indices, step.weights), model.entity)[0]
    found = torch.autograd.grad(compiled(step.indices, step.weights), model.entity)[0]
    torch.testing.assert_close(found, expected)
