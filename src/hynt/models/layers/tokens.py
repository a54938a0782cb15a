"""Entities and literals alike as tokens, for models that know no numbers: candidates' ids, and numbers by ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from hynt.batches.fact_tensors import Sizes
from hynt.models.contract import Candidates, Entities, EntityIds, EntityRange, Number, Question, Relations, Tokens
from hynt.models.layers.literal_values import LiteralValues
from hynt.models.layers.token_scores import NumberAnswer

Q = TypeVar("Q", bound=Question)


def score_candidates(
    question: Q,
    candidates: Candidates,
    score: Callable[[Q, Tensor], Tensor],
    sizes: Sizes,
    literals: LiteralValues,
    numbers: NumberAnswer,
) -> Tensor:
    """What a model answers, from `score`, which takes questions and ids of tokens or relations, whichever is asked."""
    if isinstance(candidates, Number):
        return ranked_numbers(literals, question, score, numbers)
    if isinstance(candidates, Relations):
        return score(question, torch.arange(sizes.relations, device=question.relation.device))
    return score(question, token_ids(candidates, sizes, question.relation.device))


def token_count(sizes: Sizes) -> int:
    """Rows of a table of tokens: entities, one for literals never seen in training, literals."""
    return sizes.entities + 1 + sizes.literals


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
            return ids + (ids >= sizes.hidden_entity).long()
    raise ValueError(f"this model scores entities and literals, not {type(candidates).__name__}")


def groups_of(keys: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each distinct key of (rows,) and the row numbers that have it."""
    for key in torch.unique(keys).tolist():
        yield key, torch.nonzero(keys == key).squeeze(1)


def ranked_numbers(
    literals: LiteralValues, question: Q, score: Callable[[Q, Tensor], Tensor], choice: NumberAnswer
) -> Tensor:
    """(rows,) float32 scaled: numbers read from scores of the literals that each row's relation has in training.

    `score` takes questions and (k,) ids of tokens. A relation without literals is offered all of them; where training
    had no number at all, the middle of the scale is all there is to say.
    """
    result = torch.full((len(question.relation),), 0.5, device=question.relation.device)
    if not len(literals.value):
        return result
    for relation, rows in groups_of(question.relation):
        mine = literals.relation == relation
        mine = mine | ~mine.any()
        scores = score(question.take(rows), literals.entities + 1 + literals.literal[mine]).float()
        values = literals.value[mine]
        if choice == "argmax":
            result = result.index_put((rows,), values[scores.argmax(1)])
        else:
            result = result.index_put((rows,), scores.softmax(1) @ values)
    return result
