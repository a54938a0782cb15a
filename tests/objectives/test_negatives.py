"""The stream of facts with negatives: every fact once an epoch beside its own negatives, and losses as counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
import torch
import torch.nn.functional as functional
from torch import nn

from hynt.batches.corruption import Corruption
from hynt.batches.masked_batch import fill, mask
from hynt.models.checking import example_facts
from hynt.objectives.negatives import NegativeFacts, logistic_loss, softmax_loss

FACTS = example_facts(literals=True)


class Heads(nn.Module):
    """Scores a fact by its head and its tail alone, and keeps what it was shown."""

    corruption = Corruption()

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 200))
        self.shown = []

    def score_facts(self, batch, real):
        self.shown.append((batch, real))
        return self.weight[batch.head] + self.weight[batch.tail_entity]


@pytest.mark.parametrize("negatives", [1, 3])
def test_every_fact_comes_once_with_its_negatives(negatives):
    stream = NegativeFacts(FACTS, 16, Corruption(negatives=negatives, relations=0.3))
    epoch, model = stream.epoch(0, 0), Heads()
    met, counts = [], 0.0
    for index in range(len(epoch)):
        shape, tensors = epoch.items(index)
        loss = stream.loss_for(shape)(model, tensors)
        batch, real = model.shown[-1]
        (rows, asked, entity, _), weights = tensors
        start, total = 0, 0.0
        for size, _ in shape.layout.segments:
            facts = slice(start, start + size)
            met += rows[facts][weights[facts] > 0].tolist()
            plain, answers = mask(FACTS, rows, asked, shape.doubled())
            whole = fill(plain, answers.entity, answers.relation)
            assert torch.equal(batch.head[facts], whole.head[facts])
            assert torch.equal(batch.tail_entity[facts], whole.tail_entity[facts])
            assert torch.equal(entity[facts][asked[facts] != 1], answers.entity[facts][asked[facts] != 1])
            scores = model.score_facts(batch, real)
            total += float((functional.softplus(-scores[facts]) * weights[facts]).sum().detach())
            for number in range(1, negatives + 1):
                there = slice(start + number * size, start + (number + 1) * size)
                assert torch.equal(rows[there], rows[facts])
                total += float((functional.softplus(scores[there]) * weights[there]).sum().detach())
            start += size * (1 + negatives)
        assert float(loss.sums.detach()) == pytest.approx(total, rel=1e-5)
        assert float(loss.total.detach()) == pytest.approx(total / float(loss.counts), rel=1e-5)
        counts += float(loss.counts)
    assert sorted(met) == list(range(len(FACTS)))
    assert counts == (1 + negatives) * len(FACTS)


def firsts(shape):
    return accumulate([size * (1 + shape.negatives) for size, _ in shape.layout.segments[:-1]], initial=0)


def test_an_epoch_follows_from_seed_and_number():
    stream = NegativeFacts(FACTS, 16, Corruption())
    one, same, other = (stream.epoch(0, epoch).items(0).tensors[0] for epoch in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_step_exchanges_relations_or_values_by_one_coin():
    for coin, mixed in (("step", False), ("fact", True)):
        stream = NegativeFacts(FACTS, 16, Corruption(relations=0.5, coin=coin))
        kinds = []
        for index in range(4):
            shape, ((_, asked, _, _), _) = stream.epoch(0, 0).items(index)
            start = 0
            found = []
            for size, _ in shape.layout.segments:
                found += (asked[start + size : start + 2 * size] % 2).tolist()
                start += 2 * size
            kinds.append(len(set(found)))
        assert (max(kinds) == 2) == mixed


def test_the_loss_is_what_it_says():
    scores = torch.tensor([[0.0, 3.0], [0.0, 1.0], [-2.0, 5.0]])
    expected = -torch.stack([scores[0].sigmoid(), (-scores[1]).sigmoid(), (-scores[2]).sigmoid()]).log()
    assert torch.allclose(logistic_loss(scores), expected)


def test_a_choice_is_the_cross_entropy_among_the_negatives_there_are():
    scores, weight = torch.randn(4, 5), torch.ones(4, 5)
    weight[2, 1], weight[1:, 3] = 0.0, 0.0  # one is missing; all are
    found = softmax_loss(scores, weight)
    for column, mine in enumerate(found):
        shown = scores[:, column][torch.cat([torch.tensor([True]), weight[1:, column] > 0])]
        assert float(mine) == pytest.approx(float(functional.cross_entropy(shown, torch.tensor(0))), abs=1e-6)
    assert float(found[3]) == 0.0


@pytest.mark.parametrize("coin", ["step", "fact"])
def test_negatives_to_be_chosen_among_answer_one_question(coin):
    stream = NegativeFacts(FACTS, 16, Corruption(negatives=3, relations=0.3, coin=coin, loss="softmax"))
    epoch, model, counts = stream.epoch(0, 0), Heads(), 0.0
    for index in range(len(epoch)):
        shape, tensors = epoch.items(index)
        (_, asked, _, _), weights = tensors
        loss, start, total = stream.loss_for(shape)(model, tensors), 0, 0.0
        scores = model.score_facts(*model.shown[-1]).detach()
        for size, _ in shape.layout.segments:
            block = torch.arange(start, start + 4 * size).view(4, size)
            assert bool((asked[block[1]] == asked[block[2:]]).all())
            each = functional.cross_entropy(scores[block].T, torch.zeros(size).long(), reduction="none")
            total += float((each * weights[block[0]]).sum())
            start += 4 * size
        assert float(loss.sums.detach()) == pytest.approx(total, rel=1e-5)
        counts += float(loss.counts)
    assert counts == len(FACTS)


class Tails(nn.Module):
    """Scores a fact by how much it likes the tail."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(200))

    def score_facts(self, batch, real):
        return self.weight[batch.tail_entity]


def test_how_frequent_a_tail_is_can_be_learnt_only_as_a_choice():
    entities, heads = 60, torch.arange(40).int()
    few = replace(
        FACTS,
        sizes=FACTS.sizes._replace(entities=entities),
        head=heads,
        relation=torch.zeros(40).int(),
        tail_entity=torch.where(heads < 36, 50, 51).int(),
        offsets=torch.zeros(41).long(),
        qualifier_relation=torch.zeros(1).int(),
        qualifier_entity=torch.zeros(1).int(),
    )
    learnt = {}
    for loss in ("logistic", "softmax"):
        stream, model = NegativeFacts(few, 64, Corruption(4, relations=0.0, pool="answers", loss=loss)), Tails()
        optimiser = torch.optim.Adam(model.parameters(), 0.1)
        for epoch in range(200):
            shape, tensors = stream.epoch(0, epoch).items(0)
            optimiser.zero_grad()
            stream.loss_for(shape)(model, tensors).total.backward()
            optimiser.step()
        weight = model.weight.detach()
        learnt[loss] = float(weight[50] - weight[51])
    assert learnt["softmax"] > 1.5  # towards log 9, which is 2.2
    assert abs(learnt["logistic"]) < 0.5


def test_a_fact_without_a_negative_is_not_learnt_from():
    stream = NegativeFacts(FACTS, 16, Corruption(negatives=2))
    shape, (indices, weights) = stream.epoch(0, 0).items(0)
    model = Heads()
    start = 0
    changed = weights.clone()
    for size, _ in shape.layout.segments:
        changed[start + size], changed[start + 2 * size] = 0.0, 0.0  # the first fact of each segment has none
        start += 3 * size
    whole, less = (stream.loss_for(shape)(model, (indices, one)) for one in (weights, changed))
    lost = sum(float(weights[first]) for first in firsts(shape)) * 3
    assert float(whole.counts - less.counts) == lost > 0


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_the_loss_compiles_in_one_piece(loss):
    stream = NegativeFacts(FACTS, 16, Corruption(negatives=2, loss=loss))
    shape, tensors = stream.epoch(0, 0).items(0)
    model = Heads()
    model.score_facts = lambda batch, real: model.weight[batch.head] + model.weight[batch.tail_entity]  # type: ignore[method-assign]
    plain = stream.loss_for(shape)
    compiled = torch.compile(plain, fullgraph=True, backend="eager")
    assert torch.allclose(plain(model, tensors).total, compiled(model, tensors).total)
