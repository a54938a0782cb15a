"""The stream of facts with negatives: every fact once an epoch beside its own negatives, and losses as counted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hynt.batches.corruption import Corruption
from hynt.batches.filling import fill
from hynt.batches.masking import hide
from hynt.models.example_facts import example_facts
from hynt.training.negatives import FactScorer, NegativeFacts, logistic_loss

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
    assert isinstance(model, FactScorer)
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
            plain, answers = hide(FACTS, rows, asked, shape.doubled())
            whole = fill(plain, answers.entity, answers.relation)
            assert torch.equal(batch.head[facts], whole.head[facts])
            assert torch.equal(batch.tail_entity[facts], whole.tail_entity[facts])
            assert torch.equal(entity[facts][asked[facts] != 1], answers.entity[facts][asked[facts] != 1])
            true_score = model.score_facts(batch, real)[facts]
            for number in range(1, negatives + 1):
                there = slice(start + number * size, start + (number + 1) * size)
                assert torch.equal(rows[there], rows[facts])
                each = logistic_loss(true_score, model.score_facts(batch, real)[there])
                total += float((each * weights[there]).sum().detach())
            start += size * (1 + negatives)
        assert float(loss.sums.detach()) == pytest.approx(total, rel=1e-5)
        assert float(loss.total.detach()) == pytest.approx(total / float(loss.counts), rel=1e-5)
        counts += float(loss.counts)
    assert sorted(met) == list(range(len(FACTS)))
    assert counts == negatives * len(FACTS)


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
    true, false = torch.tensor([0.0, 3.0]), torch.tensor([0.0, 1.0])
    expected = -(torch.sigmoid(true).log() + torch.sigmoid(-false).log()) / 2
    assert torch.allclose(logistic_loss(true, false), expected)


def test_the_loss_compiles_in_one_piece():
    stream = NegativeFacts(FACTS, 16, Corruption())
    shape, tensors = stream.epoch(0, 0).items(0)
    model = Heads()
    model.score_facts = lambda batch, real: model.weight[batch.head] + model.weight[batch.tail_entity]  # type: ignore[method-assign]
    plain = stream.loss_for(shape)
    compiled = torch.compile(plain, fullgraph=True, backend="eager")
    assert torch.allclose(plain(model, tensors).total, compiled(model, tensors).total)
