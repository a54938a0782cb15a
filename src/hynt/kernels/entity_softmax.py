"""Cross entropy over all entities, questions in chunks: scores, losses and gradients in one visit of each chunk.

The factor of each question in the total is known beforehand, so gradients are made where the scores are and no chunk's
scores outlive it. The plain twin is `plain_entity_loss`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.kernels.availability import kernels_serve

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
        total, of_x, of_states = [], [], None
        rows = max(1, scores // wide)
        for begin in range(0, len(x), rows):
            part = slice(begin, begin + rows)
            answer, weight, start, known = (one[part] for one in (asked.answer, asked.weight, asked.start, asked.known))
            mine = EntityQuestions(answer, weight, seen, start, known, asked.true)
            found = x[part] @ table.t()
            loss, found = _by_kernel(found, n, mine) if by_kernel else _in_place(found, mine)
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


def _by_kernel(scores: Tensor, columns: int, asked: EntityQuestions) -> tuple[Tensor, Tensor]:
    from hynt.kernels.entity_softmax_kernel import losses_then_gradients

    return losses_then_gradients(scores, columns, asked, LAST), scores


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
