"""Cross entropy over entities without scoring all of them: log Z is estimated from a sample, everything else is exact.

With target (1 − ε)·[answer] + ε/N the loss of a question is log Z − (1 − ε)·s[answer] − ε·mean(s). Scores are
s = x·Wᵀ + b, so mean(s) = x·mean(W) + mean(b): exact, at the price of one sweep over W. Only Z = Σ exp(s) asks for all
entities. It is s[answer]'s own term plus an estimate of the rest,

    Ẑ = exp(s[answer]) + Σ over drawn j ≠ answer of exp(s_j) / C(j),    C(j) = how often j is drawn on average,

whose expectation is Z. Draws come from several sources at once; C adds up over them, so an entity that any source
likes weighs little (the balance heuristic of multiple importance sampling). Shapes are static, everything is drawn on
the device, and nothing makes the host wait: a step can be captured.

With smoothing most scores end up near their mean μ, and there exp(s) is near its tangent exp(μ)·(1 + s − μ), whose sum
over all entities is known: N·exp(μ). So only what exp(s) has above its tangent is estimated from the sample. Ẑ keeps
its expectation and loses most of its noise, and so does its gradient: an entity of average score is pushed down by the
exact sum in every step, as the smoothing pushes it up, and not by twenty times as much in every twentieth.

Questions that share a sample share its luck, so their gradients' noise adds up. A step therefore draws several samples,
each for a part of its questions: every question is compared with as few entities as before, and the noise of the
table's gradient falls as the number of samples grows.

Of fewer entities, a GPU takes all in one operation instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Task
from hynt.batches.questions import EncodedQuestion
from hynt.graph.fact_table import HEAD, TAIL
from hynt.kernels.entity_softmax import whole_cross_entropy
from hynt.objectives.losses import AffineOutput, EntityLoss, LossSettings, NegativeSource

FULL_UP_TO = 200_000
"""Entities up to which "auto" scores all of them."""


class Drawn(NamedTuple):
    """Samples of entities: the questions of a step are cut into as many parts, and each has a sample to itself."""

    ids: Tensor  # (samples, s) int64
    log_count: Tensor  # (samples, s) float32 log C: how often each is drawn on average, by all sources together
    is_real: Tensor  # (samples, s) bool false for draws that hit a row of weight 0


@dataclass(frozen=True, eq=False)
class NegativeSampler:
    """Draws entities: some uniformly, some by a log-uniform law over their ranks by frequency, some from the answers of
    the step's other questions.
    """

    by_frequency: Tensor  # (entities,) int32 ids, most often asked for first
    base_count: Tensor  # (entities,) float32 how often each is drawn on average by the first two sources
    answer_share: Tensor  # (entities,) float32 how likely the answer of a random question is this entity
    uniform: int
    log_uniform: int
    in_batch: int
    samples: int = 1

    @classmethod
    def of(
        cls, answer_share: Tensor, negatives: int, source: NegativeSource = "mix", samples: int = 1
    ) -> NegativeSampler:
        """From (entities,) float64 shares; `negatives` draws a sample, a multiple of 8 where products like it."""
        entities, third = len(answer_share), negatives // 3
        uniform, log_uniform, in_batch = {
            "uniform": (negatives, 0, 0),
            "log-uniform": (0, negatives, 0),
            "mix": (negatives - 2 * third, third, third),
        }[source]
        order = torch.argsort(answer_share, descending=True, stable=True)
        place = torch.arange(1, entities + 1, dtype=torch.float64, device=order.device)
        chance = torch.log1p(1 / place) / math.log1p(entities)
        base = torch.full_like(answer_share, uniform / entities).index_add(0, order, log_uniform * chance)
        return cls(order.int(), base.float(), answer_share.float(), uniform, log_uniform, in_batch, samples)

    def draw(self, answer: Tensor, weight: Tensor) -> Drawn:
        """For questions with answers (k,) int64 and weights (k,), 0 where there is none."""
        device, entities, samples = answer.device, len(self.by_frequency), self.samples
        ids = []
        if self.uniform:
            ids.append(torch.randint(entities, (samples, self.uniform), device=device))
        if self.log_uniform:
            # In double precision: single has too few digits to reach every rank of a million.
            share = torch.rand(samples, self.log_uniform, dtype=torch.float64, device=device)
            rank = torch.exp(share * math.log1p(entities)).long() - 1
            ids.append(self.by_frequency[rank.clamp(0, entities - 1)].long())
        count = self.base_count
        is_real = torch.ones(samples, self.uniform + self.log_uniform, dtype=torch.bool, device=device)
        if not self.in_batch:
            chosen = torch.cat(ids, 1)
            return Drawn(chosen, count[chosen].log(), is_real)
        row = torch.randint(len(answer), (samples, self.in_batch), device=device)
        of_batch = weight[row] > 0
        chosen = torch.cat([*ids, answer[row]], 1)
        # A question's own answer is no negative of it. So of the draws it counts those that hit other questions.
        others = of_batch.sum(1, keepdim=True) * (1 - 1 / (weight > 0).sum().clamp(min=1))
        log_count = (count[chosen] + others * self.answer_share[chosen]).clamp(min=1e-30).log()
        return Drawn(chosen, log_count, torch.cat([is_real, of_batch], 1))

    def loss(
        self, model: AffineOutput, asked: EncodedQuestion, answer: Tensor, weight: Tensor, smoothing: float
    ) -> Tensor:
        """(k,) float32 cross entropy of questions with fresh samples."""
        table = model.output_table()
        return sampled_cross_entropy(asked.encoded, table, answer, self.draw(answer, weight), smoothing)


def sampler_for(facts: FactTensors, components: AskableComponents, losses: LossSettings) -> NegativeSampler | None:
    """What the settings ask for; None: all entities are scored."""
    if not samples(losses, facts.sizes.entities) or facts.sizes.literals:
        return None
    shares = answer_shares(facts, components)
    return NegativeSampler.of(shares, losses.negatives, losses.negative_source, losses.negative_samples)


def samples(losses: LossSettings, entities: int) -> bool:
    """Whether a step scores only some entities."""
    return losses.softmax == "sampled" or (losses.softmax == "auto" and entities > FULL_UP_TO)


def answer_shares(facts: FactTensors, components: AskableComponents) -> Tensor:
    """(entities,) float64: how likely each entity is the answer of a question that asks for one, over an epoch."""
    linked = components.task == Task.LINK
    owner, position = components.owner()[linked], components.position[linked]
    slot = facts.qualifier_at(owner, position)
    of_triplet = torch.where(position == HEAD, facts.head[owner], facts.tail_entity[owner])
    entity = torch.where(position > TAIL, facts.qualifier_entity[slot], of_triplet)
    chance = 1 / components.counts()[owner].double()
    shares = torch.zeros(facts.sizes.entities, dtype=torch.float64, device=facts.device)
    shares.index_add_(0, entity.long(), chance)
    return shares / shares.sum().clamp(min=1e-300)


def sampled_cross_entropy(
    x: Tensor, table: tuple[Tensor, Tensor], answer: Tensor, drawn: Drawn, smoothing: float
) -> Tensor:
    """(k,) float32 from encoded questions x (k, width), the output table, answers (k,) int64 and samples."""
    weight, bias = table
    ids = torch.cat([drawn.ids.flatten(), answer])
    rows, mean_row = _rows_and_mean(weight, ids, smoothing > 0)
    biases, mean_bias = _rows_and_mean(bias.unsqueeze(1), ids, smoothing > 0)
    means = (mean_row, mean_bias[0], len(weight))
    return cross_entropy_of_rows(x, rows, biases.squeeze(1), means, answer, drawn, smoothing)


def cross_entropy_of_rows(
    x: Tensor,
    rows: Tensor,
    biases: Tensor,
    means: tuple[Tensor, Tensor, int],
    answer: Tensor,
    drawn: Drawn,
    smoothing: float,
) -> Tensor:
    """(k,) from the table's rows (n, width) and biases (n,) of all draws and then of the answers; `means` are the mean
    of all rows (width,) and of all biases (), and how many of them there are.
    """
    samples, size = drawn.ids.shape
    right, right_bias = rows[samples * size :], biases[samples * size :]
    part = -(-len(x) // samples)
    found = []
    for number, first in enumerate(range(0, len(x), part)):
        own, of_draws = slice(first, first + part), slice(number * size, (number + 1) * size)
        scores = functional.linear(x[own], rows[of_draws], biases[of_draws]).float()
        is_out = (drawn.ids[number] == answer[own].unsqueeze(1)) | ~drawn.is_real[number]
        asked = x[own].float()
        true = (asked * right[own]).sum(1) + right_bias[own]
        if smoothing == 0:
            estimated = (scores - drawn.log_count[number]).masked_fill(is_out, -torch.inf)
            found.append(torch.cat([true.unsqueeze(1), estimated], 1).logsumexp(1) - true)
            continue
        mean = (asked * means[0]).sum(1) + means[1]
        normaliser = _log_normaliser(scores, is_out, drawn.log_count[number], true, mean, means[2])
        found.append(normaliser - (1 - smoothing) * true - smoothing * mean)
    return torch.cat(found)


def _log_normaliser(
    scores: Tensor, is_out: Tensor, log_count: Tensor, true: Tensor, mean: Tensor, entities: int
) -> Tensor:
    """(k,) log Ẑ from scores (k, s) of a sample, which of it is left out (k, s), log C (s,), the answers' scores (k,)
    and the mean of all scores (k,): the tangent's sum over all but the answer, plus what is estimated above it.
    """
    # All in units of exp(top), so that nothing overflows.
    top = torch.maximum(scores.detach().amax(1), torch.maximum(true, mean).detach())
    above = scores - mean.unsqueeze(1)  # s − μ
    level = (mean - top).exp()
    excess = (scores - top.unsqueeze(1)).exp() - level.unsqueeze(1) * (1 + above)  # ≥ 0: exp is convex
    estimated = (excess * (-log_count).exp()).masked_fill(is_out, 0.0).sum(1)
    exact = level * (entities - 1 - (true - mean))
    return top + ((true - top).exp() + exact + estimated).log()


def _rows_and_mean(table: Tensor, ids: Tensor, with_mean: bool) -> tuple[Tensor, Tensor]:
    """(n, width) rows of a table, and (width,) the mean of all rows; zeros where it is not wanted."""
    found: tuple[Tensor, Tensor] = _RowsAndMean.apply(table, ids, with_mean)  # type: ignore[no-untyped-call]
    return found


class _RowsAndMean(torch.autograd.Function):
    """One function, so that the way back makes one gradient of the table's size and not one for each use."""

    @staticmethod
    def forward(context: Any, table: Tensor, ids: Tensor, with_mean: bool) -> tuple[Tensor, Tensor]:
        context.save_for_backward(ids)
        context.size, context.with_mean = len(table), with_mean
        mean = table.mean(0) if with_mean else table.new_zeros(table.shape[1])
        return table[ids], mean

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (ids,) = context.saved_tensors
        of_rows, of_mean = gradients
        width = of_rows.shape[1]
        if context.with_mean:
            whole = (of_mean / context.size).expand(context.size, width).contiguous()
        else:
            whole = of_rows.new_zeros(context.size, width)
        return whole.index_add_(0, ids, of_rows), None, None


class WholeSoftmax:
    """Scores, loss and gradients of all entities as one operation."""

    def loss(
        self,
        model: AffineOutput,
        asked: EncodedQuestion,
        answer: Tensor,
        weight: Tensor,  # noqa: ARG002 - a row that is no question is weighed by who asks
        smoothing: float,
    ) -> Tensor:
        """(k,) float32 for k questions."""
        table, bias = model.output_table()
        return whole_cross_entropy(asked.encoded, table, bias, answer, smoothing)


def affine_loss(facts: FactTensors, components: AskableComponents, losses: LossSettings) -> EntityLoss | None:
    """What serves best with these facts and settings; None: plain scores and their cross entropy do, as on a CPU."""
    sampler = sampler_for(facts, components, losses)
    if sampler is not None:
        return sampler
    able = facts.device.type == "cuda" and find_spec("triton") is not None and not facts.sizes.literals
    return WholeSoftmax() if able else None
