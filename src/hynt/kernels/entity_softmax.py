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

SCORES = 2**30
"""How many scores may be held at once."""

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
    def forward(context: Any, x: Tensor, states: Tensor, asked: EntityQuestions, scores: int) -> Tensor:
        from hynt.kernels.entity_softmax_kernel import losses_then_gradients

        n, wide = len(states), len(states) + -len(states) % ALIGNMENT
        table, seen = functional.pad(states, (0, 0, 0, wide - n)), functional.pad(asked.seen, (0, wide - n))
        total, of_x, of_states = [], [], None
        rows = max(1, scores // wide)
        for begin in range(0, len(x), rows):
            part = slice(begin, begin + rows)
            answer, weight, start, count = (
                one[part] for one in (asked.answer, asked.weight, asked.start, asked.known)
            )
            mine = EntityQuestions(answer, weight, seen, start, count, asked.true)
            found = x[part] @ table.t()
            total.append((losses_then_gradients(found, n, mine, LAST) * weight).sum())
            of_x.append(found @ table)
            added = _product(found.t(), x[part])[:n]
            of_states = added if of_states is None else of_states.add_(added)
        assert of_states is not None
        context.save_for_backward(torch.cat(of_x) if len(of_x) > 1 else of_x[0], of_states.to(states.dtype))
        return torch.stack(total).sum() if len(total) > 1 else total[0]

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        of_x, of_states = context.saved_tensors
        return of_x * gradients[0].to(of_x.dtype), of_states * gradients[0].to(of_x.dtype), None, None


def _product(left: Tensor, right: Tensor) -> Tensor:
    """float32 left·right: a GPU adds up products of bf16 in float32 anyway, so that nothing is rounded on the way."""
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return (left @ right).float()


def entity_loss(x: Tensor, states: Tensor, asked: EntityQuestions, scores: int = SCORES) -> Tensor:
    """`plain_entity_loss`, by the kernel where it serves, with at most so many `scores` at once."""
    if not kernels_serve(x, x.shape[1]) or not len(x):
        return plain_entity_loss(x, states, asked)
    found: Tensor = _EntityLoss.apply(x, states, asked, scores)  # type: ignore[no-untyped-call]
    return found
