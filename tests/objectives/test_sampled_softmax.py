"""Sampled softmax against the full one: the estimate of Z, the gradient in expectation, and the exact parts."""

from __future__ import annotations

import json
import math

import pytest
import torch

from hynt.batches.masked_batch import AskableComponents, Task, mask
from hynt.errors import UsageError
from hynt.objectives import sampled_softmax
from hynt.objectives.losses import LossSettings, smoothed_cross_entropy
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import (
    FULL_UP_TO,
    Drawn,
    NegativeSampler,
    affine_loss,
    answer_shares,
    sampled_cross_entropy,
    samples,
)
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.resolve_settings import check_softmax
from hynt.training.run import start, train
from tests.training.small_graph import TINY, small_graph, tiny_settings

CPU = torch.device("cpu")
ENTITIES, WIDTH, ROWS = 60, 8, 12


def problem(seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    share = torch.rand(ENTITIES, generator=generator, dtype=torch.float64) ** 4
    share[-5:] = 0  # never an answer
    share /= share.sum()
    weight = torch.randn(ENTITIES, WIDTH, generator=generator)
    bias = torch.randn(ENTITIES, generator=generator)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    answer = torch.multinomial(share.float(), ROWS, replacement=True, generator=generator)
    return share, weight, bias, x, answer


def estimated_sums(sampler: NegativeSampler, share, scores, answer: int, draws: int):
    """(draws,) estimates of the sum over all entities but the answer; the batch's other answers are drawn anew."""
    found = []
    for _ in range(draws):
        others = torch.multinomial(share.float(), ROWS - 1, replacement=True)
        batch = torch.cat([torch.tensor([answer]), others])
        drawn = sampler.draw(batch, torch.ones(ROWS))
        kept = (drawn.ids != answer) & drawn.is_real
        found.append((scores[drawn.ids] - drawn.log_count).exp()[kept].sum() / sampler.samples)
    return torch.stack(found)


@pytest.mark.parametrize("source", ["mix", "uniform", "log-uniform"])
def test_the_estimate_of_the_normaliser_is_unbiased(source):
    torch.manual_seed(1)
    share, weight, bias, x, answer = problem()
    scores = weight @ x[0] + bias
    true = scores.exp().sum() - scores[answer[0]].exp()
    sampler = NegativeSampler.of(share, 30, source)
    found = estimated_sums(sampler, share, scores, int(answer[0]), 3000).double()
    error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - true) < 4 * error
    assert error < 0.05 * true  # the test can tell


@pytest.mark.parametrize("source", ["mix", "uniform", "log-uniform"])
def test_the_counts_say_how_often_each_entity_is_drawn(source):
    torch.manual_seed(2)
    share, *_, answer = problem()
    sampler = NegativeSampler.of(share, 30, source)
    count = torch.zeros(ENTITIES)
    times = 3000
    for _ in range(times):
        drawn = sampler.draw(answer, torch.ones(ROWS))
        own = slice(0, sampler.uniform + sampler.log_uniform)
        count += torch.bincount(drawn.ids[0, own], minlength=ENTITIES)
    expected = sampler.base_count * times
    assert ((count - expected).abs() < 5 * expected.sqrt() + 1).all()
    assert float(sampler.base_count.sum()) == pytest.approx(sampler.uniform + sampler.log_uniform, rel=1e-4)


def gradients(x, weight, bias, loss):
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, (x, weight, bias))])


def mean_gradient_error(negatives: int, draws: int, smoothing: float = 0.1) -> float:
    """How far the mean gradient of many samples is from that of the full softmax, as a share of its length."""
    share, *tensors, answer = problem(3)
    weight, bias, x = (tensor.requires_grad_() for tensor in tensors)
    full = gradients(x, weight, bias, smoothed_cross_entropy(x @ weight.t() + bias, answer, smoothing).mean())
    sampler, total = NegativeSampler.of(share, negatives), torch.zeros_like(full)
    for _ in range(draws):
        # The batch is part of the chance: its answers are drawn anew, so many that a question's own hardly counts.
        batch = torch.multinomial(share.float(), 2000, replacement=True)
        drawn = sampler.draw(batch, torch.ones(2000))
        total += gradients(x, weight, bias, sampled_cross_entropy(x, (weight, bias), answer, drawn, smoothing).mean())
    return float((total / draws - full).norm() / full.norm())


def test_the_gradient_agrees_with_the_full_softmax_in_expectation():
    torch.manual_seed(4)
    few, many = mean_gradient_error(60, 600), mean_gradient_error(2000, 200)
    assert many < 0.03
    assert many < few / 2  # what is left is the bias of log, which falls with the size of the sample
    assert few < 0.25


def test_more_samples_make_the_gradient_of_the_table_quieter():
    def noise(samples: int) -> float:
        share, *tensors, answer = problem(7)
        weight, bias, x = (tensor.requires_grad_() for tensor in tensors)
        sampler, found = NegativeSampler.of(share, 20, samples=samples), []
        for _ in range(300):
            drawn = sampler.draw(answer, torch.ones(ROWS))
            loss = sampled_cross_entropy(x, (weight, bias), answer, drawn, 0.5).mean()
            found.append(torch.autograd.grad(loss, weight)[0])
        return float(torch.stack(found).var(0).sum())

    torch.manual_seed(8)
    one, four = noise(1), noise(4)
    assert four < 0.9 * one  # what each question's own draws make of it stays


def test_with_smoothing_equal_scores_leave_nothing_to_estimate():
    """Scores near their mean lie on the tangent: ten draws of sixty then give what all would, to the gradient."""
    torch.manual_seed(6)
    share, weight, bias, x, answer = problem(6)
    tensors = [tensor.requires_grad_() for tensor in (x, 1e-3 * weight, 1e-3 * bias)]
    scores = tensors[0] @ tensors[1].t() + tensors[2]
    full = gradients(*tensors, smoothed_cross_entropy(scores, answer, 0.7).mean())
    drawn = NegativeSampler.of(share, 10, "uniform").draw(answer, torch.ones(ROWS))
    sampled = gradients(*tensors, sampled_cross_entropy(tensors[0], tuple(tensors[1:]), answer, drawn, 0.7).mean())
    assert float((sampled - full).norm() / full.norm()) < 1e-2


def test_all_entities_once_are_the_full_softmax_to_the_last_digits():
    """With every entity drawn exactly once and counted so, nothing is estimated."""
    _, weight, bias, x, answer = problem(5)
    once = torch.zeros(3, ENTITIES)
    drawn = Drawn(torch.arange(ENTITIES).expand(3, -1), once, once == 0)  # three samples, for four questions each
    tensors = [tensor.requires_grad_() for tensor in (x, weight, bias)]
    full = smoothed_cross_entropy(x @ weight.t() + bias, answer, 0.2)
    sampled = sampled_cross_entropy(x, (weight, bias), answer, drawn, 0.2)
    torch.testing.assert_close(sampled, full, rtol=1e-5, atol=1e-5)
    for one, other in zip(
        torch.autograd.grad(sampled.sum(), tensors), torch.autograd.grad(full.sum(), tensors), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_filler_reaches_neither_the_sample_nor_its_counts():
    share, _, _, _, answer = problem()
    sampler = NegativeSampler.of(share, 30)
    weights = torch.ones(ROWS)
    weights[6:] = 0
    torch.manual_seed(0)
    drawn = sampler.draw(answer, weights)
    torch.manual_seed(0)
    changed = answer.clone()
    changed[6:] = 7
    again = sampler.draw(changed, weights)
    assert not drawn.is_real.all()
    assert torch.equal(drawn.is_real, again.is_real)
    assert torch.equal(drawn.ids[drawn.is_real], again.ids[again.is_real])
    assert torch.equal(drawn.log_count[drawn.is_real], again.log_count[again.is_real])


def prepared(**losses):
    settings = tiny_settings(
        model={**TINY["model"], "dropout": 0.0}, losses={"smoothing": 0.1, "softmax": "sampled", **losses}
    )
    graph = small_graph(people=40)
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    stream = MaskedFacts(data.facts, 32, settings.masking, settings.losses, affine_loss)
    return stream, new_model(settings, data, CPU), data


def test_shares_of_answers_are_those_of_many_epochs():
    stream, _, data = prepared()
    shares = answer_shares(data.facts, AskableComponents.of(data.facts))
    count = torch.zeros_like(shares)
    for epoch in range(300):
        plan = stream.epoch(0, epoch)
        for index in range(len(plan)):
            step = plan.step(index)
            _, answers = mask(data.facts, step.rows, step.asked, step.shape.layout)
            rows, weights = step.asks.rows[Task.LINK], step.asks.weights[Task.LINK]
            count.index_add_(0, answers.entity[rows][weights > 0], torch.ones(int(weights.sum())).double())
    assert shares.sum() == pytest.approx(1)
    assert (count / count.sum() - shares).abs().max() < 0.003


def test_a_sampled_step_compiles_in_one_piece():
    """The drawing too: a break would cost the captured step on a GPU."""
    stream, model, _ = prepared(negatives=24)
    items = stream.epoch(0, 0).items(0)
    plain = stream.loss_for(items.shape)
    compiled = torch.compile(plain, dynamic=False, fullgraph=True, backend="aot_eager")
    found = []
    for loss in (plain, compiled):
        model.zero_grad()
        torch.manual_seed(0)
        loss(model, items.tensors).total.backward()
        found.append({name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert "entity_output" in found[0]


def test_training_with_a_sample_reaches_what_the_full_softmax_reaches(tmp_path):
    graph = small_graph(people=30)
    last = {}
    for name in ("full", "sampled"):
        settings = tiny_settings(
            losses={"smoothing": 0.1, "softmax": name, "negatives": 60}, schedule={"epochs": 12, "period": 12}
        )
        run = train(start(graph, settings, tmp_path / name, CPU), CPU)
        records = [json.loads(line) for line in run.metrics.read_text().splitlines()]
        last[name] = next(record["loss"]["link"] for record in reversed(records) if "loss" in record)
    assert last["sampled"] == pytest.approx(last["full"], rel=0.1)


def test_the_same_seed_draws_the_same_sample(tmp_path):
    graph = small_graph()
    settings = tiny_settings(losses={"smoothing": 0.1, "softmax": "sampled", "negatives": 9})
    runs = [train(start(graph, settings, tmp_path / name, CPU), CPU) for name in ("a", "b")]
    weights = [next(run.path.glob("*.safetensors")).read_bytes() for run in runs]
    assert weights[0] == weights[1]


def test_auto_samples_where_there_are_very_many_entities():
    assert not samples(LossSettings(), FULL_UP_TO)
    assert samples(LossSettings(), FULL_UP_TO + 1)
    assert not samples(LossSettings(softmax="full"), 10**7)
    assert samples(LossSettings(softmax="sampled"), 10)


def test_training_samples_by_itself_above_that_size(monkeypatch):
    assert prepared(softmax="auto")[0].entity_loss is None
    monkeypatch.setattr(sampled_softmax, "FULL_UP_TO", 10)
    assert isinstance(prepared(softmax="auto")[0].entity_loss, NegativeSampler)
    assert prepared(softmax="full")[0].entity_loss is None


@pytest.mark.parametrize(("model", "own"), [("gran", {}), ("hynt", {"numbers": "discrete"}), ("transea", {})])
def test_a_model_that_needs_all_scores_refuses_to_sample(model, own):
    settings = tiny_settings(model, losses={"softmax": "sampled"}, model={**(TINY["model"] if own else {}), **own})
    with pytest.raises(UsageError, match="trained on the scores of all entities") as problem:
        check_softmax(settings)
    assert problem.value.where == "losses.softmax"


def test_a_stream_that_cannot_sample_refuses_to():
    facts = prepared()[2].facts
    with pytest.raises(UsageError, match="trained on the scores of all entities"):
        MaskedFacts(facts, 32, losses=LossSettings(softmax="sampled"))
