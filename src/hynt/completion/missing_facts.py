"""Facts that a graph lacks, proposed by a run: for entities without a relation that their peers have.

propose(hynt.load("runs/first"), Proposing(budget=100))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.predictor import Predictor
from hynt.calibration.intervals import check_level
from hynt.completion.missing_answers import ProposalAnswers
from hynt.completion.missing_confirmed import confirmed
from hynt.completion.missing_peers import Peers
from hynt.completion.missing_proposals import Proposals
from hynt.completion.missing_questions import MissingQuestions
from hynt.errors import UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph

Ids = NDArray[np.int64]


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
    peers = Peers.of(graph, wanted.without)
    answers = ProposalAnswers(predictor, peers.facts, wanted.level, wanted.top)
    questions = MissingQuestions(predictor, peers, wanted.share, _chosen(predictor, peers, wanted))
    found, asked, without, made, passed = Proposals.none(), 0, 0, 0, 0
    for batch in questions.batches():
        each, lost = answers.proposals(batch)
        kept = each.where(_is_good(each, wanted))
        asked, without, made, passed = asked + len(batch), without + lost, made + len(each), passed + len(kept)
        found = found.joined(kept)
        if wanted.per_relation is not None:
            found = found.at_most(wanted.per_relation)
        found = found.first(wanted.budget)
        progress("looking for missing facts", asked, questions.done())
    counts = (questions.lacked, asked, questions.unasked, without, made - passed, passed - len(found))
    return Proposed(found.first(wanted.budget), *counts, *confirmed(found, graph, wanted.without))


def _chosen(predictor: Predictor, peers: Peers, wanted: Proposing) -> Ids:
    if not wanted.relations:
        return peers.relations()
    named = sorted({predictor.names.relation(name) for name in wanted.relations})
    unused = [one for one in named if one not in peers.relations()]
    if unused:
        label = predictor.graph.relation_labels[unused[0]]
        raise UsageError(
            f"no fact has the relation {label!r}: it stands only in qualifiers.",
            where="relations",
            advice="Name relations of facts.",
        )
    return np.array(named, dtype=np.int64)


def _is_good(made: Proposals, wanted: Proposing) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = np.where(
        made.is_number, made.width <= wanted.widest, made.probability >= wanted.threshold
    )
    return good
