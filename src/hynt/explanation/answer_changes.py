"""What an answer becomes when its question is changed: another first answer, another probability, another number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hynt.asking.answering import task_of
from hynt.asking.answers import Answers, NumberAnswer
from hynt.asking.candidate_rules import Candidates
from hynt.asking.predictor import Predictor
from hynt.asking.question import AskedFact
from hynt.errors import UsageError
from hynt.explanation.explanations import Explained
from hynt.graph.components import RELATION_KIND, component_starts

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Outcome(NamedTuple):
    """The fields of an `Influence` that say what a changed question is answered with."""

    answer_id: str | None = None
    answer: str | None = None
    probability: float | None = None
    probability_change: float | None = None
    rank: int | None = None
    value: float | None = None
    value_change: float | None = None
    change_in_widths: float | None = None


def number_changes(predictor: Predictor, asked: AskedFact, answers: Answers, scores: list[Floats]) -> list[Outcome]:
    """What each changed question is answered with, from the scores of the whole one and then of all changed ones."""
    assert asked.relation is not None
    relation = np.full(len(scores), asked.relation, dtype=np.int64)
    with np.errstate(over="ignore"):
        values = predictor.loaded.scaling.unscale(relation, np.concatenate(scores)).tolist()
    answer = answers[0]
    assert isinstance(answer, NumberAnswer)
    width = None if answer.interval is None else answer.interval[1] - answer.interval[0]
    return [
        Outcome(
            value=value, value_change=value - values[0], change_in_widths=(value - values[0]) / width if width else None
        )
        for value in values[1:]
    ]


def rank_changes(
    predictor: Predictor, asked: AskedFact, candidates: Candidates, about: int | None, scores: list[Floats]
) -> tuple[Explained, list[Outcome]]:
    """The explained answer, and the same for entities and relations."""
    place = _allowed(predictor, asked, candidates, scores[0].shape[1])
    if about is not None and about not in place:
        raise UsageError("the answer is not among the candidates.", where="answer", advice="Allow it, or name another.")
    sharpness = predictor.calibration.sharpness(task_of(asked.kind))
    found = [_likelihoods(asked, one * sharpness, place) for one in scores]
    chosen = int(found[0].argmax()) if about is None else int(np.searchsorted(place, about))
    graph = predictor.graph
    if asked.kind == RELATION_KIND:
        ids, labels = [relation.name for relation in graph.relations], graph.relation_labels
    else:
        ids, labels = list(graph.vocabulary.entities), graph.entity_labels
    whole = float(found[0][chosen])
    outcomes = []
    for one in found[1:]:
        first, mine = int(place[one.argmax()]), float(one[chosen])
        outcomes.append(Outcome(ids[first], labels[first], mine, mine - whole, _rank(one, chosen)))
    explained = int(place[chosen])
    return Explained(ids[explained], labels[explained], whole, _rank(found[0], chosen)), outcomes


def _likelihoods(asked: AskedFact, sharp: Floats, place: Ids) -> Floats:
    """(allowed,) probabilities of the candidates at `place`, from (rows, candidates) scores that are sharpened."""
    if asked.tried is None:
        logits = sharp[0, place]
    else:
        # As the predictor has it: each relation is judged by the row that has the number on its own scale.
        row = np.searchsorted(asked.tried, place)
        logits = sharp[row, place] - np.logaddexp.reduce(sharp, axis=1)[row]
    return np.asarray(np.exp(logits - np.logaddexp.reduce(logits)), dtype=np.float64)


def _rank(likelihoods: Floats, chosen: int) -> int:
    """Of a candidate; of equal ones the one with the smaller id comes first."""
    better = likelihoods > likelihoods[chosen]
    return 1 + int(better.sum()) + int((likelihoods[:chosen] == likelihoods[chosen]).sum())


def _allowed(predictor: Predictor, asked: AskedFact, candidates: Candidates, count: int) -> Ids:
    """(allowed,) ids of what may be answered, ascending; the same for the whole question and all changed ones."""
    allowed = np.ones(count, dtype=np.bool_) if candidates.allowed is None else candidates.allowed.copy()
    if candidates.only_unknown:
        lists = predictor.known.lookup(asked.table, component_starts(asked.table)[:-1] + asked.position, asked.kind)
        known = lists.answers if asked.tried is None else lists.answers[lists.answers == asked.tried[lists.question()]]
        allowed[known] = False
    if asked.tried is not None:
        tried = np.zeros(count, dtype=np.bool_)
        tried[asked.tried] = True
        allowed &= tried
    return np.flatnonzero(allowed).astype(np.int64)
