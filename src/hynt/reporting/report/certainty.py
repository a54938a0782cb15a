"""How sure a run is of its first answers on a held-out split, whether it is right to be, and the surest and least sure
of them in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.asking.predictor import Predictor
from hynt.calibration.calibration import RANKED
from hynt.calibration.held_out import MOST_QUESTIONS, answerable
from hynt.calibration.temperature import expected_calibration_error, first_answers
from hynt.evaluation.questions import KIND_OF_TASK, TaskName
from hynt.graph.components import FIRST_QUALIFIER, HEAD, RELATION, TAIL, Components, components
from hynt.graph.fact import Fact
from hynt.graph.known_answers import AnswerLists
from hynt.graph.question_keys import question_keys
from hynt.graph.sentences import Sentences
from hynt.runs.scoring import ReadTile, read_tiles

BINS = 10
SHOWN = 10
A_RELATION = 2
"""How many answers of one relation and position are shown at most: ten times the same kind of answer say little."""

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FirstOnes:
    """The first answers to `n` held-out questions of one task, other known answers left out."""

    task: TaskName
    questions: Components  # (n,)
    first: Ids  # (n,) the entity or relation answered
    before: Floats  # (n,) its probability without calibration
    after: Floats  # (n,) its probability with calibration
    correct: NDArray[np.bool_]  # (n,)
    total: int  # questions of the split; more than `n` where some were left out

    def to_mapping(self, temperature: float | None) -> dict[str, Any]:
        """The reliability of the probabilities, bin by bin."""
        return {
            "questions": len(self.first),
            "of": self.total,
            "temperature": temperature,
            "calibration_error_before": expected_calibration_error(self.before, self.correct),
            "calibration_error_after": expected_calibration_error(self.after, self.correct),
            "bins_before": reliability(self.before, self.correct),
            "bins_after": reliability(self.after, self.correct),
        }


def reliability(confidence: Floats, correct: NDArray[np.bool_]) -> list[dict[str, float | int]]:
    """Of each tenth of the probabilities that has answers: how many, how sure they are, and how often right."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    return [
        {
            "low": index / BINS,
            "high": (index + 1) / BINS,
            "count": int((place == index).sum()),
            "confidence": float(confidence[place == index].mean()),
            "accuracy": float(correct[place == index].mean()),
        }
        for index in np.unique(place).tolist()
    ]


def first_ones(predictor: Predictor, split: str) -> list[FirstOnes]:
    """The first answers of links and relations, as far as the model answers them."""
    found = (_of_task(predictor, split, task) for task in RANKED)
    return [one for one in found if one is not None]


def _of_task(predictor: Predictor, split: str, task: TaskName) -> FirstOnes | None:
    loaded, table = predictor.loaded, predictor.graph.split(split)
    is_number = predictor.graph.vocabulary.relation_is_number
    parts = components(table, is_number)
    chosen = answerable(loaded.model, parts, task)
    if not len(chosen):
        return None
    few = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_QUESTIONS)).astype(np.int64)]
    taken = parts.take(few)
    answer = (taken.entity if task == "link" else taken.relation).astype(np.int64)
    known = predictor.known.of_kind(KIND_OF_TASK[task]).lookup(question_keys(table, is_number)[few])
    sharpness = predictor.calibration.sharpness(task)
    first = np.zeros(len(few), dtype=np.int64)
    before, after = np.zeros(len(few)), np.zeros(len(few))

    def work(tile: ReadTile) -> None:
        scores = (tile.entities() if task == "link" else tile.relations()).clone()
        own = torch.from_numpy(answer[tile.which]).to(scores.device)
        for row, others in enumerate(_others(known, tile.which)):
            kept = scores[row, own[row]].clone()
            scores[row, torch.from_numpy(others).to(scores.device)] = -torch.inf
            scores[row, own[row]] = kept
        first[tile.which] = scores.argmax(1).cpu().numpy()
        before[tile.which] = first_answers(scores, own, 1.0).confidence
        after[tile.which] = first_answers(scores, own, sharpness).confidence

    read_tiles(loaded, table, taken.row, taken.position, predictor.device, work)
    return FirstOnes(task, taken, first, before, after, first == answer, len(chosen))


def _others(known: AnswerLists, which: Ids) -> Iterator[Ids]:
    """The known answers of each of these questions."""
    for question in which.tolist():
        yield known.answers[known.offsets[question] : known.offsets[question + 1]].astype(np.int64)


def surest_and_least(predictor: Predictor, split: str, found: FirstOnes) -> dict[str, Any]:
    """The ten first answers with the highest probability, and the ten with the lowest, in words."""
    order = np.lexsort((np.arange(len(found.after)), -found.after))
    return {
        "task": found.task,
        "questions": len(found.first),
        "of": found.total,
        "a_relation": A_RELATION,
        "most": _told(predictor, split, found, order),
        "least": _told(predictor, split, found, order[::-1]),
    }


def _told(predictor: Predictor, split: str, found: FirstOnes, order: Ids) -> list[dict[str, Any]]:
    graph, parts = predictor.graph, found.questions
    labels = graph.entity_labels if found.task == "link" else graph.relation_labels
    table, words = graph.split(split), Sentences(graph)
    seen_facts: set[int] = set()
    seen_places: Counter[tuple[int, int]] = Counter()
    told: list[dict[str, Any]] = []
    for index in order.tolist():
        row, position = int(parts.row[index]), int(parts.position[index])
        place = (int(parts.relation[index]), min(position, FIRST_QUALIFIER + position % 2))
        if row in seen_facts or seen_places[place] >= A_RELATION:
            continue
        seen_facts.add(row)
        seen_places[place] += 1
        (fact,) = table.take(np.array([row], dtype=np.int64)).facts(graph.vocabulary)
        truth = parts.entity[index] if found.task == "link" else parts.relation[index]
        told.append(
            {
                "question": question_text(words, fact, position),
                "answer": labels[int(found.first[index])],
                "truth": labels[int(truth)],
                "correct": bool(found.correct[index]),
                "probability": float(found.after[index]),
            }
        )
        if len(told) == SHOWN:
            break
    return told


def question_text(words: Sentences, fact: Fact, position: int) -> str:
    """A fact on one line with ? for one of its components."""
    parts = [words.entity(fact.head), words.relation(fact.relation), words.value(fact.tail)]
    if position in (HEAD, RELATION, TAIL):
        parts[position] = "?"
    pairs = []
    for number, (relation, value) in enumerate(fact.qualifiers):
        pair = [words.relation(relation), words.value(value)]
        if position >= FIRST_QUALIFIER and (position - FIRST_QUALIFIER) // 2 == number:
            pair[(position - FIRST_QUALIFIER) % 2] = "?"
        pairs.append(" ".join(pair))
    line = " · ".join(parts)
    return f"{line} ({'; '.join(pairs)})" if pairs else line
