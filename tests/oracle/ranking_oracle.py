"""The ranking protocol, slow and obvious: one question at a time, every fact looked at, every candidate compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.oracle.plain_facts import PlainFact, component, with_blank


def known_answers(
    splits: Mapping[str, Sequence[PlainFact]], fact: PlainFact, position: int
) -> dict[int | float, set[str]]:
    """Every answer that some fact of some split gives to the question, with the splits that give it."""
    question = with_blank(fact, position)
    found: dict[int | float, set[str]] = {}
    for name, facts in splits.items():
        for other in facts:
            for place in range(3 + 2 * len(other[3])):
                if with_blank(other, place) == question:
                    answer = component(other, place)
                    found.setdefault(answer + 0.0 if isinstance(answer, float) else answer, set()).add(name)
    return found


def rank(scores: Sequence[float], answer: int, known: set[int], ties: str = "realistic") -> float:
    """1 + better + ties / 2 over the candidates that are not known answers; `hynt` floors the half."""
    better = equal = 0
    for candidate, score in enumerate(scores):
        if candidate == answer or candidate in known:
            continue
        assert math.isfinite(score)
        if score > scores[answer]:
            better += 1
        elif score == scores[answer]:
            equal += 1
    return 1 + better + (equal // 2 if ties == "hynt" else equal / 2)


def metrics(ranks: Sequence[float], candidate_counts: Sequence[int]) -> dict[str, float]:
    """The numbers of one scope, from ranks and how many candidates each question had."""
    total = len(ranks)
    mean_rank = sum(ranks) / total
    expected = sum((count + 1) / 2 for count in candidate_counts) / total
    return {
        "mrr": sum(1 / one for one in ranks) / total,
        "hits@1": sum(one <= 1 for one in ranks) / total,
        "hits@3": sum(one <= 3 for one in ranks) / total,
        "hits@10": sum(one <= 10 for one in ranks) / total,
        "mean_rank": mean_rank,
        "amri": 1 - (mean_rank - 1) / (expected - 1),
        "count": total,
    }
