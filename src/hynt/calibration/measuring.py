"""Whether the calibration keeps its word on a split it was not fitted on: calibration error, coverage, width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.calibration.calibration import RANKED, Calibration
from hynt.calibration.held_out import NumberReading, held_out, read_numbers
from hynt.calibration.intervals import LEVELS, Radii
from hynt.calibration.temperature import FirstAnswers
from hynt.graph.fact_table import TAIL, concatenate
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Ids
from hynt.runs.opening import LoadedRun

LEVEL = 0.9
"""Of the intervals that are told relation by relation."""


def measure(loaded: LoadedRun, calibration: Calibration, split: str, device: torch.device) -> dict[str, Any]:
    """Calibration error before and after for links and relations; coverage and mean width for numbers, in all and
    relation by relation.
    """
    found: dict[str, Any] = {}
    for task in RANKED:
        groups = held_out(loaded, split, task, device)
        if not groups or task not in calibration.tasks:
            continue
        before = {name: one.first_answers(1.0) for name, one in groups.items()}
        after = {
            name: one.first_answers(calibration.inverse_temperatures(task, one.position, one.relation))
            for name, one in groups.items()
        }
        found[task] = _errors(FirstAnswers.joined([*before.values()]), FirstAnswers.joined([*after.values()])) | {
            "questions": sum(map(len, groups.values())),
            "of": sum(one.total for one in groups.values()),
            "positions": {
                name: _errors(before[name], after[name]) | {"questions": len(one), "of": one.total}
                for name, one in groups.items()
            },
        }
    numbers = read_numbers(loaded, split, device)
    if numbers is not None and calibration.radii is not None:
        relations = per_relation(loaded, calibration.radii, numbers, LEVEL)
        found["number"] = coverage(loaded, calibration.radii, numbers) | {"level": LEVEL, "relations": relations}
    return found


def _errors(before: FirstAnswers, after: FirstAnswers) -> dict[str, Any]:
    return {"calibration_error_before": before.calibration_error, "calibration_error_after": after.calibration_error}


def coverage(loaded: LoadedRun, radii: Radii, numbers: NumberReading) -> dict[str, Any]:
    """For each level: the share of truths inside their interval, and the mean width on the linear min–max scale; of all
    questions, and in `triplet` of those whose number is a tail.

    Questions for which there is no interval at a level count as uncovered there, and are counted apart. Widths are
    told only of relations with at least two different numbers in training: the others have no scale.
    """
    told = _Covered(loaded, radii, numbers)
    tail = np.flatnonzero(numbers.questions.position == TAIL).astype(np.int64)
    whole = told.of(np.arange(len(numbers.questions)))
    return whole | ({"triplet": told.of(tail)} if len(tail) else {})


def per_relation(loaded: LoadedRun, radii: Radii, numbers: NumberReading, level: float) -> list[dict[str, Any]]:
    """Each relation that is asked for, most questions first: how its intervals of one level do."""
    told, found = _Covered(loaded, radii, numbers), []
    for relation in np.unique(numbers.questions.relation).tolist():
        one = told.of(np.flatnonzero(numbers.questions.relation == relation).astype(np.int64), (level,))
        at_level = one["levels"][f"{level:g}"]
        found.append(
            {
                "relation": loaded.graph.relations[relation].name,
                "questions": one["questions"],
                "coverage": at_level["coverage"],
                "mean_width": at_level["mean_width"],
                "own": bool(radii.is_own[radii.at(level), relation]),
                "values": int(radii.count[relation]),
            }
        )
    return sorted(found, key=lambda row: (-row["questions"], row["relation"]))


@dataclass(frozen=True, eq=False)
class _Covered:
    """Number questions beside their intervals."""

    loaded: LoadedRun
    radii: Radii
    numbers: NumberReading

    def of(self, chosen: Ids, levels: Sequence[float] = LEVELS) -> dict[str, Any]:
        """Of the questions `chosen` (n,), by their numbers."""
        radii, scaling, asked = self.radii, self.loaded.scaling, self.numbers.asked.take(chosen)
        relation, scaled, reach = asked.relation, asked.scaled, radii.reach(asked)
        predicted, true = self.numbers.questions.predicted[chosen], self.numbers.questions.truth[chosen]
        error = scaling.scale(relation, true) - scaled
        below, above = (1.0, 1.0) if reach is None else reach
        size = np.maximum(-error / below, error / above)
        everything = (np.full(len(true), -np.inf), np.full(len(true), np.inf))
        least, most = radii.cut(relation, predicted, *everything)
        cut_off = (true < least) | (true > most)
        found: dict[str, Any] = {}
        for level in levels:
            row = radii.at(level)
            radius = radii.radius[row, relation]
            known = np.isfinite(radius)
            inside = known & ~cut_off & (size <= radius)
            low, high = (end[known] for end in radii.interval(scaling, relation, scaled, level, reach))
            width = scaling.linear(relation[known], high) - scaling.linear(relation[known], low)
            width = width[self._has_range[relation[known]]]
            own = radii.is_own[row, relation]
            found[f"{level:g}"] = {
                "coverage": _mean(inside),
                "mean_width": _mean(width),
                "median_width": _median(width),
                "coverage_own": _mean(inside[own]),
                "coverage_shared": _mean(inside[~own]),
                "questions_own": int(own.sum()),
                "questions_shared": int((~own).sum()),
                "without": int((~known).sum()),
            }
        return {"questions": len(relation), "levels": found}

    @cached_property
    def _has_range(self) -> NDArray[np.bool_]:
        """(relations,) whether the splits that the run was trained on have different numbers of it."""
        graph = self.loaded.graph
        trained_on = concatenate([graph.split(name) for name in self.loaded.known_splits])
        numbers = sorted_numbers(trained_on, graph.vocabulary.relation_is_number)
        found = np.zeros(graph.vocabulary.relation_count, dtype=np.bool_)
        found[numbers.present] = numbers.value[numbers.start] < numbers.value[numbers.start + numbers.size - 1]
        return found


def _mean(values: np.ndarray[Any, Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _median(values: np.ndarray[Any, Any]) -> float | None:
    return float(np.median(values)) if len(values) else None
