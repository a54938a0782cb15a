"""Held-out questions whose answer changes with their qualifiers: the paper's table, found by asking all of them.

Every held-out fact with qualifiers whose tail is an entity asks for its head and for its tail, once with all its
qualifiers and once without any. First answers are raw: nothing known is left out.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hynt.asking.candidates import CandidateMasks
from hynt.asking.columns import AskedFacts
from hynt.asking.predictor import Predictor
from hynt.graph.fact_table import HEAD, TAIL, FactTable, concatenate
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Floats, Ids

AT_ONCE = 8192
HELD_OUT = ("valid", "test")


@dataclass(frozen=True, eq=False)
class Asked:
    """`n` questions with what was answered."""

    table: FactTable  # (facts,) of the held-out splits
    split: list[str]  # (facts,)
    row: Ids  # (n,) the fact
    position: Ids  # (n,) HEAD or TAIL
    truth: Ids  # (n,) the right entity
    answer: Ids  # (n, 2) the first answers with all qualifiers, and without
    probability: Floats  # (n, 2) of these
    asked_all: bool  # whether time was enough for all questions

    def counts(self) -> dict[str, int | bool]:
        """How often the first answer is right, with and without qualifiers."""
        right = self.answer == self.truth[:, None]
        return {
            "questions": len(self.row),
            "right_with_qualifiers": int(right[:, 0].sum()),
            "right_without": int(right[:, 1].sum()),
            "gained": int((right[:, 0] & ~right[:, 1]).sum()),
            "lost": int((right[:, 1] & ~right[:, 0]).sum()),
            "changed": int((self.answer[:, 0] != self.answer[:, 1]).sum()),
            "asked_all": self.asked_all,
        }


def ask_all(predictor: Predictor, until: float) -> Asked:
    """Asks every question, piece by piece, as long as the clock (`time.monotonic`) allows."""
    graph = predictor.graph
    tables = {name: graph.splits[name] for name in HELD_OUT if name in graph.splits}
    table = concatenate(list(tables.values()))
    split = [name for name, one in tables.items() for _ in range(len(one))]
    of_entities = ~graph.vocabulary.relation_is_number[table.relation]
    rows = np.flatnonzero((table.qualifier_counts() > 0) & of_entities).astype(np.int64)
    row = np.concatenate([rows, rows])
    position = np.repeat(np.array([HEAD, TAIL], dtype=np.int64), len(rows))
    order = np.random.default_rng(0).permutation(len(row))  # what is left out for want of time is left out evenly
    row, position = row[order], position[order]
    truth = np.where(position == HEAD, table.head[row], table.tail_entity[row]).astype(np.int64)
    answer, probability, done = np.zeros((len(row), 2), dtype=np.int64), np.zeros((len(row), 2)), 0
    for first in range(0, len(row), AT_ONCE):
        if time.monotonic() > until:
            break
        here = slice(first, min(first + AT_ONCE, len(row)))
        asked = table.take(row[here])
        for column, facts in enumerate((asked, asked.with_qualifiers(np.zeros(asked.qualifier_total, dtype=np.bool_)))):
            answer[here, column], probability[here, column] = _first(predictor, facts, position[here])
        done = here.stop
    return Asked(
        table, split, row[:done], position[:done], truth[:done], answer[:done], probability[:done], done == len(row)
    )


def _first(predictor: Predictor, table: FactTable, position: Ids) -> tuple[Ids, Floats]:
    """(n,) the first answers, and their probabilities."""
    asked = AskedFacts.of_triplets(table, position, predictor.graph.vocabulary.relation_is_number)
    found = predictor.question_batch(asked).ranked(CandidateMasks.all_of(len(table)), 1)
    return found.candidate, found.probability


def pairs(asked: Asked, most: int) -> list[tuple[int, int]]:
    """Couples of questions that differ in their qualifiers alone, with different right answers, both answered rightly.

    One couple for each relation and place, the one that gained most by its qualifiers; surest first.
    """
    right = asked.answer == asked.truth[:, None]
    groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number in np.flatnonzero(right[:, 0]).tolist():
        row, position = int(asked.row[number]), int(asked.position[number])
        shown = int(asked.table.tail_entity[row] if position == HEAD else asked.table.head[row])
        groups[position, int(asked.table.relation[row]), shown].append(number)
    best: dict[tuple[int, int], tuple[tuple[int, float], tuple[int, int]]] = {}
    for (position, relation, _), numbers in groups.items():
        for couple in _couples(asked, numbers):
            gained = sum(not right[number, 1] for number in couple)
            worth = (gained, float(min(asked.probability[number, 0] for number in couple)))
            if (position, relation) not in best or worth > best[position, relation][0]:
                best[position, relation] = (worth, couple)
    return [couple for _, couple in sorted(best.values(), key=lambda one: one[0], reverse=True)[:most]]


def _couples(asked: Asked, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The surest question for each right answer, and the surest two of these."""
    surest: dict[int, int] = {}
    for number in sorted(numbers, key=lambda one: asked.probability[one, 0]):
        surest[int(asked.truth[number])] = number
    if len(surest) > 1:
        second, first = sorted(surest.values(), key=lambda one: asked.probability[one, 0])[-2:]
        yield first, second


def gains(asked: Asked, most: int) -> list[int]:
    """Questions that are answered rightly only with their qualifiers; surest first, at most two per relation."""
    right = asked.answer == asked.truth[:, None]
    found = np.flatnonzero(right[:, 0] & ~right[:, 1])
    order = found[np.argsort(-asked.probability[found, 0], kind="stable")]
    chosen: list[int] = []
    seen: defaultdict[int, int] = defaultdict(int)
    for number in order.tolist():
        relation = int(asked.table.relation[asked.row[number]])
        if seen[relation] < 2:
            seen[relation] += 1
            chosen.append(number)
    return chosen[:most]


def told(predictor: Predictor, asked: Asked, number: int) -> dict[str, Any]:
    """One question as a row of the table."""
    graph = predictor.graph
    row, position = int(asked.row[number]), int(asked.position[number])
    fact = next(asked.table.take(np.array([row], dtype=np.int64)).facts(graph.vocabulary))
    words = Sentences(graph)
    head = "?" if position == HEAD else words.entity(fact.head)
    tail = "?" if position == TAIL else words.value(fact.tail)
    qualifiers = [f"{words.relation(one.relation)} {words.value(one.value)}" for one in fact.qualifiers]
    first, without = (graph.entity_labels[int(one)] for one in asked.answer[number])
    return {
        "question": f"{head} · {words.relation(fact.relation)} · {tail}",
        "qualifiers": qualifiers,
        "prediction": first,
        "probability": float(asked.probability[number, 0]),
        "prediction_without_qualifiers": without,
        "probability_without": float(asked.probability[number, 1]),
        "right": graph.entity_labels[int(asked.truth[number])],
        "split": asked.split[row],
        "ids": {
            "head": fact.head,
            "relation": fact.relation,
            "position": "head" if position == HEAD else "tail",
            "tail": fact.tail if isinstance(fact.tail, str) else fact.tail.value,
            "qualifiers": [
                [one.relation, one.value if isinstance(one.value, str) else one.value.value] for one in fact.qualifiers
            ],
        },
    }
