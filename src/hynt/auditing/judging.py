"""A model judges facts that it has not seen: every component is hidden in turn, and the stored value is found among the
answers. Other known answers of the same question are no candidates: that they are right says nothing about this one.
Nor are relations that could not stand beside the value: candidates were seen in that position with values of the same
kind and unit.

A model sees a number on the scale of its relation, from its least to its greatest, and without a unit. Asked for the
relation it may say that a longitude is a population, which no graph could hold. So beside a number each relation of the
unit is tried in a row of its own that has the number on its own scale: 100 is in the middle of longitudes and beyond
all latitudes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.refusals import in_reach
from hynt.calibration.held_out import HeldOut
from hynt.calibration.temperature import first_answers, fit_inverse_temperature
from hynt.errors import DataError
from hynt.evaluation.metrics import KIND_OF_TASK, TaskName, answerable_components
from hynt.evaluation.tiles import KnownSlots
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import RELATION, Components, FactTable, components, filled, qualifier_of
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary, spaced
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import ReadTile, read_tiles


def relation_sorts(vocabulary: Vocabulary) -> Ids:
    """(relations,) equal where relations can stand beside the same values: those that carry entities, and those that
    carry numbers of one unit. A number in degrees is never a population, whatever a model makes of it.
    """
    sorts: dict[tuple[str, str], int] = {}
    return np.array(
        [sorts.setdefault((one.kind, one.unit), len(sorts)) for one in vocabulary.relations], dtype=np.int64
    )


MOST_TRIED = 64
"""Relations of one unit that are tried each on its own scale; where there are more, one row with the stored relation's
scale speaks for all of them, lest the work grow with the number of relations.
"""

_AT_ONCE = 512

Work = Callable[[Ids, Tensor], None]


@dataclass(frozen=True, eq=False)
class RelationScores:
    """The model's scores of relations in hidden places of a table."""

    loaded: LoadedRun
    places: SeenValues
    table: FactTable
    device: torch.device

    def each(self, asked: Components, work: Work) -> None:
        """Calls `work` with some of the questions (k,), by their numbers in `asked`, and their (k, relations) scores,
        −∞ for what is no candidate, until all questions have had their turn.
        """
        keys = self.places.keys(asked.position, asked.relation)
        size, is_number = self.places.sizes(keys), self.loaded.graph.vocabulary.relation_is_number[asked.relation]
        alike = is_number & (size > 1) & (size <= MOST_TRIED)
        others, tried = (np.flatnonzero(rows).astype(np.int64) for rows in (~alike, alike))

        def on_tile(tile: ReadTile) -> None:
            scores, which = tile.relations().clone(), others[tile.which]
            scores.masked_fill_(~torch.from_numpy(self._seen(keys[which])).to(scores.device), -torch.inf)
            work(which, scores)

        if len(others):
            read_tiles(self.loaded, self.table, asked.row[others], asked.position[others], self.device, on_tile)
        for first in range(0, len(tried), _AT_ONCE):
            which = tried[first : first + _AT_ONCE]
            work(which, self._on_own_scales(asked.take(which), self._seen(keys[which])))

    def _seen(self, keys: Ids) -> Flags:
        different, which = np.unique(keys, return_inverse=True)
        return self.places.mask(different, self.loaded.graph.vocabulary.relation_count)[which.reshape(-1)]

    def _on_own_scales(self, asked: Components, seen: Flags) -> Tensor:
        """(k, relations) scores, each from a row with the number on that relation's scale. Far outside of it the model
        has learned nothing, and a relation is no candidate there unless it is the stored one.
        """
        question, relation = (index.astype(np.int64) for index in np.nonzero(seen))
        value = _numbers(self.table, asked)[question]
        within = in_reach(self.loaded.scaling, relation, value) | (relation == asked.relation[question])
        question, relation = question[within], relation[within]
        found = torch.full(seen.shape, -torch.inf, device=self.device)
        rows = filled(self.table, asked.row[question], asked.position[question], relation)
        owner, own = (torch.from_numpy(index).to(self.device) for index in (question, relation))

        def on_tile(tile: ReadTile) -> None:
            which = torch.from_numpy(tile.which).to(self.device)
            found[owner[which], own[which]] = tile.relations().gather(1, own[which][:, None])[:, 0]

        numbers = np.arange(len(rows), dtype=np.int64)
        read_tiles(self.loaded, rows, numbers, asked.position[question], self.device, on_tile)
        return found


def _numbers(table: FactTable, asked: Components) -> NDArray[np.float64]:
    """(n,) the numbers beside the relations that are asked for."""
    found = table.tail_number[asked.row].astype(np.float64)
    inner = np.flatnonzero(asked.position != RELATION)
    found[inner] = table.qualifier_number[table.offsets[asked.row[inner]] + qualifier_of(asked.position[inner])]
    return found


Tick = Callable[[int], None]

RANKED: tuple[TaskName, ...] = ("link", "relation")
MOST_QUESTIONS = 1024
"""Questions of a task that one fold's inverse_temperature is fitted on: the folds are joined afterwards."""


@dataclass(frozen=True, eq=False)
class RankedJudgement:
    """What a model says of `n` stored entities or relations."""

    fact: Ids  # (n,) the fact, by its number in the whole graph
    position: Ids  # (n,) the component
    log_probability: Floats  # (n,) of the stored value
    place: Floats  # (n,) of the stored value among the candidates, from 1; ties share the mean of their places
    best: Ids  # (n,) the id that the model would have said
    best_log_probability: Floats  # (n,)
    decoy_log_probability: Floats  # (n,) of another value of that place; −∞ where it is the stored one or no candidate
    values: Ids  # (n,) how many values a blind guess would be among; 1 where there is nothing to choose from


@dataclass(frozen=True, eq=False)
class NumberJudgement:
    """What a model would have said for `n` stored numbers."""

    fact: Ids  # (n,)
    position: Ids  # (n,)
    predicted: Floats  # (n,) in the graph's unit


@dataclass(frozen=True, eq=False)
class Judge:
    """One model and the facts that it judges, which it has not learned from."""

    loaded: LoadedRun
    known: KnownAnswers  # of the whole graph
    places: SeenValues  # of the whole graph
    facts: Ids  # (f,) their numbers in the whole graph
    table: FactTable  # (f,) as stored: what is judged
    shown: FactTable  # (f,) as models learn them, with numbers that are far off pulled in: what is read
    device: torch.device
    seed: int = 0  # of the decoys

    @cached_property
    def _parts(self) -> Components:
        return components(self.table, self.known.relation_is_number)

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return question_keys(self.table, self.known.relation_is_number)

    def questions(self) -> int:
        """How many components it can be asked for."""
        tasks: tuple[TaskName, ...] = (*RANKED, "number")
        return sum(len(answerable_components(self.loaded.model, self._parts, task)) for task in tasks)

    def inverse_temperature(self, task: TaskName) -> float | None:
        """What scores have to be multiplied by for this model to be as sure as it is right; None without questions."""
        chosen = answerable_components(self.loaded.model, self._parts, task)
        if not len(chosen):
            return None
        few = spaced(chosen, MOST_QUESTIONS)
        taken = self._parts.take(few)
        if task == "relation":
            return self._inverse_temperature_of_relations(taken, self._keys[few])
        known = self.known.of_kind(KIND_OF_TASK[task]).lookup(self._keys[few])
        held = HeldOut.read(self.loaded, task, self.shown, taken, known, self.device, total=len(chosen))
        return fit_inverse_temperature(held.first_answers).inverse_temperature

    def _inverse_temperature_of_relations(self, taken: Components, keys: NDArray[np.uint64]) -> float:
        """From the same candidates that relations are judged among; they are few enough to keep their scores."""
        answer, others = _answers(taken, "relation"), self._others("relation", keys)
        kept = torch.empty((len(taken), self.loaded.graph.vocabulary.relation_count), device=self.device)

        def keep(which: Ids, scores: Tensor) -> None:
            kept[self._tensor(which)] = _without(
                scores, self._tensor(_answers(taken, "relation")[which]), others(which)
            )

        self._relations.each(taken, keep)
        right = self._tensor(answer)
        return fit_inverse_temperature(
            lambda inverse_temperature: first_answers(kept, right, inverse_temperature)
        ).inverse_temperature

    def ranked(
        self, task: TaskName, inverse_temperature: float, tick: Tick = lambda questions: None
    ) -> RankedJudgement:
        """All entities, or all relations, that the model can be asked for."""
        chosen = answerable_components(self.loaded.model, self._parts, task)
        taken, count = self._parts.take(chosen), len(chosen)
        others, answer = self._others(task, self._keys[chosen]), _answers(taken, task)
        keys = self.places.keys(taken.position, taken.relation)
        decoy, values = self.places.draw(keys, self.seed), self.places.sizes(keys)
        logs, place, best = np.zeros((count, 3)), np.zeros(count), np.zeros(count, dtype=np.int64)

        def work(which: Ids, scores: Tensor) -> None:
            stored = self._tensor(answer[which])
            left = _without(scores, stored, others(which))
            found = _found(left, stored, self._tensor(decoy[which]), inverse_temperature)
            if task == "relation":
                values[which] = torch.isfinite(left).sum(1).cpu().numpy()
            if not np.isfinite(found[:, :4]).all():
                raise self._not_finite()
            logs[which], place[which], best[which] = found[:, [0, 1, 4]], found[:, 2], found[:, 3].astype(np.int64)
            tick(len(which))

        if count and task == "relation":
            self._relations.each(taken, work)
        elif count:
            read_tiles(
                self.loaded,
                self.shown,
                taken.row,
                taken.position,
                self.device,
                lambda tile: work(tile.which, tile.entities().clone()),
            )
        return RankedJudgement(
            self.facts[taken.row], taken.position, logs[:, 0], place, best, logs[:, 1], logs[:, 2], values
        )

    def numbers(self, tick: Tick = lambda questions: None) -> NumberJudgement:
        """All numbers that the model can be asked for."""
        chosen = answerable_components(self.loaded.model, self._parts, "number")
        taken, scaled = self._parts.take(chosen), np.zeros(len(chosen))

        def work(tile: ReadTile) -> None:
            scaled[tile.which] = tile.numbers().cpu().numpy()
            tick(len(tile.which))

        if len(chosen):
            read_tiles(self.loaded, self.shown, taken.row, taken.position, self.device, work)
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = self.loaded.scaling.unscale(taken.relation, scaled)
        if not np.isfinite(predicted).all():
            raise self._not_finite()
        return NumberJudgement(self.facts[taken.row], taken.position, predicted)

    @cached_property
    def _relations(self) -> RelationScores:
        return RelationScores(self.loaded, self.places, self.shown, self.device)

    def _others(self, task: TaskName, keys: NDArray[np.uint64]) -> Callable[[Ids], KnownSlots]:
        """Where the known answers of some of these questions (n,) are."""
        index = self.known.of_kind(KIND_OF_TASK[task])
        starts, counts = index.spans(keys)
        listed = self._tensor(index.known.answers)

        def of(which: Ids) -> KnownSlots:
            ends = self._tensor(np.cumsum(counts[which]))
            return KnownSlots(listed, self._tensor(starts[which]), ends, int(counts[which].sum()))

        return of

    def _tensor(self, array: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self.device)

    def _not_finite(self) -> DataError:
        return DataError(
            "the model's answer to a question is not a finite number.",
            where=str(self.loaded.run.path),
            advice="Train with a lower learning rate: --set optimiser.learning_rate=0.0003.",
        )


def _answers(parts: Components, task: TaskName) -> Ids:
    return (parts.entity if task == "link" else parts.relation).astype(np.int64)


def _without(scores: Tensor, stored: Tensor, others: KnownSlots) -> Tensor:
    """The scores with −∞ for other known answers than the stored one. `scores` is written to."""
    own = scores.gather(1, stored[:, None])
    for row, candidate in others.pieces():
        scores[row, candidate] = -torch.inf
    return scores.scatter_(1, stored[:, None], own)


def _found(scores: Tensor, stored: Tensor, decoy: Tensor, inverse_temperature: float) -> Floats:
    """(rows, 5) log probabilities of the stored values and of the best ones, places of the stored, ids of the best,
    log probabilities of decoys.
    """
    own = scores.gather(1, stored[:, None])
    top, best = scores.max(1)
    total = torch.logsumexp(inverse_temperature * scores, 1)
    better = torch.count_nonzero(scores > own, dim=1)
    ties = torch.count_nonzero(scores == own, dim=1) - 1
    other = torch.where(decoy == stored, -torch.inf, scores.gather(1, decoy[:, None])[:, 0])
    columns = (
        inverse_temperature * own[:, 0] - total,
        inverse_temperature * top - total,
        1 + better + ties / 2,
        best,
        inverse_temperature * other - total,
    )
    return np.stack([column.double().cpu().numpy() for column in columns], axis=1)
