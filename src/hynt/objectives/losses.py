"""The joint loss of masked facts: entities and relations by label-smoothed cross entropy, numbers by squared error.

Each part is a weighted sum together with the sum of its weights: a part is the mean over its own questions, and
where several processes share a step the weights are added up across them before dividing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.masked_batch import TASKS, MaskedAnswers, MaskedBatch, Task
from hynt.batches.questions import EncodedQuestion, Entities, Reader, Relations, ScaledNumber, Tokens
from hynt.config.declarations import Count, Range, Rate

NegativeSource: TypeAlias = Literal["mix", "uniform", "log-uniform"]
"""Where sampled entities come from; "mix" is a third each of the other two and of the answers in the batch."""


class LossPart(NamedTuple):
    """One part of a loss, still undivided."""

    total: Tensor  # () float32 sum of weight × loss
    weight: Tensor  # () float32 sum of weights: how many questions there were

    def mean(self) -> Tensor:
        """() the mean loss of a question; 0 where there was none."""
        return self.total / self.weight.clamp(min=1)


class TaskRows(NamedTuple):
    """Which rows of a batch ask for what, by `Task`."""

    rows: tuple[Tensor, ...]  # (places,) int64 each
    weights: tuple[Tensor, ...]  # (places,) float32 each: 1 for a question, 0 for filler


class EntityLoss(Protocol):
    """Another way to the loss of questions for entities than scoring all of them."""

    def loss(self, model: Any, asked: EncodedQuestion, answer: Tensor, weight: Tensor, smoothing: float) -> Tensor:
        """(k,) float32 for k questions with answers (k,) int64 and weights (k,), 0 where a row is no question."""
        ...


class AffineOutput(Reader, Protocol):
    """A model whose scores of entities are x·Wᵀ + b, with x the encoded question."""

    def output_table(self) -> tuple[Tensor, Tensor]:
        """W (entities, width) and b (entities,)."""
        ...


@dataclass(frozen=True)
class LossSettings:
    """L = L_ent + λ1·L_rel + λ2·L_num, with smoothing ε in the first two (Section 4.4.4 of the paper)."""

    smoothing: Rate = 0.1
    relation_smoothing: Rate | None = None  # None: as for entities
    relation_weight: Annotated[float, Range(0)] = 1.0  # λ1
    number_weight: Annotated[float, Range(0)] = 1.0  # λ2
    softmax: Literal["auto", "full", "sampled"] = "auto"  # over entities; "auto" samples where there are very many
    negatives: Annotated[int, Range(3)] = 16384  # with how many sampled entities a question is compared, where it is
    negative_samples: Count = 4  # how many such samples a step draws, each for a part of it; sharded tables: 1
    negative_source: NegativeSource = "mix"


def masked_fact_losses(
    model: Reader,
    batch: MaskedBatch,
    answers: MaskedAnswers,
    asks: TaskRows,
    smoothing: float,
    relation_smoothing: float | None = None,
    entity_loss: EntityLoss | None = None,
) -> dict[Task, LossPart]:
    """The loss of each task that the step has places for. Each output is computed only for the rows that ask for it.

    With an `entity_loss`, questions for entities are left to it.
    """
    question = model.read(batch)
    parts: dict[Task, LossPart] = {}
    for task, rows, weights in zip(TASKS, asks.rows, asks.weights, strict=True):
        if len(rows) == 0:
            continue
        asked = question.take(rows)
        if task is Task.RELATION:
            share = smoothing if relation_smoothing is None else relation_smoothing
            loss = smoothed_cross_entropy(model.score(asked, Relations()), answers.relation[rows], share)
        elif task is Task.NUMBER and not model.sizes.literals:
            loss = (model.score(asked, ScaledNumber()).float() - answers.number[rows]).square()
        elif model.sizes.literals:
            # The id of a masked entity lies between entities and literals, but is no candidate.
            column = answers.entity[rows]
            column = column - (column > model.sizes.mask_entity).long()
            column = column.clamp(max=model.sizes.entities + model.sizes.literals - 1)
            loss = smoothed_cross_entropy(model.score(asked, Tokens()), column, smoothing)
        else:
            # A place without a question may hold a row whose answer is no entity; its weight is 0.
            entity = answers.entity[rows].clamp(max=model.sizes.entities - 1)
            if entity_loss is None:
                loss = smoothed_cross_entropy(model.score(asked, Entities()), entity, smoothing)
            else:
                loss = entity_loss.loss(model, asked, entity, weights, smoothing)
        parts[task] = LossPart((loss * weights).sum(), weights.sum())
    return parts


def joint_loss(
    parts: Mapping[Task, LossPart], settings: LossSettings, weights: Mapping[Task, Tensor] | None = None
) -> Tensor:
    """() float32. `weights` are the sums over all processes, where there are several."""
    factor = {Task.LINK: 1.0, Task.RELATION: settings.relation_weight, Task.NUMBER: settings.number_weight}
    terms = [
        factor[task] * part.total / (part.weight if weights is None else weights[task]).clamp(min=1)
        for task, part in parts.items()
    ]
    return torch.stack(terms).sum()


def smoothed_cross_entropy(logits: Tensor, answer: Tensor, smoothing: float) -> Tensor:
    """(k,) float32 from (k, candidates) logits and (k,) int64 answers.

    With target (1 − ε)·[answer] + ε/candidates this is logsumexp − (1 − ε)·logit[answer] − ε·mean(logits).
    """
    # Where nothing is merged by a compiler, PyTorch's own kernels take fewest sweeps. They refuse ε above 1, to
    # which GRAN's target (ε spread over the wrong answers alone) comes when candidates are few.
    if logits.device.type == "cpu" and smoothing <= 1:
        return functional.cross_entropy(logits.float(), answer, label_smoothing=smoothing, reduction="none")
    return merged_cross_entropy(logits, answer, smoothing)


def merged_cross_entropy(logits: Tensor, answer: Tensor, smoothing: float) -> Tensor:
    """`smoothed_cross_entropy` in a form that a compiler merges into one sweep each way."""
    result: Tensor = _SmoothedCrossEntropy.apply(logits, answer, smoothing)  # type: ignore[no-untyped-call]
    return result


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Written as one function because the logits are by far the largest tensor of a step.

    The way there reduces them in one sweep, the way back writes their gradient in one; nothing else of that size is
    kept.
    """

    @staticmethod
    def forward(context: Any, logits: Tensor, answer: Tensor, smoothing: float) -> Tensor:
        wide = logits.float()
        # Written out, without logsumexp's care for infinite rows, so that a compiler makes one sweep of it.
        top = wide.amax(1, keepdim=True)
        normaliser = (top + (wide - top).exp().sum(1, keepdim=True).log()).squeeze(1)
        picked = wide.gather(1, answer.unsqueeze(1)).squeeze(1)
        context.save_for_backward(logits, answer, normaliser)
        context.smoothing = smoothing
        return normaliser - (1 - smoothing) * picked - smoothing * wide.mean(1)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        logits, answer, normaliser = context.saved_tensors
        (outer,) = (gradient.unsqueeze(1) for gradient in gradients)
        smoothing = context.smoothing
        probability = torch.exp(logits.float() - normaliser.unsqueeze(1))
        # A comparison with every column is cheaper than a second visit: it joins the one sweep over the gradient.
        column = torch.arange(logits.shape[1], device=logits.device)
        target = torch.where(column == answer.unsqueeze(1), 1 - smoothing, 0.0) + smoothing / logits.shape[1]
        return ((probability - target) * outer).to(logits.dtype), None, None


# Binary cross entropy over all candidates against the true answers of each question ("1-N" or "KvsAll").
#
# The labels are never made: with y = (1 − ε)·[true answer] + 1/N for N candidates, the loss Σ softplus(x) − x·y needs a
# sum over all scores and the scores of the few true answers.


class TrueAnswers(NamedTuple):
    """The true answers of a batch's questions, end to end, with filler up to a fixed number."""

    row: Tensor  # (places,) int64 the question
    candidate: Tensor  # (places,) int64
    is_real: Tensor  # (places,) bool, false for filler


def true_answers(questions: Tensor, weights: Tensor, offsets: Tensor, answers: Tensor, places: int) -> TrueAnswers:
    """The answers of (rows,) questions whose weight is not 0, from lists end to end. Static shapes, no waiting."""
    first = offsets[questions]
    counts = torch.where(weights > 0, offsets[questions + 1] - first, 0)
    ends = counts.cumsum(0)
    place = torch.arange(places, device=questions.device)
    row = torch.searchsorted(ends, place, right=True).clamp(max=len(questions) - 1)
    is_real = place < ends[-1]
    slot = torch.where(is_real, first[row] + place - (ends - counts)[row], 0)
    return TrueAnswers(row, answers[slot], is_real)


def binary_loss(logits: Tensor, true: TrueAnswers, smoothing: float) -> Tensor:
    """(rows,) float32: each question's mean over its candidates, from (rows, candidates) logits.

    Smoothing ε > 0 is that of ConvE: labels (1 − ε)·y + 1/N, whose rows do not sum to one; 0 leaves y as it is.
    """
    result: Tensor = _BinaryLoss.apply(logits, true.row, true.candidate, true.is_real, smoothing)  # type: ignore[no-untyped-call]
    return result


class _BinaryLoss(torch.autograd.Function):
    """One function, because the logits are by far the largest tensor of a step: nothing else of their size is kept."""

    @staticmethod
    def forward(
        context: Any, logits: Tensor, row: Tensor, candidate: Tensor, is_real: Tensor, smoothing: float
    ) -> Tensor:
        wide, candidates = logits.float(), logits.shape[1]
        base = 1 / candidates if smoothing > 0 else 0.0
        picked = torch.where(is_real, wide[row, candidate], 0.0) * (1 - smoothing)
        total = functional.softplus(wide).sum(1) - base * wide.sum(1)
        context.save_for_backward(logits, row, candidate, is_real)
        context.smoothing, context.base = smoothing, base
        return total.index_add(0, row, -picked) / candidates

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        logits, row, candidate, is_real = context.saved_tensors
        (outer,) = (gradient / logits.shape[1] for gradient in gradients)
        gradient = (torch.sigmoid(logits.float()) - context.base) * outer.unsqueeze(1)
        picked = torch.where(is_real, outer[row], 0.0) * (context.smoothing - 1)
        gradient = gradient.index_put((row, candidate), picked, accumulate=True)
        return gradient.to(logits.dtype), None, None, None, None
