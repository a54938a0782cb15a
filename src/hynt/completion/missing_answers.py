"""Answers to the questions that missing facts raise, as proposals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hynt.asking.candidate_masks import AllowedAnswers
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import non_finite
from hynt.completion.missing_proposals import Proposals
from hynt.completion.missing_questions import MissingBatch
from hynt.completion.missing_tails import FittingTails
from hynt.graph.components import ENTITY_KIND, NUMBER_KIND
from hynt.graph.fact_table import FactTable
from hynt.graph.number_summary import sorted_numbers

_SPARE = 5
"""Answers beyond those wanted, in case the first ones cannot be tails of the relation."""

Ids = NDArray[np.int64]


class ProposalAnswers:
    """Of one run, beside facts that are taken for known."""

    def __init__(self, predictor: Predictor, facts: FactTable, level: float, top: int) -> None:
        self._predictor, self._level, self._top = predictor, level, top
        self._fitting = FittingTails(predictor.graph, facts)
        self._spread = middle_spreads(predictor, level)

    def proposals(self, batch: MissingBatch) -> tuple[Proposals, int]:
        """What may be proposed, and how many numbers may not because nobody can say how sure they are."""
        kind = batch.asked.kind
        entities, numbers = (np.flatnonzero(kind == one).astype(np.int64) for one in (ENTITY_KIND, NUMBER_KIND))
        found, lost = Proposals.none(), 0
        if len(entities):
            found = found.joined(self._ranked(batch))
        if len(numbers):
            made = self._numbers(batch, numbers)
            found, lost = found.joined(made), len(numbers) - len(made)
        return found, lost

    def _ranked(self, batch: MissingBatch) -> Proposals:
        """The best entities for each question that can be a tail of its relation."""
        asked = batch.asked
        found = self._predictor.answering(asked).ranked(AllowedAnswers.all_of(len(asked)), self._top + _SPARE)
        if not found.is_finite.all():
            raise non_finite(self._predictor.loaded, "a proposal")
        owner = found.owner()
        fine = self._fitting.fits(asked.relation[owner], asked.table.head[owner], found.candidate)
        so_far = np.cumsum(fine)
        before = np.concatenate([[0], so_far])[found.offsets[:-1]]
        at = np.flatnonzero(fine & (so_far - before[owner] <= self._top))
        rows, nothing = owner[at], np.zeros(len(at))
        return Proposals(
            asked.table.take(rows),
            found.candidate[at],
            nothing,
            nothing,
            nothing,
            nothing,
            found.probability[at],
            batch.share[rows],
            batch.peers[rows],
            np.zeros(len(at), dtype=np.bool_),
        )

    def _numbers(self, batch: MissingBatch, chosen: Ids) -> Proposals:
        """The number for each question; its probability is that of its interval to hold the truth."""
        asked = batch.asked
        found = self._predictor.answering(asked).numbers(chosen, self._level)
        if not found.is_finite.all():
            raise non_finite(self._predictor.loaded, "a proposal")
        relation = asked.relation[chosen]
        spread = self._spread[relation]
        at = np.flatnonzero(found.has_interval & (spread > 0))
        rows, width = chosen[at], self._widths(relation[at], found.value[at])
        return Proposals(
            asked.table.take(rows),
            np.zeros(len(at), dtype=np.int64),
            found.value[at],
            found.low[at],
            found.high[at],
            width / spread[at],
            np.full(len(at), self._level),
            batch.share[rows],
            batch.peers[rows],
            np.ones(len(at), dtype=np.bool_),
        )

    def _widths(self, relation: Ids, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) of the intervals around these answers; without end where the answer is none that can be."""
        radii, scaling = self._predictor.calibration.radii, self._predictor.loaded.scaling
        assert radii is not None  # there are intervals
        width = radii.width(scaling, relation, scaling.scale(relation, value), self._level)
        return np.where(radii.ends_at_zero[relation] & (value < 0), np.inf, width)


def middle_spreads(predictor: Predictor, level: float) -> NDArray[np.float64]:
    """(relations,) how far apart the ends of the middle `level` of a relation's training numbers are: what is known
    without a model; 0 where there are none.
    """
    graph = predictor.graph
    known = sorted_numbers(graph.split("train"), graph.vocabulary.relation_is_number)
    found = np.zeros(graph.vocabulary.relation_count)
    for relation, first, size in zip(known.present.tolist(), known.start.tolist(), known.size.tolist(), strict=True):
        low, high = np.quantile(known.value[first : first + size], [(1 - level) / 2, (1 + level) / 2])
        found[relation] = high - low
    return found
