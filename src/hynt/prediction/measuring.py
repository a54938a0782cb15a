"""Whether the calibration keeps its word on a split it was not fitted on: calibration error, coverage, width."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.evaluation.results import NumberQuestions
from hynt.graph.fact_table import concatenate
from hynt.graph.number_summary import sorted_numbers
from hynt.prediction.calibration import RANKED, Calibration, number_questions
from hynt.prediction.held_out import held_out
from hynt.prediction.intervals import LEVELS, Radii
from hynt.training.loading import LoadedRun
from hynt.training.training_data import training_splits

Ids = NDArray[np.int64]


def measure(loaded: LoadedRun, calibration: Calibration, split: str, device: torch.device) -> dict[str, Any]:
    """Calibration error before and after for links and relations; coverage and mean width for numbers."""
    found: dict[str, Any] = {}
    for task in RANKED:
        questions = held_out(loaded, split, task, device)
        if questions is None or task not in calibration.tasks:
            continue
        before, after = (questions.first_answers(one).calibration_error for one in (1.0, calibration.sharpness(task)))
        found[task] = {
            "questions": len(questions), "of": questions.total,
            "calibration_error_before": before, "calibration_error_after": after,
        }  # fmt: skip
    numbers = number_questions(loaded, split, device)
    if numbers is not None and calibration.radii is not None:
        found["number"] = coverage(loaded, calibration.radii, numbers)
    return found


def coverage(loaded: LoadedRun, radii: Radii, numbers: NumberQuestions) -> dict[str, Any]:
    """For each level: the share of truths inside their interval, and the mean width on the linear min–max scale.

    Questions for which there is no interval at a level count as uncovered there, and are counted apart. Widths are
    told only of relations with at least two different numbers in training: the others have no scale.
    """
    relation = numbers.relation
    scaled = loaded.scaling.scale(relation, numbers.predicted)
    truth = loaded.scaling.scale(relation, numbers.truth)
    ranged = np.isin(relation, _with_a_range(loaded))
    levels: dict[str, Any] = {}
    for row, level in enumerate(LEVELS):
        radius = radii.radius[row, relation]
        known = np.isfinite(radius)
        inside = known & (np.abs(truth - scaled) <= radius)
        low, high = radii.interval(loaded.scaling, relation[known], scaled[known], level)
        width = loaded.scaling.linear(relation[known], high) - loaded.scaling.linear(relation[known], low)
        width = width[ranged[known]]
        own = radii.is_own[row, relation]
        levels[f"{level:g}"] = {
            "coverage": _mean(inside), "mean_width": _mean(width), "median_width": _median(width),
            "coverage_own": _mean(inside[own]), "coverage_shared": _mean(inside[~own]),
            "questions_own": int(own.sum()), "questions_shared": int((~own).sum()),
            "without": int((~known).sum()),
        }  # fmt: skip
    return {"questions": len(numbers), "levels": levels}


def _with_a_range(loaded: LoadedRun) -> Ids:
    """The relations with different numbers in the splits that the run was trained on."""
    trained_on = concatenate([loaded.graph.split(name) for name in training_splits(loaded.settings)])
    numbers = sorted_numbers(trained_on, loaded.graph.vocabulary.relation_is_number)
    has_range = numbers.value[numbers.start] < numbers.value[numbers.start + numbers.size - 1]
    return np.asarray(numbers.present[has_range])


def _mean(values: np.ndarray[Any, Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _median(values: np.ndarray[Any, Any]) -> float | None:
    return float(np.median(values)) if len(values) else None
