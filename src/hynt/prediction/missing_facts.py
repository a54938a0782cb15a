"""Facts that a graph lacks, proposed by a run: for entities without a relation that their peers have.

propose(hynt.load("runs/first"), Proposing(budget=100))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.components import ENTITY_KIND, NUMBER_KIND, TAIL
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import SortedNumbers, sorted_numbers
from hynt.prediction.allowed_answers import AllowedAnswers
from hynt.prediction.asked_facts import AskedFacts
from hynt.prediction.intervals import check_level
from hynt.prediction.missing_confirmed import confirmed
from hynt.prediction.missing_peers import Lacking, Peers
from hynt.prediction.missing_proposals import Proposals
from hynt.prediction.missing_tails import FittingTails
from hynt.prediction.missing_usual import usual_qualifiers
from hynt.prediction.predictor import Predictor
from hynt.prediction.refusals import answerable, non_finite, off_scale

AT_ONCE = 16_384
"""Questions that are scored together."""

_SPARE = 5
"""Answers beyond those wanted, in case the first ones cannot be tails of the relation."""

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Proposing:
    """What to propose."""

    relations: tuple[str, ...] = ()  # ids or names; none: all
    budget: int = 1000  # proposals in all
    threshold: float = 0.5  # the least calibrated probability
    widest: float = 0.5  # the greatest relative width of a number's interval
    per_relation: int | None = None  # proposals for one relation
    share: float = 0.75  # of peers that must have a relation for it to be missed
    level: float = 0.9  # of intervals
    top: int = 1  # answers to one question that may be proposed
    without: tuple[str, ...] = ()  # splits to take for unknown, to see which proposals they confirm

    def check(self) -> None:
        """Refuses what cannot be wanted."""
        check_level(self.level)
        for name in ("threshold", "share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(
                    f"{getattr(self, name):g} is no {name}.", where=name, advice="Give a number from 0 to 1."
                )
        for name in ("budget", "per_relation", "top"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"the {name} is {getattr(self, name)}.", where=name, advice="Give at least 1.")
        if "train" in self.without:
            raise UsageError("train cannot be hidden: the run knows it.", where="without", advice="Hide valid or test.")
        if not self.widest > 0:
            raise UsageError(
                f"no interval is as narrow as {self.widest:g}.", where="widest", advice="Give more than 0."
            )


@dataclass(frozen=True, eq=False)
class Proposed:
    """What was found."""

    proposals: Proposals  # best first
    relations: int  # relations that someone lacks
    questions: int  # asked
    unasked: int  # questions that the model cannot answer
    without_interval: int  # numbers of which nobody can say how sure they are
    below: int  # answers under the threshold, or too wide
    left_out: int  # beyond the budget, or beyond what one relation may have
    is_checked: NDArray[np.bool_]  # (n,) whether a hidden split says anything of a proposal's head and relation
    is_confirmed: NDArray[np.bool_]  # (n,) whether it agrees

    def rows(self, graph: KnowledgeGraph) -> pa.Table:
        """A table of `PROPOSAL_SCHEMA`."""
        agrees = pa.array(self.is_confirmed, mask=~self.is_checked)
        return self.proposals.rows(graph).append_column("confirmed", agrees)


def propose(
    predictor: Predictor,
    wanted: Proposing,
    progress: Callable[[str, int, float], None] = lambda step, questions, share: None,
) -> Proposed:
    """The most likely facts that the graph lacks.

    `progress` hears how many questions were asked so far, and which share of the relations was looked at.
    """
    wanted.check()
    graph = predictor.graph
    for split in wanted.without:
        graph.split(split)  # refuses one that is not there
    peers, is_number = Peers.of(graph, wanted.without), graph.vocabulary.relation_is_number
    numbers = sorted_numbers(graph.split("train"), is_number)
    chosen = _chosen(predictor, peers, wanted)
    found, fitting = Proposals.none(), FittingTails(graph, peers.facts)
    relations = questions = unasked = without = answers = passed = 0
    for done, relation in enumerate(chosen.tolist(), 1):
        lacking = peers.lacking(relation, wanted.share)
        relations += bool(len(lacking.entity))
        usual = _usual(predictor, peers, relation) if len(lacking.entity) else None
        if usual is None:
            unasked += len(lacking.entity)
        else:
            of_relation = Proposals.none()
            for few in _pieces(lacking):
                asked = _asked(usual, few.entity, is_number[relation])
                made = _numbers(predictor, asked, few, wanted, numbers) if is_number[relation] else None
                made = _ranked(predictor, asked, few, wanted, fitting) if made is None else made
                kept = made.where(_is_good(made, wanted))
                questions, answers, passed = questions + len(asked), answers + len(made), passed + len(kept)
                without += len(asked) - len(made) if is_number[relation] else 0
                of_relation = of_relation.joined(kept).first(wanted.per_relation or wanted.budget)
            found = found.joined(of_relation).first(wanted.budget)
        progress("looking for missing facts", questions, done / len(chosen))
    counts = (relations, questions, unasked, without, answers - passed, passed - len(found))
    return Proposed(found, *counts, *confirmed(found, graph, wanted.without))


def _chosen(predictor: Predictor, peers: Peers, wanted: Proposing) -> Ids:
    if not wanted.relations:
        return peers.relations()
    named = sorted({predictor.names.relation(name) for name in wanted.relations})
    unused = [one for one in named if one not in peers.relations()]
    if unused:
        label = predictor.graph.relation_labels[unused[0]]
        raise UsageError(
            f"no fact has the relation {label!r}: it stands only in qualifiers.", where="relations",
            advice="Name relations of facts.",
        )  # fmt: skip
    return np.array(named, dtype=np.int64)


def _pieces(lacking: Lacking) -> Iterator[Lacking]:
    for first in range(0, len(lacking.entity), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        yield Lacking(lacking.entity[part], lacking.share[part], lacking.peers[part])


def _usual(predictor: Predictor, peers: Peers, relation: int) -> FactTable | None:
    """A fact of the relation as it is usually written, for its tail to be asked; None where the model cannot say it."""
    is_number = predictor.graph.vocabulary.relation_is_number
    usual = usual_qualifiers(peers.facts, relation, predictor.graph)
    if is_number[relation]:  # the tail is a filler that nobody reads
        usual = replace(usual, tail_number=np.ones(1), tail_literal=pa.array(["1.0"], type=pa.string()))
    kind = NUMBER_KIND if is_number[relation] else ENTITY_KIND
    can = answerable(predictor.loaded, np.array([TAIL]), np.array([kind]))[0]
    return usual if can and not off_scale(predictor.loaded, usual) else None


def _asked(usual: FactTable, entity: Ids, is_number: bool) -> AskedFacts:
    """What is the tail of the usual fact, for each of these heads?"""
    count = len(entity)
    table = usual.take(np.zeros(count, dtype=np.int64))
    return AskedFacts(
        replace(table, head=entity.astype(np.int32)), np.arange(count + 1, dtype=np.int64),
        np.full(count, TAIL, dtype=np.int64),
        np.full(count, NUMBER_KIND if is_number else ENTITY_KIND, dtype=np.int64),
        table.relation.astype(np.int64), np.zeros(count, dtype=np.bool_),
    )  # fmt: skip


def _ranked(
    predictor: Predictor, asked: AskedFacts, lacking: Lacking, wanted: Proposing, fitting: FittingTails
) -> Proposals:
    """The best entities for each question that can be a tail of the relation."""
    found = predictor.answering(asked).ranked(AllowedAnswers.all_of(len(asked)), wanted.top + _SPARE)
    if not found.is_finite.all():
        raise non_finite(predictor.loaded, "a proposal")
    owner = found.owner()
    fine = fitting.fits(int(asked.relation[0]), asked.table.head[owner], found.candidate)
    so_far = np.cumsum(fine)
    before = np.concatenate([[0], so_far])[found.offsets[:-1]]
    at = np.flatnonzero(fine & (so_far - before[owner] <= wanted.top))
    rows = owner[at]
    nothing = np.zeros(len(at))
    return Proposals(
        asked.table.take(rows), found.candidate[at], nothing, nothing, nothing, nothing, found.probability[at],
        lacking.share[rows], lacking.peers[rows], np.zeros(len(at), dtype=np.bool_),
    )  # fmt: skip


def _numbers(
    predictor: Predictor, asked: AskedFacts, lacking: Lacking, wanted: Proposing, known: SortedNumbers
) -> Proposals:
    """The number for each question, with its interval: its probability is that of the interval to hold the truth."""
    count = len(asked)
    found = predictor.answering(asked).numbers(np.arange(count, dtype=np.int64), wanted.level)
    if not found.is_finite.all():
        raise non_finite(predictor.loaded, "a proposal")
    spread = middle_spread(known, int(asked.relation[0]), wanted.level)
    at = np.flatnonzero(found.has_interval & (spread > 0))
    width = (found.high[at] - found.low[at]) / (spread or 1.0)
    return Proposals(
        asked.table.take(at), np.zeros(len(at), dtype=np.int64), found.value[at], found.low[at], found.high[at],
        width, np.full(len(at), wanted.level), lacking.share[at], lacking.peers[at],
        np.ones(len(at), dtype=np.bool_),
    )  # fmt: skip


def middle_spread(known: SortedNumbers, relation: int, level: float) -> float:
    """How far apart the ends of the middle `level` of a relation's training numbers are: what is known without a
    model.
    """
    at = np.flatnonzero(known.present == relation)
    if not len(at):
        return 0.0
    first, size = int(known.start[at[0]]), int(known.size[at[0]])
    low, high = np.quantile(known.value[first : first + size], [(1 - level) / 2, (1 + level) / 2])
    return float(high - low)


def _is_good(made: Proposals, wanted: Proposing) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = np.where(
        made.is_number, made.width <= wanted.widest, made.probability >= wanted.threshold
    )
    return good
