"""Questions in columns to answers in columns. One path for one question and for millions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.answer_columns import NumberColumns, RankedColumns, RankedParts, splits_of
from hynt.asking.asked_facts import AskedFacts
from hynt.asking.best_candidates import best_candidates
from hynt.asking.candidate_masks import AllowedAnswers
from hynt.asking.tried_relations import JudgedRelations
from hynt.calibration.calibration import Calibration
from hynt.graph.components import ENTITY_KIND, RELATION_KIND, component_starts
from hynt.graph.content_hash import Hashes
from hynt.graph.known_answers import AnswerIndex, KnownAnswers
from hynt.graph.question_keys import question_keys
from hynt.runs.opening import LoadedRun
from hynt.runs.run_graph import whole_run
from hynt.runs.scoring import ReadTile, read_tiles
from hynt.runs.stored_literals import with_stored_literals

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answering:
    """Some questions to one run; all of them at places that the model answers."""

    loaded: LoadedRun
    device: torch.device
    calibration: Calibration
    known: KnownAnswers
    asked: AskedFacts

    def ranked(self, allowed: AllowedAnswers, top: int) -> RankedColumns:
        """The best `top` candidates of each question for an entity or a relation."""
        count = len(self.asked)
        found = RankedParts(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_))
        for kind in (ENTITY_KIND, RELATION_KIND):
            chosen = np.flatnonzero((self.asked.kind == kind) & ~self.asked.is_tried).astype(np.int64)
            if len(chosen):
                self._rank(chosen, kind, allowed, top, found)
        tried = np.flatnonzero(self.asked.is_tried).astype(np.int64)
        if len(tried):
            self._rank_tried(tried, allowed, top, found)
        return found.columns()

    def numbers(self, chosen: Ids, level: float) -> NumberColumns:
        """The answers to these questions (n,), each for a number, with intervals of this level."""
        relation, scaling = self.asked.relation[chosen], self.loaded.scaling
        scaled = np.zeros(len(chosen))

        def work(tile: ReadTile) -> None:
            scaled[tile.which] = tile.numbers().cpu().numpy()

        self._read(self.asked.rows[chosen], self.asked.position[chosen], work)
        with np.errstate(over="ignore", invalid="ignore"):
            value = scaling.unscale(relation, scaled)
        low, high, radii = value, value, self.calibration.radii
        has_interval = is_own = np.zeros(len(chosen), dtype=np.bool_)
        if radii is not None:
            row = radii.at(level)
            low, high = radii.interval(scaling, relation, scaled, level)
            has_interval = np.isfinite(radii.radius[row, relation]) & np.isfinite(low) & np.isfinite(high)
            is_own = radii.is_own[row, relation]
        known = self.known.numbers.lookup(self._keys(self.asked.rows[chosen], self.asked.position[chosen]))
        return NumberColumns(value, low, high, has_interval, is_own, known, np.isfinite(value))

    # ------------------------------------------------------------------ how

    def _rank(self, chosen: Ids, kind: int, allowed: AllowedAnswers, top: int, found: RankedParts) -> None:
        sharpness, index = self.calibration.sharpness(task_of(kind)), self.known.of_kind(kind)
        rows, position = self.asked.rows[chosen], self.asked.position[chosen]
        start, size = index.spans(self._keys(rows, position))

        def may(which: Ids) -> Callable[[int, int], Tensor | None]:
            """For the questions of a tile, which candidates of a chunk are allowed."""
            row, known = _known_pairs(
                index, start[which], np.where(allowed.only_unknown[chosen[which]], size[which], 0)
            )

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
            chunks = tile.entity_chunks() if kind == ENTITY_KIND else tile.relation_chunks()
            best, real = best_candidates(chunks, may(tile.repeated), sharpness, top), len(tile.which)
            score = best.score[:real].double()
            probability = torch.exp(score * sharpness - best.total[:real, None]).cpu().numpy()
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

    def _rank_tried(self, chosen: Ids, allowed: AllowedAnswers, top: int, found: RankedParts) -> None:
        rows = self.asked.rows_of(chosen)
        owner = self.asked.owners()[rows]
        position = self.asked.position[owner]
        relation = self.asked.relation_in_hole(rows, position)
        judged = JudgedRelations.empty(relation)
        self._read(rows, position, judged.judging(self.calibration.sharpness(task_of(RELATION_KIND))))
        index = self.known.relations
        splits = splits_of(index, *index.spans(self._keys(rows, position)), relation)
        may = allowed.holds(owner, relation) & ~(allowed.only_unknown[owner] & (splits > 0))
        found.count[chosen] = np.bincount(owner[may], minlength=len(self.asked))[chosen]
        found.is_finite[owner[~judged.is_finite]] = False
        at, probability = judged.first(owner, may, top)
        found.add(owner[at], relation[at], probability, judged.score[at], splits[at])

    def _read(self, rows: Ids, position: Ids, work: Callable[[ReadTile], None]) -> None:
        table = with_stored_literals(self.asked.table.take(rows), self.loaded)
        with whole_run():  # a number that the run's scale cannot take is the question's fault, not the data's
            read_tiles(self.loaded, table, np.arange(len(rows), dtype=np.int64), position, self.device, work)

    def _keys(self, rows: Ids, position: Ids) -> Hashes:
        """(k, 2) the keys of the questions that hide a component of each of these rows."""
        table = self.asked.table.take(rows)
        keys: Hashes = question_keys(table, self.known.relation_is_number)[component_starts(table)[:-1] + position]
        return keys


def task_of(kind: int) -> str:
    """The task whose temperature a ranked kind of answer has."""
    return "relation" if kind == RELATION_KIND else "link"


def _known_pairs(index: AnswerIndex, start: Ids, size: Ids) -> tuple[Ids, Ids]:
    """(p,) rows and (p,) known answers, of rows whose known answers start at `start` and are `size` many."""
    shift = np.repeat(start - (np.cumsum(size) - size), size)
    slots = shift + np.arange(int(size.sum()), dtype=np.int64)
    return np.repeat(np.arange(len(size), dtype=np.int64), size), index.known.answers[slots].astype(np.int64)
