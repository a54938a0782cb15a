"""Scores by product with a table of tokens, and numbers chosen among literals: what token models share.

A token model takes each literal for an entity of its own. Its table has entities, then literals, in the order of
`Tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_tensors import Sizes
from hynt.models.contract import Candidates, Entities, EntityIds, EntityRange, Question, Tokens

ALIGNMENT = 8
"""Candidates are scored in multiples of this on a GPU: rows of odd length keep it from its fast matrix products."""

NumberAnswer: TypeAlias = Literal["argmax", "softmax-mean"]
"""How a number is chosen among a relation's literals: the best one's, or the mean weighted by likelihood."""


@dataclass(frozen=True, eq=False)
class TokenQuestion(Question):
    """A question together with the table that its answers are scored by, where that was computed for this batch."""

    table: Tensor  # (tokens or more, width): entities, literals, perhaps further rows

    def take(self, rows: Tensor) -> TokenQuestion:
        """The questions at these row numbers; the table is all of theirs."""
        return replace(self, encoded=self.encoded[rows], relation=self.relation[rows])


def token_rows(entity: Tensor, sizes: Sizes, hidden_row: int) -> Tensor:
    """Rows of a table without a gap from entity ids, among which "hidden" lies between entities and literals.

    A literal that training did not have has the id of a hidden entity: it is read as hidden.
    """
    hidden = sizes.hidden_entity
    return torch.where(entity == hidden, hidden_row, entity - (entity > hidden).long())


def token_scores(
    encoded: Tensor, table: Tensor, candidates: Candidates, sizes: Sizes, bias: Tensor | None = None
) -> Tensor:
    """(rows, candidates) float products of encoded questions with rows of the table, plus a bias a token."""
    match candidates:
        case Entities():
            return _products(encoded, table[: sizes.entities], bias)
        case EntityRange(start, end):
            return _products(encoded, table[start:end], None if bias is None else bias[start:end])
        case Tokens():
            return _products(encoded, table[: sizes.entities + sizes.literals], bias)
        case EntityIds(ids):
            chosen = table[ids]
            scores = encoded @ chosen.t() if ids.dim() == 1 else (chosen * encoded.unsqueeze(1)).sum(-1)
            return scores if bias is None else scores + bias[ids]
    raise ValueError(f"a table of tokens scores entities and literals, not {type(candidates).__name__}")


def _products(encoded: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    count = len(rows)
    bias = None if bias is None else bias[:count]
    short = -count % ALIGNMENT if encoded.is_cuda else 0
    if not short:
        return functional.linear(encoded, rows, bias)
    padded = None if bias is None else functional.pad(bias, (0, short))
    return functional.linear(encoded, functional.pad(rows, (0, 0, 0, short)), padded)[:, :count]
