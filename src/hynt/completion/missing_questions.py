"""The questions that missing facts raise: many relations together, so that scoring goes in full tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.asked_facts import AskedFacts
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import answerable, off_scale
from hynt.completion.missing_peers import Lacking, Peers
from hynt.completion.missing_usual import usual_qualifiers
from hynt.graph.components import ENTITY_KIND, NUMBER_KIND, TAIL
from hynt.graph.fact_table import FactTable

AT_ONCE = 16_384
"""Questions that are scored together."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MissingBatch:
    """Some questions for tails, and what peers say of them."""

    asked: AskedFacts  # (n,)
    share: NDArray[np.float64]  # (n,) of peers that have the relation
    peers: Ids  # (n,) how many there are

    def __len__(self) -> int:
        return len(self.share)


class MissingQuestions:
    """For each relation and each entity that lacks it."""

    def __init__(self, predictor: Predictor, peers: Peers, share: float, relations: Ids) -> None:
        self._predictor, self._peers, self._share, self._relations = predictor, peers, share, relations
        self._looked = 0
        self.lacked = 0  # relations that someone lacks
        self.unasked = 0  # questions that the model cannot answer

    def done(self) -> float:
        """The share of the relations that was looked at, from 0 to 1."""
        return self._looked / max(1, len(self._relations))

    def batches(self) -> Iterator[MissingBatch]:
        """All questions, relation by relation, at most `AT_ONCE` together."""
        waiting: list[MissingBatch] = []
        for relation in self._relations.tolist():
            lacking = self._peers.lacking(relation, self._share)
            usual = self._usual(relation) if len(lacking.entity) else None
            self._looked += 1
            self.lacked += bool(len(lacking.entity))
            self.unasked += len(lacking.entity) if usual is None else 0
            if usual is None:
                continue
            for few in _pieces(lacking):
                if waiting and sum(len(one) for one in waiting) + len(few.entity) > AT_ONCE:
                    yield _joined(waiting)
                    waiting = []
                waiting.append(self._asked(usual, few))
        if waiting:
            yield _joined(waiting)

    def _usual(self, relation: int) -> FactTable | None:
        """A fact of the relation as it is usually written, for its tail to be asked; None where the model cannot."""
        graph, loaded = self._predictor.graph, self._predictor.loaded
        usual = usual_qualifiers(self._peers.facts, relation, graph)
        kind = ENTITY_KIND
        if graph.vocabulary.relation_is_number[relation]:  # the tail is a filler that nobody reads
            kind = NUMBER_KIND
            usual = replace(usual, tail_number=np.ones(1), tail_literal=pa.array(["1.0"], type=pa.string()))
        can = answerable(loaded, np.array([TAIL]), np.array([kind]))[0]
        return usual if can and not off_scale(loaded, usual) else None

    def _asked(self, usual: FactTable, lacking: Lacking) -> MissingBatch:
        """What is the tail of the usual fact, for each of these heads?"""
        count = len(lacking.entity)
        is_number = self._predictor.graph.vocabulary.relation_is_number[usual.relation[0]]
        table = usual.take(np.zeros(count, dtype=np.int64))
        asked = AskedFacts(
            replace(table, head=lacking.entity.astype(np.int32)),
            np.arange(count + 1, dtype=np.int64),
            np.full(count, TAIL, dtype=np.int64),
            np.full(count, NUMBER_KIND if is_number else ENTITY_KIND, dtype=np.int64),
            table.relation.astype(np.int64),
            np.zeros(count, dtype=np.bool_),
        )
        return MissingBatch(asked, lacking.share, lacking.peers)


def _pieces(lacking: Lacking) -> Iterator[Lacking]:
    for first in range(0, len(lacking.entity), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        yield Lacking(lacking.entity[part], lacking.share[part], lacking.peers[part])


def _joined(parts: list[MissingBatch]) -> MissingBatch:
    return MissingBatch(
        AskedFacts.concatenated([part.asked for part in parts]),
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.peers for part in parts]),
    )
