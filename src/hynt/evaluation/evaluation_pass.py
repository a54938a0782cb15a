"""One model being asked: tiles in, counts and numbers out. The device is never waited for between tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.errors import DataError
from hynt.evaluation.metrics import KIND_OF_TASK, TaskName
from hynt.evaluation.results import NumberQuestions, RankedQuestions
from hynt.evaluation.tiles import KnownSlots, Tile, Tiling, read_each_tile, tally
from hynt.graph.fact_table import HEAD, Components, position_name
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.seen_values import SeenValues
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Floats, Ids
from hynt.models.contract import (
    AnswersDistributions,
    EncodedQuestion,
    EntityRange,
    Model,
    Relations,
    mean_number,
    median_number,
)

if TYPE_CHECKING:
    from hynt.evaluation.evaluator import Evaluator

SCORES_AT_ONCE = 1 << 26
"""How many scores a tile may hold: candidates beyond that come in chunks."""


class EvaluationPass:
    """One pass of a model over an evaluator's questions, tile by tile, with its progress."""

    def __init__(
        self,
        evaluator: Evaluator,
        model: Model,
        total: int,
        progress: Callable[[int, int], None] | None,
        smaller: list[dict[str, int]],
    ) -> None:
        self.evaluator, self.model = evaluator, model
        self.total, self.done, self.progress, self.smaller = total, 0, progress, smaller

    def ranks(self, task: TaskName, chosen: Ids) -> tuple[RankedQuestions, RankedQuestions | None]:
        """Rank the answers of link or relation questions; for links also among type-constrained candidates if asked."""
        evaluator, vocabulary = self.evaluator, self.evaluator.graph.vocabulary
        parts = evaluator.questions.take(chosen)
        is_link = task == "link"
        count = vocabulary.entity_count if is_link else vocabulary.relation_count
        constrained = is_link and evaluator.type_constrained
        answer = (parts.entity if is_link else parts.relation).astype(np.int64)
        index = evaluator.known.of_kind(KIND_OF_TASK[task])
        start, known_count = index.spans(evaluator.keys[chosen])
        tiling = self._tiling(parts)
        known_count = np.where(tiling.is_real, known_count[tiling.question], 0)
        answers = self._tensor(index.known.answers)
        starts, targets = self._tensor(start[tiling.question]), self._tensor(answer[tiling.question])
        counts = self._tensor(known_count)
        seen = evaluator.graph.seen_in_training if constrained else None
        place = None if seen is None else seen.keys(parts.position, parts.relation)[tiling.question]
        size = len(tiling.question)
        results = [[torch.zeros(size, dtype=torch.int64, device=evaluator.device) for _ in range(3)] for _ in range(2)]
        finite = torch.ones(size, dtype=torch.bool, device=evaluator.device)

        def scored(question: EncodedQuestion) -> Callable[[int, int], Tensor]:
            if is_link:
                return lambda first, end: self.model.score(question, EntityRange(first, end))
            return lambda first, end: self.model.score(question, Relations())[:, first:end]

        def work(tile: Tile, question: EncodedQuestion) -> None:
            at = tile.places
            known = KnownSlots(answers, starts[at], counts[at].cumsum(0), int(known_count[at].sum()))
            allowed = None if seen is None or place is None else _seen_mask(seen, place[at], count, evaluator.device)
            chunk = max(1, SCORES_AT_ONCE // tiling.tiles[0].layout.rows)
            found = tally(scored(question), count, targets[at], known, chunk, allowed)
            for kept, one in zip(results, found, strict=True):
                if one is not None:
                    for target, column in zip(kept, (one.better, one.ties, one.candidates), strict=True):
                        target[at] = column
            finite[at] = found[0].finite

        self._ask(tiling, parts, work)
        # Rows of other processes' tiles still hold zeros: the sum is what each has found.
        results = [[evaluator.workers.gathered(one) for one in kept] for kept in results]
        finite = evaluator.workers.gathered((~finite).int()) == 0
        refuse_non_finite(tiling.unpacked(finite.cpu().numpy()), parts, evaluator.graph, evaluator.split)

        def ranked(kept: list[Tensor]) -> RankedQuestions:
            better, ties, candidates = (tiling.unpacked(one.cpu().numpy()).astype(np.int64) for one in kept)
            relation, qualifiers = parts.relation.astype(np.int64), self._qualifiers(parts)
            of_number = (parts.position == HEAD) & vocabulary.relation_is_number[relation] if is_link else None
            return RankedQuestions(
                parts.row, parts.position, relation, answer, qualifiers, better, ties, candidates, of_number
            )

        return ranked(results[0]), ranked(results[1]) if constrained else None

    def numbers(self, chosen: Ids) -> NumberQuestions:
        """Predicts the masked numbers of the `chosen` questions."""
        evaluator = self.evaluator
        parts = evaluator.questions.take(chosen)
        tiling = self._tiling(parts)
        result = torch.zeros(2, len(tiling.question), dtype=torch.float32, device=evaluator.device)
        relation, scaling = parts.relation.astype(np.int64), evaluator.scaling
        reach = self._tensor(np.where(scaling.is_log, scaling.log_width, 0.0)[relation[tiling.question]])
        beliefs = _Beliefs(self, parts, tiling) if isinstance(self.model, AnswersDistributions) else None

        def work(tile: Tile, question: EncodedQuestion) -> None:
            result[0, tile.places] = median_number(self.model, question)
            result[1, tile.places] = mean_number(self.model, question, reach[tile.places])
            if beliefs is not None:
                beliefs.score(question, tile)

        self._ask(tiling, parts, work)
        found = evaluator.workers.gathered(result).cpu().numpy()
        with np.errstate(over="ignore", invalid="ignore"):
            predicted, mean = (scaling.unscale(relation, tiling.unpacked(one).astype(np.float64)) for one in found)
            expected = scaling.expected(relation, mean)
        refuse_non_finite(np.isfinite(predicted) & np.isfinite(expected), parts, evaluator.graph, evaluator.split)
        head = evaluator.graph.split(evaluator.split).head[parts.row].astype(np.int64)
        return NumberQuestions(
            parts.row,
            parts.position,
            relation,
            head,
            self._qualifiers(parts),
            parts.number,
            predicted,
            expected,
            scaling.linear(relation, parts.number),
            scaling.linear(relation, predicted),
            scaling.linear(relation, expected),
            None if beliefs is None else beliefs.scores(),
            evaluator.medians[relation],
        )

    def _ask(self, tiling: Tiling, parts: Components, work: Callable[[Tile, EncodedQuestion], None]) -> None:
        """Hide, read and `work` on every tile, in smaller ones where memory runs out."""
        workers = self.evaluator.workers

        def on_tile(tile: Tile, question: EncodedQuestion) -> None:
            work(tile, question)
            self.done = min(self.total, self.done + tile.real * workers.world)
            if self.progress is not None:
                self.progress(self.done, self.total)

        read_each_tile(
            self.model,
            self.evaluator.facts,
            replace(tiling, tiles=tiling.tiles[workers.rank :: workers.world]),
            parts.row,
            parts.position,
            on_tile,
            note=lambda rows, size: self.smaller.append({"rows": rows, "capacity": size}),
        )

    def _tiling(self, parts: Components) -> Tiling:
        return Tiling.of(self._qualifiers(parts), self.evaluator.device, self.evaluator.rows)

    def _qualifiers(self, parts: Components) -> Ids:
        return self.evaluator.graph.split(self.evaluator.split).qualifier_counts()[parts.row]

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.evaluator.device)


class _Beliefs:
    """Scores the distributions that a model gives for numbers, on the linear min–max scale."""

    def __init__(self, asking: EvaluationPass, parts: Components, tiling: Tiling) -> None:
        self._asking, self._parts, self._tiling = asking, parts, tiling
        self._found = torch.zeros(len(tiling.question), dtype=torch.float64, device=asking.evaluator.device)
        relation, scaling = parts.relation.astype(np.int64), asking.evaluator.scaling
        self._truth = asking._tensor(scaling.linear(relation, parts.number)[tiling.question])
        self._relations, place = np.unique(relation, return_inverse=True)
        self._place = asking._tensor(place.astype(np.int64)[tiling.question])
        self._edges: Tensor | None = None

    def score(self, question: EncodedQuestion, tile: Tile) -> None:
        belief = cast(AnswersDistributions, self._asking.model).distribution(question)
        if self._edges is None:  # bins are the model's, and so is the scale they are on
            scaling, edges = self._asking.evaluator.scaling, belief.bins.edges(torch.device("cpu")).double().numpy()
            of_relation = np.repeat(self._relations, len(edges))
            there = scaling.linear(of_relation, scaling.unscale(of_relation, np.tile(edges, len(self._relations))))
            self._edges = self._asking._tensor(there.reshape(len(self._relations), -1))
        edges_here = self._edges[self._place[tile.places]]
        self._found[tile.places] = belief.crps(self._truth[tile.places], edges_here)

    def scores(self) -> Floats:
        """(n,) of all questions."""
        found = self._asking.evaluator.workers.gathered(self._found)
        return self._tiling.unpacked(found.cpu().numpy()).astype(np.float64)


def _seen_mask(seen: SeenValues, place: Ids, count: int, device: torch.device) -> Tensor:
    """(rows, count) bool: the entities that train holds at each question's place (rows,).

    Ranking among them is a milder question, "which of the plausible ones?", and is shown beside the plain ranking,
    never instead of it.
    """
    distinct, inverse = np.unique(place, return_inverse=True)
    owner, value, row = (torch.from_numpy(one).to(device) for one in (*seen.pairs(distinct), inverse.astype(np.int64)))
    found = torch.zeros(len(distinct), count, dtype=torch.bool, device=device)
    found[owner, value] = True
    return found[row]


def refuse_non_finite(finite: NDArray[np.generic], questions: Components, graph: KnowledgeGraph, split: str) -> None:
    """Raises a `DataError` that names the first question where `finite` (n,) is false: ranks
    made of scores that are no finite numbers would mean nothing, and might look perfect.
    """
    wrong = np.flatnonzero(~finite.astype(np.bool_))
    if not len(wrong):
        return
    row, position = int(questions.row[wrong[0]]), int(questions.position[wrong[0]])
    (fact,) = graph.split(split).take(np.array([row])).facts(graph.vocabulary)
    raise DataError(
        f"the model's answer to {Sentences(graph).question(fact, position)} is not a finite number "
        f"({len(wrong)} of {len(finite)} questions).",
        where=f"{split} fact {row + 1}, {position_name(position)}",
        advice="Take an earlier checkpoint, or train again with a lower learning rate.",
    )
