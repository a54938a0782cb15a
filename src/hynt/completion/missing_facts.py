"""Facts that a graph lacks, proposed by a run: for entities without a relation that their peers have.

propose(hynt.load("runs/first"), ProposalOptions(budget=100))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.candidates import CandidateMasks
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import non_finite
from hynt.calibration.held_out import SPLIT as VALID
from hynt.calibration.intervals import check_level
from hynt.completion.missing_confidence import Answered, MissingConfidence, fit_confidence
from hynt.completion.missing_proposals import ProposedFacts, confirmed
from hynt.completion.missing_questions import MissingBatch, MissingQuestions, Peers
from hynt.errors import UsageError
from hynt.graph.fact_table import ENTITY_KIND, NUMBER_KIND, TAIL, FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import Ids
from hynt.progress import SILENT, Progress
from hynt.runs.opening import LoadedRun
from hynt.runs.training_data import training_splits


@dataclass(frozen=True)
class ProposalOptions:
    """Which facts to propose, how many, and how sure they must be."""

    relations: tuple[str, ...] = ()  # ids or names; none: all
    budget: int = 1000  # proposals in all
    threshold: float = 0.5  # the least probability of a fact to be true
    widest: float = 0.5  # the greatest relative width of a number's interval
    per_relation: int | None = None  # proposals for one relation
    share: float = 0.75  # of peers that must have a relation for it to be missed
    level: float = 0.9  # of intervals
    top: int = 1  # answers to one question that may be proposed
    without: tuple[str, ...] = ()  # splits to take for unknown, to see which proposals they confirm
    heads: tuple[str, ...] = ()  # ids or names of those that facts are proposed for; none: all

    def check(self) -> None:
        """Refuses what cannot be wanted."""
        check_level(self.level)
        for name in ("threshold", "share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(
                    f"{getattr(self, name):g} is not a {name}.", where=name, advice="Give a number from 0 to 1."
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


_NINE_IN_TEN = 1.645
"""Standard deviations on either side, of what is normally distributed."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """The proposed facts, and how many questions were asked, refused or left out on the way."""

    proposals: ProposedFacts  # best first
    relations: int  # relations that someone lacks
    questions: int  # asked
    unasked: int  # questions that the model cannot answer
    without_interval: int  # numbers of which nobody can say how sure they are
    below: int  # answers under the threshold, or too wide
    left_out: int  # beyond the budget, or beyond what one relation may have
    rate: float | None  # places lacked by oversight for each that hiding validation empties; None: nothing tells
    deviation: float | None  # of how many are true from what their probabilities come to; None: nothing tells
    is_checked: NDArray[np.bool_]  # (n,) whether a hidden split says anything of a proposal's head and relation
    is_confirmed: NDArray[np.bool_]  # (n,) whether it agrees

    def expected(self) -> tuple[float, float, float] | None:
        """How many proposals should be true, and between which numbers nine times in ten; None: nothing tells."""
        if self.deviation is None:
            return None
        total, count = float(self.proposals.probability.sum()), float(len(self.proposals))
        reach = _NINE_IN_TEN * self.deviation
        return total, max(0.0, total - reach), min(count, total + reach)

    def rows(self, graph: KnowledgeGraph) -> pa.Table:
        """A table of `PROPOSAL_SCHEMA`, and whether hidden splits confirm each proposal."""
        agrees = pa.array(self.is_confirmed, mask=~self.is_checked)
        return self.proposals.rows(graph).append_column("confirmed", agrees)


def propose(predictor: Predictor, options: ProposalOptions, progress: Progress = SILENT) -> Proposals:
    """The most likely facts that the graph lacks.

    `progress` hears how many questions were asked so far, and which share of the relations was looked at.
    """
    options.check()
    graph = predictor.graph
    for split in options.without:
        graph.split(split)  # refuses one that is not there
    peers, asked_run = Peers.of(graph, options.without), predictor.loaded
    if options.without:
        predictor = predictor.observing(peers.facts)
    named = np.array(sorted({predictor.names.entity(name) for name in options.heads}), dtype=np.int64)
    heads = named if options.heads else None
    chosen = _chosen(predictor, peers, options)
    belief = _confidence(asked_run, predictor, peers, options)
    answers = ProposalAnswers(predictor, peers.facts, options.level, options.top)
    questions = MissingQuestions(
        predictor, peers, chosen, lambda relation: peers.lacking(relation, options.share).among(heads)
    )
    found, asked, without, made, passed = ProposedFacts.none(), 0, 0, 0, 0
    for batch in questions.batches():
        each, lost = answers.proposals(batch)
        each = each if belief is None else replace(each, probability=belief.probability(_answered(each)))
        is_narrow = ~each.is_number | (each.width <= options.widest)
        kept = each.where((each.probability >= options.threshold) & is_narrow)
        asked, without, made, passed = asked + len(batch), without + lost, made + len(each), passed + len(kept)
        found = found.joined(kept)
        if options.per_relation is not None:
            found = found.at_most(options.per_relation)
        found = found.first(options.budget)
        progress.update("looking for missing facts", asked, unit="questions", share=questions.done())
    counts = (questions.lacked, asked, questions.unasked, without, made - passed, passed - len(found))
    found, rate, deviation = found.first(options.budget), None, None
    if belief is not None:
        rate, deviation = belief.oversights.rate, belief.deviation(_answered(found))
    return Proposals(found, *counts, rate, deviation, *confirmed(found, graph, options.without))


def _chosen(predictor: Predictor, peers: Peers, options: ProposalOptions) -> Ids:
    if not options.relations:
        return peers.relations()
    named = sorted({predictor.names.relation(name) for name in options.relations})
    unused = [one for one in named if one not in peers.relations()]
    if unused:
        label = predictor.graph.relation_labels[unused[0]]
        raise UsageError(
            f"no fact has the relation {label!r}: it stands only in qualifiers.",
            where="relations",
            advice="Name relations of facts.",
        )
    return np.array(named, dtype=np.int64)


# How likely proposals are true, told by what hiding the validation facts empties.

_OF_A_RELATION = 128
"""Emptied places of a relation that are asked about; counted are all."""
_CONFIDENCES: WeakKeyDictionary[LoadedRun, dict[tuple[object, ...], MissingConfidence | None]] = WeakKeyDictionary()
"""Of a run, by what they depend on."""


def _confidence(
    run: LoadedRun, predictor: Predictor, peers: Peers, options: ProposalOptions
) -> MissingConfidence | None:
    """Made once for a run; None where nothing was held out that could tell."""
    made, key = _CONFIDENCES.setdefault(run, {}), (options.share, options.level, options.without)
    if key not in made:
        made[key] = _fitted_confidence(predictor, peers, options)
    return made[key]


def _fitted_confidence(predictor: Predictor, peers: Peers, options: ProposalOptions) -> MissingConfidence | None:
    graph, loaded, share = predictor.graph, predictor.loaded, options.share
    hidden = graph.splits.get(VALID)
    if VALID in (*training_splits(loaded.settings), *options.without) or hidden is None or not len(hidden):
        return None
    kept = concatenate([table for name, table in graph.splits.items() if name not in (VALID, *options.without)])
    run = predictor.observing(kept)
    answers = ProposalAnswers(run, peers.facts, options.level, 1)
    questions = MissingQuestions(
        run, peers, peers.relations(), lambda one: peers.emptied(one, share, kept).at_most(_OF_A_RELATION)
    )
    emptied = ProposedFacts.none()
    for batch in questions.batches():
        emptied = emptied.joined(answers.proposals(batch)[0])
    places = peers.expected(share, kept)
    told = confirmed(emptied, graph, (VALID,))
    return fit_confidence(places, _answered(emptied), *told, graph.vocabulary.relation_count)


def _answered(made: ProposedFacts) -> Answered:
    head, relation = (ids.astype(np.int64) for ids in (made.table.head, made.table.relation))
    return Answered(head, relation, made.answer, made.is_number)


# Which entities can be tails of a relation at all. No torch here.


class FittingTails:
    """By what the known facts of a relation have for tails."""

    def __init__(self, graph: KnowledgeGraph, facts: FactTable) -> None:
        _, self._type = np.unique(np.array([entity.type for entity in graph.entities], dtype=str), return_inverse=True)
        self._is_typed = np.array([bool(entity.type) for entity in graph.entities], dtype=np.bool_)
        self._seen = SeenValues.of([facts], graph.vocabulary.relation_is_number)
        self._with_own_tail = np.unique(facts.relation[facts.head == facts.tail_entity])

    def fits(self, relation: Ids, head: NDArray[np.int32], tail: Ids) -> NDArray[np.bool_]:
        """(n,) whether an entity has the type of a known tail, or, where it has no type, is one; a head is its own tail
        only where that is known of the relation.
        """
        found = np.zeros(len(tail), dtype=np.bool_)
        for one in np.unique(relation).tolist():
            own = np.flatnonzero(relation == one)
            found[own] = self._fits(one, head[own], tail[own])
        return found

    def _fits(self, relation: int, head: NDArray[np.int32], tail: Ids) -> NDArray[np.bool_]:
        tails = self._seen.at(TAIL, relation)
        is_tail = np.zeros(len(self._type), dtype=np.bool_)
        is_tail[tails] = True
        met = np.zeros(int(self._type.max()) + 1, dtype=np.bool_)
        met[self._type[tails[self._is_typed[tails]]]] = True
        found: NDArray[np.bool_] = np.where(self._is_typed[tail], met[self._type[tail]], is_tail[tail])
        if relation not in self._with_own_tail:
            found &= tail != head
        return found


# Answers to the questions that missing facts raise, as proposals.

_SPARE = 5
"""Answers beyond those wanted, in case the first ones cannot be tails of the relation."""


class ProposalAnswers:
    """Of one run, beside facts that are taken for known."""

    def __init__(self, predictor: Predictor, facts: FactTable, level: float, top: int) -> None:
        self._predictor, self._level, self._top = predictor, level, top
        self._fitting = FittingTails(predictor.graph, facts)
        self._spread = middle_spreads(predictor, level)

    def proposals(self, batch: MissingBatch) -> tuple[ProposedFacts, int]:
        """What may be proposed, and how many numbers may not because nobody can say how sure they are."""
        kind = batch.asked.kind
        entities, numbers = (np.flatnonzero(kind == one).astype(np.int64) for one in (ENTITY_KIND, NUMBER_KIND))
        found, lost = ProposedFacts.none(), 0
        if len(entities):
            found = found.joined(self._ranked(batch))
        if len(numbers):
            made = self._numbers(batch, numbers)
            found, lost = found.joined(made), len(numbers) - len(made)
        return found, lost

    def _ranked(self, batch: MissingBatch) -> ProposedFacts:
        """The best entities for each question that can be a tail of its relation."""
        asked = batch.asked
        found = self._predictor.question_batch(asked).ranked(CandidateMasks.all_of(len(asked)), self._top + _SPARE)
        if not found.is_finite.all():
            raise non_finite(self._predictor.loaded, "a proposal")
        owner = found.owner()
        fine = self._fitting.fits(asked.relation[owner], asked.table.head[owner], found.candidate)
        so_far = np.cumsum(fine)
        before = np.concatenate([[0], so_far])[found.offsets[:-1]]
        at = np.flatnonzero(fine & (so_far - before[owner] <= self._top))
        rows, nothing = owner[at], np.zeros(len(at))
        return ProposedFacts(
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
            found.probability[at],
        )

    def _numbers(self, batch: MissingBatch, chosen: Ids) -> ProposedFacts:
        """The number for each question; its probability is that of its interval to hold the truth."""
        asked = batch.asked
        found = self._predictor.question_batch(asked).numbers(chosen, self._level)
        if not found.is_finite.all():
            raise non_finite(self._predictor.loaded, "a proposal")
        relation = asked.relation[chosen]
        spread = self._spread[relation]
        at = np.flatnonzero(found.has_interval & (spread > 0))
        rows = chosen[at]
        return ProposedFacts(
            asked.table.take(rows),
            np.zeros(len(at), dtype=np.int64),
            found.value[at],
            found.low[at],
            found.high[at],
            found.width[at] / spread[at],
            np.full(len(at), self._level),
            batch.share[rows],
            batch.peers[rows],
            np.ones(len(at), dtype=np.bool_),
            np.full(len(at), self._level),
        )


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
