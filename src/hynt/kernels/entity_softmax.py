"""Cross entropy over all entities: scores, losses and gradients in one visit.

`entity_loss` takes questions in chunks. The factor of each question in the total is known beforehand, so gradients are
made where the scores are and no chunk's scores outlive it. The plain twin is `plain_entity_loss`.

`whole_cross_entropy` is one operation on a GPU. Scores are s = x·Wᵀ + b; the gradient of a question's loss with respect
to its scores is p − target, up to the factor that the loss has in the step's total. So the way there can already leave
p − target where the scores were, and the way back is three matrix products that put the factor on the small side. The
compiler sees one operation each way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.kernels.device import kernels_serve

ALIGNMENT = 64
"""Rows of other lengths keep a GPU from its fast matrix products and wide loads."""

SCORES_ON_CPU, SCORES_ON_GPU = 2**20, 2**30
"""How many scores may be held at once: on a CPU what its cache holds, which takes half the time of the plain form."""

LAST = -1e4
"""The score of what must not be the answer: it ranks last, and is finite."""


class EntityQuestions(NamedTuple):
    """Questions for entities. Other true answers than the question's own take no part."""

    answer: Tensor  # (k,) int64
    weight: Tensor  # (k,) float32 what each counts for in the total
    seen: Tensor  # (entities,) bool: some observed fact names it; others rank last
    start: Tensor  # (k,) int64 where the true answers of each begin in `true`
    known: Tensor  # (k,) int64 how many there are
    true: Tensor  # (n,) int64

    def others(self) -> tuple[Tensor, Tensor]:
        """The rows and entities of all true answers but a question's own, (m,) int64 each."""
        row = torch.repeat_interleave(torch.arange(len(self.answer), device=self.answer.device), self.known)
        within = torch.arange(len(row), device=row.device) - (self.known.cumsum(0) - self.known)[row]
        entity = self.true[self.start[row] + within]
        is_other = entity != self.answer[row]
        return row[is_other], entity[is_other]


def plain_entity_loss(x: Tensor, states: Tensor, asked: EntityQuestions) -> Tensor:
    """() float32: Σ weight · cross entropy of the scores x·statesᵀ, from questions x (k, d) and states (n, d)."""
    scores = (x @ states.t()).float() + torch.where(asked.seen, 0.0, LAST)
    scores = scores.index_put(asked.others(), scores.new_tensor(LAST))
    return (functional.cross_entropy(scores, asked.answer, reduction="none") * asked.weight).sum()


class _EntityLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, x: Tensor, states: Tensor, asked: EntityQuestions, scores: int, by_kernel: bool
    ) -> Tensor:
        n, wide = len(states), len(states) + (-len(states) % ALIGNMENT if by_kernel else 0)
        table, seen = functional.pad(states, (0, 0, 0, wide - n)), functional.pad(asked.seen, (0, wide - n))
        unseen = torch.where(seen, 0.0, LAST).to(states.dtype)  # added by the product itself, which costs nothing
        total, of_x, of_states = [], [], None
        rows = max(1, scores // wide)
        for begin in range(0, len(x), rows):
            part = slice(begin, begin + rows)
            answer, weight, start, known = (one[part] for one in (asked.answer, asked.weight, asked.start, asked.known))
            mine = EntityQuestions(answer, weight, seen, start, known, asked.true)
            if by_kernel:
                found = functional.linear(x[part], table, unseen)
                loss = _by_kernel(found, mine)
            else:
                loss, found = _in_place(x[part] @ table.t(), mine)
            total.append((loss * weight).sum())
            of_x.append(found @ table)
            added = _product(found.t(), x[part])[:n]
            of_states = added if of_states is None else of_states.add_(added)
        assert of_states is not None
        context.save_for_backward(torch.cat(of_x) if len(of_x) > 1 else of_x[0], of_states.to(states.dtype))
        return torch.stack(total).sum() if len(total) > 1 else total[0]

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        of_x, of_states = context.saved_tensors
        return of_x * gradients[0].to(of_x.dtype), of_states * gradients[0].to(of_x.dtype), None, None, None


def _by_kernel(scores: Tensor, asked: EntityQuestions) -> Tensor:
    """(k,) losses from the scores (k, n), LAST already added where it must be; gradients come where the scores were."""
    from hynt.kernels.softmax_kernel import losses_then_gradients

    return losses_then_gradients(scores, asked, LAST)


def _in_place(scores: Tensor, asked: EntityQuestions) -> tuple[Tensor, Tensor]:
    """(k,) losses from the scores (k, n), and the gradients of Σ weight · loss where the scores were."""
    kind, scores = scores.dtype, scores.float()
    scores.add_(torch.where(asked.seen, 0.0, LAST)).index_put_(asked.others(), scores.new_tensor(LAST))
    answer = asked.answer.unsqueeze(1)
    right, top = scores.gather(1, answer), scores.amax(1, keepdim=True)
    mass = scores.sub_(top).exp_().sum(1, keepdim=True)
    weight = asked.weight.unsqueeze(1)
    scores.mul_(weight / mass).scatter_add_(1, answer, -weight)
    return (mass.log() + top - right).squeeze(1), scores.to(kind)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """float32 left·right: a GPU adds up products of bf16 in float32 anyway, so that nothing is rounded on the way."""
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return (left @ right).float()


def entity_loss(x: Tensor, states: Tensor, asked: EntityQuestions, scores: int | None = None) -> Tensor:
    """`plain_entity_loss`, by the kernel where it serves, with at most so many `scores` at once; None: what suits."""
    by_kernel = kernels_serve(x, x.shape[1])
    if not len(x):
        return plain_entity_loss(x, states, asked)
    scores = scores or (SCORES_ON_GPU if x.is_cuda else SCORES_ON_CPU)
    found: Tensor = _EntityLoss.apply(x, states, asked, scores, by_kernel)  # type: ignore[no-untyped-call]
    return found


LEAST_ALIGNMENT = 8
"""Rows of other lengths keep a GPU from its fast matrix products."""


def whole_cross_entropy(x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float) -> Tensor:
    """(k,) float32 from encoded questions x (k, width), W (n, width), b (n,) and answers (k,) int64.

    The products are in bf16 where autocast is on, else in the precision of x.
    """
    kind = x.device.type
    x = x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x
    loss: Tensor = _forward(x, weight, bias, answer, smoothing)[0]
    return loss


@torch.library.custom_op("hynt::whole_cross_entropy", mutates_args=())
def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(k,) losses; (k, n + filler) gradients of the scores, each for a factor of 1; (n + filler, width) W as used."""
    from hynt.kernels.softmax_kernel import smoothed_losses_then_gradients  # here: importing triton takes long

    filler = -len(bias) % LEAST_ALIGNMENT
    table = x.new_empty(len(bias) + filler, x.shape[1])
    table[: len(bias)].copy_(weight)
    table[len(bias) :].zero_()
    scores = functional.linear(x, table, functional.pad(bias.to(x.dtype), (0, filler)))
    loss = smoothed_losses_then_gradients(scores, len(bias), answer, smoothing)
    return loss, scores, table


@_forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, answer: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    wide = len(bias) + -len(bias) % LEAST_ALIGNMENT
    return x.new_empty(len(x), dtype=torch.float32), x.new_empty(len(x), wide), x.new_empty(wide, x.shape[1])


@torch.library.custom_op("hynt::whole_cross_entropy_backward", mutates_args=())
def _backward(
    outer: Tensor, x: Tensor, gradients: Tensor, table: Tensor, entities: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x (k, width) in its own precision, of W (n, width) and of b (n,), both float32."""
    factor = outer.unsqueeze(1)  # (k, 1) float32
    of_x = (gradients @ table).float() * factor
    backward = gradients.t()  # filler and all: a whole number of tiles takes faster kernels
    of_weight = _product(backward, (x * factor).to(x.dtype))[:entities]
    # All factors are alike, or 0 for filler: in units of the largest they lose nothing to a short format.
    unit = outer.abs().amax().clamp(min=1e-30)
    columns = functional.pad((factor / unit).to(x.dtype), (0, LEAST_ALIGNMENT - 1))
    return of_x.to(x.dtype), of_weight, _product(backward, columns)[:entities, 0] * unit


@_backward.register_fake
def _(outer: Tensor, x: Tensor, gradients: Tensor, table: Tensor, entities: int) -> tuple[Tensor, Tensor, Tensor]:
    of_weight = x.new_empty(entities, x.shape[1], dtype=torch.float32)
    return torch.empty_like(x), of_weight, x.new_empty(entities, dtype=torch.float32)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight = inputs[0], inputs[1]
    ctx.save_for_backward(x, output[1], output[2])
    ctx.entities = len(weight)


def _return(ctx: Any, outer: Tensor, *unused: Any) -> tuple[Any, ...]:
    x, gradients, table = ctx.saved_tensors
    return (*_backward(outer, x, gradients, table, ctx.entities), None, None)


torch.library.register_autograd("hynt::whole_cross_entropy", _return, setup_context=_remember)
