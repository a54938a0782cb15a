"""Entities and literals alike as tokens, for models that know no numbers: candidates' ids, and numbers by ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import rows_by_key
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.models.contract import (
    Candidates,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Relations,
    ScaledNumber,
    Tokens,
)

Q = TypeVar("Q", bound=EncodedQuestion)


def score_candidates(
    question: Q,
    candidates: Candidates,
    score: Callable[[Q, Tensor], Tensor],
    sizes: Sizes,
    literals: LiteralValues,
    numbers: NumberReading,
) -> Tensor:
    """What a model answers, from `score`, which takes questions and ids of tokens or relations, whichever is asked."""
    if isinstance(candidates, ScaledNumber):
        return ranked_numbers(literals, question, score, numbers)
    if isinstance(candidates, Relations):
        return score(question, torch.arange(sizes.relations, device=question.relation.device))
    return score(question, token_ids(candidates, sizes, question.relation.device))


def token_count(sizes: Sizes) -> int:
    """Rows of a table of tokens: entities, one for literals never seen in training, literals."""
    return sizes.entities + 1 + sizes.literals


Unseen: TypeAlias = Literal["own", "mean"]
"""What stands for a literal that training lacks: a row of its own, never moved by training, or the mean of literals."""


def read_tokens(ids: Tensor, table: Tensor, sizes: Sizes, unseen: Unseen) -> Tensor:
    """(…, d) rows of a table of tokens by visible ids (…)."""
    found, is_unseen = functional.embedding(ids, table), ids == sizes.mask_entity
    if unseen == "own" or not sizes.literals or (not ids.is_cuda and not is_unseen.any()):
        return found
    return torch.where(is_unseen.unsqueeze(-1), table[sizes.entities + 1 :].mean(0), found)


def token_ids(candidates: Candidates, sizes: Sizes, device: torch.device) -> Tensor:
    """(candidates,) or (rows, candidates) int64 rows of a table of tokens."""
    match candidates:
        case Entities():
            return torch.arange(sizes.entities, device=device)
        case EntityRange(start, end):
            return torch.arange(start, end, device=device)
        case EntityIds(ids):
            return ids
        case Tokens():
            ids = torch.arange(sizes.entities + sizes.literals, device=device)
            return ids + (ids >= sizes.mask_entity).long()
    raise ValueError(f"this model scores entities and literals, not {type(candidates).__name__}")


def ranked_numbers(
    literals: LiteralValues, question: Q, score: Callable[[Q, Tensor], Tensor], choice: NumberReading
) -> Tensor:
    """(rows,) float32 scaled: numbers read from scores of the literals that each row's relation has in training.

    `score` takes questions and (k,) ids of tokens. A relation without literals is offered all of them; where training
    had no number at all, the middle of the scale is all there is to say.
    """
    result = torch.full((len(question.relation),), 0.5, device=question.relation.device)
    if not len(literals.value):
        return result
    for relation, rows in rows_by_key(question.relation):
        mine = literals.relation == relation
        mine = mine | ~mine.any()
        scores = score(question.take(rows), literals.entities + 1 + literals.literal[mine]).float()
        values = literals.value[mine]
        if choice == "argmax":
            result = result.index_put((rows,), values[scores.argmax(1)])
        else:
            means = [each.softmax(1) @ values for each in torch.split(scores, 1)]  # one by one, in one shape
            result = result.index_put((rows,), torch.cat(means))
    return result


# What number each literal stands for, for models that rank literals instead of computing a number.


class LiteralValues(nn.Module):
    """The pairs of relation and literal met in training, and their scaled values. Not learned."""

    relation: Tensor  # (pairs,) int64
    literal: Tensor  # (pairs,) int64, from 0
    value: Tensor  # (pairs,) float32 scaled

    def __init__(self, entities: int, relation: Tensor, literal: Tensor, value: Tensor) -> None:
        super().__init__()
        self.entities = entities
        for name, column in (("relation", relation), ("literal", literal), ("value", value)):
            self.register_buffer(name, column)

    @classmethod
    def of(cls, train: FactTensors) -> LiteralValues:
        """From training facts whose literals have ids."""
        first = train.sizes.entities + 1
        entity = torch.cat([train.tail_entity, train.qualifier_entity[:-1]]).long()
        relation = torch.cat([train.relation, train.qualifier_relation[:-1]]).long()
        value = torch.cat([train.tail_number, train.qualifier_number[:-1]])
        chosen, literals = entity >= first, max(train.sizes.literals, 1)
        key = relation[chosen] * literals + entity[chosen] - first
        pairs, which = torch.unique(key, return_inverse=True)
        # A literal may stand for two values of one relation (written in two units): the last one met counts.
        values = torch.zeros(len(pairs), device=key.device).index_put((which,), value[chosen])
        return cls(train.sizes.entities, pairs // literals, pairs % literals, values)

    def best(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows,) the value of the literal with the highest score among those the row's `relation` (rows,) has.

        `logits` (rows, entities + literals). For a relation without literals in training, among all.
        """
        return self.value[self._scores(logits, relation).argmax(1)]

    def expected(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows,) the mean of the same literals' values, weighted by how likely the scores make them."""
        return self._scores(logits, relation).softmax(1) @ self.value

    def answer(self, logits: Tensor, relation: Tensor, choice: Literal["argmax", "softmax-mean"]) -> Tensor:
        """(rows,) one or the other."""
        if not len(self.value):
            return logits.new_zeros(len(logits))  # no number in training: on the scale of such a relation, its middle
        return self.best(logits, relation) if choice == "argmax" else self.expected(logits, relation)

    def _scores(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows, pairs) float32, −∞ for literals that the relation does not have."""
        scores = logits[:, self.entities + self.literal].float()
        allowed = relation.unsqueeze(1) == self.relation
        allowed = allowed | ~allowed.any(1, keepdim=True)
        return scores.masked_fill(~allowed, float("-inf"))


# Scores by product with a table of tokens, and numbers chosen among literals: what token models share.
#
# A token model takes each literal for an entity of its own. Its table has entities, then literals, in the order of
# `Tokens`.

ALIGNMENT = 8
"""Candidates are scored in multiples of this on a GPU: rows of odd length keep it from its fast matrix products."""

NumberReading: TypeAlias = Literal["argmax", "softmax-mean"]
"""How a number is chosen among a relation's literals: the best one's, or the mean weighted by likelihood."""


@dataclass(frozen=True, eq=False)
class TokenQuestion(EncodedQuestion):
    """A question together with the table that its answers are scored by, where that was computed for this batch."""

    table: Tensor  # (tokens or more, width): entities, literals, perhaps further rows

    def take(self, rows: Tensor) -> TokenQuestion:
        """The questions at these row numbers; the table is all of theirs."""
        return replace(self, encoded=self.encoded[rows], relation=self.relation[rows])


def token_rows(entity: Tensor, sizes: Sizes, hidden_row: int) -> Tensor:
    """Rows of a table without a gap from entity ids, among which "hidden" lies between entities and literals.

    A literal that training did not have has the id of a masked entity: it is read as masked.
    """
    hidden = sizes.mask_entity
    return torch.where(entity == hidden, hidden_row, entity - (entity > hidden).long())


def token_scores(
    encoded: Tensor, table: Tensor, candidates: Candidates, sizes: Sizes, bias: Tensor | None = None
) -> Tensor:
    """(rows, candidates) float products of encoded questions with rows of the table, plus a bias per token."""
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


def answered_by_table(
    question: EncodedQuestion,
    table: Tensor,
    candidates: Candidates,
    sizes: Sizes,
    literals: LiteralValues,
    numbers: NumberReading,
) -> Tensor:
    """Products with the rows of the table, or the number of a literal that the relation had in training."""
    if isinstance(candidates, ScaledNumber):
        scores = token_scores(question.encoded, table, Tokens(), sizes)
        return literals.answer(scores, question.relation, numbers)
    return token_scores(question.encoded, table, candidates, sizes)


def _products(encoded: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    count = len(rows)
    bias = None if bias is None else bias[:count]
    short = -count % ALIGNMENT if encoded.is_cuda else 0
    if not short:
        return functional.linear(encoded, rows, bias)
    padded = None if bias is None else functional.pad(bias, (0, short))
    return functional.linear(encoded, functional.pad(rows, (0, 0, 0, short)), padded)[:, :count]
