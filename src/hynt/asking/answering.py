"""Questions in columns to answers in columns. One path for one question and for millions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.candidates import CandidateMasks
from hynt.asking.columns import AskedFacts, NumberColumns, RankedColumns, RankedParts, Standing, splits_of
from hynt.calibration.calibration import Calibration
from hynt.calibration.reach import AskedNumbers
from hynt.graph.content_hash import Hashes, question_keys
from hynt.graph.fact_table import ENTITY_KIND, RELATION_KIND, component_starts
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.vocabulary import Flags, Floats, Ids, begins, spread
from hynt.runs.opening import LoadedRun
from hynt.runs.place import whole_run
from hynt.runs.scoring import ReadTile, SaidNumbers, read_tiles, with_stored_literals


@dataclass(frozen=True, eq=False)
class QuestionBatch:
    """Some questions to one run; all of them at places that the model answers."""

    loaded: LoadedRun
    device: torch.device
    calibration: Calibration
    known: KnownAnswers
    asked: AskedFacts
    fold: Ids | None = None  # (rows,) of the asked table, where stored facts are asked about: see `read_tiles`

    def ranked(self, allowed: CandidateMasks, top: int, named: Standing | None = None) -> RankedColumns:
        """The best `top` candidates of each question for an entity or a relation; and where the answers `named` stand
        among them.
        """
        count = len(self.asked)
        found = RankedParts(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_))
        for kind in (ENTITY_KIND, RELATION_KIND):
            chosen = np.flatnonzero((self.asked.kind == kind) & ~self.asked.is_tried).astype(np.int64)
            if len(chosen):
                self._rank(chosen, kind, allowed, top, found, named)
        tried = np.flatnonzero(self.asked.is_tried).astype(np.int64)
        if len(tried):
            self._rank_tried(tried, allowed, top, found, named)
        return found.columns()

    def numbers(self, chosen: Ids, level: float, *, extrapolating: bool = False) -> NumberColumns:
        """The answers to these questions (n,), each for a number, with intervals of this level; `extrapolating`: also
        for dates far beyond all that training has, where nobody has checked them.
        """
        relation, scaling = self.asked.relation[chosen], self.loaded.scaling
        said = SaidNumbers(np.zeros(len(chosen)))
        rows, position = self.asked.rows[chosen], self.asked.position[chosen]
        self._read(rows, position, said.add)
        with np.errstate(over="ignore", invalid="ignore"):
            value = scaling.unscale(relation, said.scaled)
        low, high, radii, width = value, value, self.calibration.radii, np.zeros(len(chosen))
        has_interval = is_own = np.zeros(len(chosen), dtype=np.bool_)
        if radii is not None:
            row, reach = radii.at(level), None
            if radii.scale is not None:
                asked = AskedNumbers.of(self.asked.table, rows, position, relation, said, radii.scale.spread)
                reach = radii.reach(asked)
            low, high = radii.ends(scaling, relation, said.scaled, level, reach)
            has_interval = np.isfinite(radii.radius[row, relation]) & np.isfinite(low) & np.isfinite(high)
            # What was measured on held-out questions promises nothing about one that is unlike all of them.
            usual = self.loaded.usual_qualifiers
            has_interval &= ~usual.is_unusual(self.asked.table, rows, position)
            has_interval &= ~self.loaded.entity_kinds.is_unlike(self.asked.table, rows, position)
            has_interval &= extrapolating | ~usual.is_beyond(self.asked.table, rows, position)
            width[has_interval] = high[has_interval] - low[has_interval]
            width = np.where(radii.ends_at_zero[relation] & (value < 0), np.inf, width)
            low, high = radii.cut(relation, value, low, high)
            is_own = radii.is_own[row, relation]
        possible = self.loaded.possible_numbers
        value = possible.nearest(relation, value)
        low, high = possible.interval(relation, value, low, high)
        known = self.known.numbers.lookup(self._keys(self.asked.rows[chosen], self.asked.position[chosen]))
        return NumberColumns(value, low, high, width, has_interval, is_own, known, np.isfinite(value))

    # ------------------------------------------------------------------ how

    def _rank(
        self, chosen: Ids, kind: int, allowed: CandidateMasks, top: int, found: RankedParts, named: Standing | None
    ) -> None:
        rows, position, index = self.asked.rows[chosen], self.asked.position[chosen], self.known.of_kind(kind)
        inverse_temperature = self._inverse_temperature(task_of(kind), position, self.asked.relation[chosen])
        told_by_answer = kind == RELATION_KIND and self.calibration.relations.get("relation")
        start, size = index.spans(self._keys(rows, position))

        def may(which: Ids) -> Callable[[int, int], Tensor | None]:
            """For the questions of a tile, which candidates of a chunk are allowed."""
            row, slots = spread(start[which], np.where(allowed.only_unknown[chosen[which]], size[which], 0))
            known = index.known.answers[slots].astype(np.int64)
            held_row, held = allowed.held_by(chosen[which])
            row, known = np.concatenate([row, held_row]), np.concatenate([known, held])

            def within(first: int, end: int) -> Tensor | None:
                mask = allowed.mask(chosen[which], first, end, self.device)
                inside = (known >= first) & (known < end)
                if not inside.any():
                    return mask
                if mask is None:
                    mask = torch.ones(len(which), end - first, dtype=torch.bool, device=self.device)
                at = torch.from_numpy(np.stack([row[inside], known[inside] - first])).to(self.device)
                mask[at[0], at[1]] = False
                return mask

            return within

        answers: list[tuple[Ids, Ids, Floats, Floats]] = []  # a tile's questions, candidates, probabilities, scores

        def work(tile: ReadTile) -> None:
            chunks = _Chunks(tile, kind)
            beta, real = inverse_temperature[torch.from_numpy(tile.repeated).to(self.device)], len(tile.which)
            if told_by_answer:
                first = best_candidates(chunks, may(tile.repeated), 1.0, 1).candidate[:, 0].cpu().numpy()
                beta = self._inverse_temperature(task_of(kind), position[tile.repeated], first)
            best = best_candidates(chunks, may(tile.repeated), beta, top)
            if named is not None:
                these, row = named.of_questions(chosen[tile.which])
                if len(these):
                    stands = _standing(chunks, may(tile.repeated), best.total, beta)
                    named.put(these, *stands(row, named.candidate[these]))
            score = best.score[:real].double()
            probability = torch.exp(score * beta[:real] - best.total[:real, None]).cpu().numpy()
            shown = score.cpu().numpy()
            kept = np.isfinite(shown)
            owner = np.repeat(tile.which, kept.sum(axis=1))
            answers.append((owner, best.candidate[:real].cpu().numpy()[kept], probability[kept], shown[kept]))
            found.count[chosen[tile.which]] = best.count[:real].cpu().numpy()
            found.is_finite[chosen[tile.which]] = best.is_finite[:real].cpu().numpy()

        self._read(rows, position, work)
        owner, candidate, probability, score = (np.concatenate(column) for column in zip(*answers, strict=True))
        splits = splits_of(index, start[owner], size[owner], candidate)
        found.add(chosen[owner], candidate, probability, score, splits)

    def _rank_tried(
        self, chosen: Ids, allowed: CandidateMasks, top: int, found: RankedParts, named: Standing | None
    ) -> None:
        rows = self.asked.rows_of(chosen)
        owner = self.asked.owners()[rows]
        position = self.asked.position[owner]
        relation = self.asked.relation_in_blank(rows, position)
        judged = JudgedRelations.empty(relation)
        # Rows are weighed against one another, so none has a temperature of its own.
        self._read(rows, position, judged.judging(self._inverse_temperature(task_of(RELATION_KIND), position, None)))
        index = self.known.relations
        splits = splits_of(index, *index.spans(self._keys(rows, position)), relation)
        may = allowed.holds(owner, relation) & ~(allowed.only_unknown[owner] & (splits > 0))
        may &= ~allowed.is_held(owner, relation)
        found.count[chosen] = np.bincount(owner[may], minlength=len(self.asked))[chosen]
        found.is_finite[owner[~judged.is_finite]] = False
        if named is not None:
            at, probability = judged.first(owner, may, len(rows))
            rank = np.arange(len(at)) - np.searchsorted(owner[at], owner[at]) + 1
            for one, question, candidate in zip(
                *(column.tolist() for column in (np.arange(len(named.rank)), named.question, named.candidate)),
                strict=True,
            ):
                here = np.flatnonzero((owner[at] == question) & (relation[at] == candidate))[:1]
                named.put(np.full(len(here), one), np.ones(len(here), np.bool_), rank[here], probability[here])
        at, probability = judged.first(owner, may, top)
        found.add(owner[at], relation[at], probability, judged.score[at], splits[at])

    def _read(self, rows: Ids, position: Ids, work: Callable[[ReadTile], None]) -> None:
        table = with_stored_literals(self.asked.table.take(rows), self.loaded)
        each, fold = np.arange(len(rows), dtype=np.int64), None if self.fold is None else self.fold[rows]
        with whole_run():  # a number that the run's scale cannot take is the question's fault, not the data's
            read_tiles(self.loaded, table, each, position, self.device, work, fold=fold)

    def _inverse_temperature(self, task: str, position: Ids, relation: Ids | None) -> Tensor:
        """(n, 1) float64 what the scores of questions that hide these positions (n,) are multiplied by."""
        found = self.calibration.inverse_temperatures(task, position, relation)
        return torch.from_numpy(found).to(self.device)[:, None]

    def _keys(self, rows: Ids, position: Ids) -> Hashes:
        """(k, 2) the keys of the questions that hide a component of each of these rows."""
        table = self.asked.table.take(rows)
        keys: Hashes = question_keys(table, self.known.relation_is_number)[component_starts(table)[:-1] + position]
        return keys


def task_of(kind: int) -> str:
    """The task whose temperature a ranked kind of answer has."""
    return "relation" if kind == RELATION_KIND else "link"


# The best candidates of a tile of questions, and the sum that makes their scores probabilities.
#
# Candidates come in chunks, and of each chunk only the best are kept: all scores are never held at once. Everything is
# done on whole tiles of one shape, so a question's result does not depend on what it is asked together with.


class _Chunks:
    """The chunks of a tile's scores, to be looked at more than once; where there is only one, it is made once."""

    def __init__(self, tile: ReadTile, kind: int) -> None:
        self._make = tile.entity_chunks if kind == ENTITY_KIND else tile.relation_chunks
        few = kind != ENTITY_KIND or tile.model.sizes.entities <= tile.chunk
        self._kept = list(self._make()) if few else None

    def __iter__(self) -> Iterator[tuple[int, Tensor]]:
        return self._make() if self._kept is None else iter(self._kept)


def _standing(
    chunks: Iterable[tuple[int, Tensor]], allowed: Allowed, total: Tensor, inverse_temperature: Tensor
) -> Callable[[Ids, Ids], tuple[Flags, Ids, Floats]]:
    """For rows (k,) and a candidate of each: whether it may be answered, its rank and its probability."""

    def stand(row: Ids, candidate: Ids) -> tuple[Flags, Ids, Floats]:
        rows, answers = (torch.from_numpy(one).to(total.device) for one in (row, candidate))
        own = torch.full((len(row),), -torch.inf, device=total.device)
        for first, scores in chunks:
            mask = allowed(first, first + scores.shape[1])
            inside = (answers >= first) & (answers < first + scores.shape[1])
            if mask is not None:
                inside &= mask[rows, (answers - first).clamp(0, scores.shape[1] - 1)]
            own = torch.where(inside, scores[rows, (answers - first).clamp(0, scores.shape[1] - 1)], own)
        rank = torch.ones_like(answers)
        for first, scores in chunks:
            mask, here = allowed(first, first + scores.shape[1]), scores[rows]
            earlier = torch.arange(first, first + scores.shape[1], device=total.device) < answers[:, None]
            better = (here > own[:, None]) | ((here == own[:, None]) & earlier)
            rank += torch.count_nonzero(better if mask is None else better & mask[rows], dim=1)
        probability = torch.exp(own.double() * inverse_temperature[rows, 0] - total[rows])
        return torch.isfinite(own).cpu().numpy(), rank.cpu().numpy(), probability.cpu().numpy()

    return stand


Allowed = Callable[[int, int], Tensor | None]
"""(first, end) → (rows, end − first) bool, which of the candidates first … end − 1 may be answered; None: all."""

_AT_ONCE = 1 << 23
"""How many scores are widened to double precision together."""


@dataclass(frozen=True, eq=False)
class BestCandidates:
    """The `k` best candidates of each of `rows` questions."""

    candidate: Tensor  # (rows, k) int64 best first; of equal ones the one with the smaller id first
    score: Tensor  # (rows, k) float32; −∞ where fewer than k candidates were allowed
    total: (
        Tensor  # (rows,) float64 logarithm of the sum of exp(score · inverse_temperature) over the allowed candidates
    )
    count: Tensor  # (rows,) int64 how many were allowed
    is_finite: Tensor  # (rows,) bool whether every score was a finite number, allowed or not


def best_candidates(
    chunks: Iterable[tuple[int, Tensor]], allowed: Allowed, inverse_temperature: Tensor | float, top: int
) -> BestCandidates:
    """From (first, scores) chunks, (rows, width) float32 scores of the candidates first … first + width − 1, which are
    multiplied by `inverse_temperature`, (rows, 1) or one for all.
    """
    best: BestCandidates | None = None
    for start, whole in chunks:
        width = max(1, _AT_ONCE // max(1, whole.shape[0]))
        for first in range(0, whole.shape[1], width):
            scores = whole[:, first : first + width]
            place = start + first
            found = _of_chunk(scores, place, allowed(place, place + scores.shape[1]), inverse_temperature, top)
            best = found if best is None else _merged(best, found, top)
    assert best is not None  # a graph has an entity and a relation
    return best


def _of_chunk(
    scores: Tensor, first: int, allowed: Tensor | None, inverse_temperature: Tensor | float, top: int
) -> BestCandidates:
    lowest, highest = torch.aminmax(scores, dim=1)  # both are NaN where any score is
    is_finite = torch.isfinite(lowest) & torch.isfinite(highest)
    count = torch.full_like(lowest, scores.shape[1], dtype=torch.int64)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
        count = torch.count_nonzero(allowed, dim=1)
    total = torch.logsumexp(scores.double() * inverse_temperature, dim=1)
    place, value = _first(scores, min(top, scores.shape[1]))
    return BestCandidates(place + first, value, total, count, is_finite)


def _first(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """(rows, top) the best columns, and their scores; of equal ones those with smaller numbers."""
    value, place = torch.topk(scores, top, dim=1, sorted=False)
    least = value.amin(dim=1, keepdim=True)
    tied = torch.nonzero(torch.count_nonzero(scores >= least, dim=1) > top).squeeze(1)
    if len(tied):  # the last places go to the first of those that tie for them
        few, bound = scores[tied], least[tied]
        above, equal = few > bound, few == bound
        room = top - torch.count_nonzero(above, dim=1)[:, None]
        chosen = above | (equal & (equal.cumsum(dim=1) <= room))
        place[tied] = torch.nonzero(chosen)[:, 1].reshape(len(tied), top)
        value[tied] = few.gather(1, place[tied])
    return _in_order(place, value)


def _in_order(place: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Best first, and smaller numbers first among equals."""
    place, order = torch.sort(place, dim=1)
    value, order = torch.sort(value.gather(1, order), dim=1, descending=True, stable=True)
    return place.gather(1, order), value


def _merged(one: BestCandidates, other: BestCandidates, top: int) -> BestCandidates:
    place, value = _in_order(torch.cat([one.candidate, other.candidate], 1), torch.cat([one.score, other.score], 1))
    return BestCandidates(
        place[:, :top],
        value[:, :top],
        torch.logaddexp(one.total, other.total),
        one.count + other.count,
        one.is_finite & other.is_finite,
    )


# Relations that were hidden beside a number: each is judged by the row that has the number on its own scale.


@dataclass(frozen=True, eq=False)
class JudgedRelations:
    """`r` rows, each with one relation that is tried there."""

    relation: Ids  # (r,)
    score: Floats  # (r,) the model's own
    logit: Floats  # (r,) the logarithm of the relation's probability among all relations, in its own row
    is_finite: NDArray[np.bool_]  # (r,) whether every score of the row was a finite number

    @classmethod
    def empty(cls, relation: Ids) -> JudgedRelations:
        """Room for the judgements of these relations, with every score still 0."""
        count = len(relation)
        return cls(relation, np.zeros(count), np.zeros(count), np.ones(count, dtype=np.bool_))

    def judging(self, inverse_temperature: Tensor) -> Callable[[ReadTile], None]:
        """What is done with each tile of rows: fills in the columns. `inverse_temperature` is (r, 1)."""

        def work(tile: ReadTile) -> None:
            ((_, scores),) = tile.relation_chunks()
            sharp = scores.double() * inverse_temperature[torch.from_numpy(tile.repeated).to(scores.device)]
            tried = torch.from_numpy(self.relation[tile.repeated]).to(scores.device)[:, None]
            logit = sharp.gather(1, tried).squeeze(1) - torch.logsumexp(sharp, dim=1)
            real, which = len(tile.which), tile.which
            self.score[which] = scores.gather(1, tried).squeeze(1)[:real].double().cpu().numpy()
            self.logit[which] = logit[:real].cpu().numpy()
            self.is_finite[which] = torch.isfinite(scores).all(dim=1)[:real].cpu().numpy()

        return work

    def first(self, owner: Ids, allowed: NDArray[np.bool_], top: int) -> tuple[Ids, Floats]:
        """The best `top` allowed rows of each question `owner` (r,), best first; and their probabilities (a,)."""
        rows = np.flatnonzero(allowed).astype(np.int64)
        if not len(rows):
            return rows, np.zeros(0)
        rows = rows[np.lexsort((self.relation[rows], -self.logit[rows], owner[rows]))]
        starts = np.flatnonzero(begins(owner[rows]))
        size = np.diff(np.append(starts, len(rows)))
        total = np.logaddexp.reduceat(self.logit[rows], starts)
        kept = np.arange(len(rows)) - np.repeat(starts, size) < top
        probability = np.exp(self.logit[rows] - np.repeat(total, size))
        return rows[kept], probability[kept]
