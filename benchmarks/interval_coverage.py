"""Whether finished runs keep their word on a held-out split: calibration error, and coverage and width of intervals.

    PYTHONPATH=src python3 -m benchmarks.interval_coverage RUN … --device cuda --out coverage.json

What one split covers depends on which numbers fell into it. `halves` says how much: the numbers of valid and the split
are halved at random, the radii are fitted on one half and measured on the other, again and again. With `--split valid`
no other split is looked at.

`thirds` does the same with valid alone, and asks what widths are worth: in each third of the questions, the easiest
first by how far the intervals made for them reach beside the spread of their relation, what they cover and how wide
they are, beside intervals of one width for each relation, with and without the same furthest ends. The score is that of
Winkler (1972): the width, and, of a truth outside, twenty times how far it lies outside. It is lowest where the true
quantiles are told, so that neither wide intervals nor giving hard questions up make it better. With `--only-thirds`
nothing else is measured, and no other split is read.

A run that has no calibration yet is calibrated on its validation split first, which is kept in it. Each reading of the
split is counted in the run. With `--require LOW HIGH` the command fails unless every coverage lies between the two.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.result_file import write_measured
from hynt import __version__
from hynt.asking.predictor import Predictor
from hynt.calibration.held_out import SPLIT, NumberReading, read_numbers
from hynt.calibration.intervals import (
    ENOUGH,
    fit_conditional_radii,
    fit_radii,
    furthest_ends,
    never_negative,
    training_edges,
    training_spread,
)
from hynt.calibration.measuring import LEVEL, coverage, measure
from hynt.calibration.reach import AskedNumbers, ResidualScale
from hynt.errors import HyntError
from hynt.front.run import load
from hynt.runs.opening import LoadedRun


def measured(predictor: Predictor, split: str, *, only_thirds: bool = False) -> dict[str, Any]:
    """What is known of one run, for JSON."""
    loaded, began = predictor.loaded, time.monotonic()
    told: dict[str, Any] = {"run": loaded.run.path.name, "graph": loaded.graph.name, **loaded.described()}
    if only_thirds:
        told["thirds"] = thirds(loaded, read_numbers(loaded, SPLIT, predictor.device))
        return told | {"split": SPLIT, "seconds": round(time.monotonic() - began, 2)}
    calibration = predictor.calibration
    if calibration.missing:
        return told | {"not_calibrated": calibration.missing}
    told |= {"split": split, "reads_of_split": loaded.run.count_read(split)}
    told["valid"] = {task: dict(found) for task, found in calibration.tasks.items()}
    told["measured"] = measure(loaded, calibration, split, predictor.device)
    readings = {name: read_numbers(loaded, name, predictor.device) for name in dict.fromkeys((SPLIT, split))}
    told["halves"] = halves(predictor, readings)
    told["thirds"] = thirds(loaded, readings[SPLIT])
    told["one_width_each"] = one_width_each(predictor, readings[SPLIT], readings[split])
    return told | {"seconds": round(time.monotonic() - began, 2)}


TIMES = 50
"""How often splits are halved."""
HELD_OUT = {"0": (0, 1), "1 to 9": (1, 10), "10 to 29": (10, ENOUGH)}
"""Relations without a radius of their own, by how many of their numbers were there to fit on."""


def halves(
    predictor: Predictor, readings: dict[str, NumberReading | None], times: int = TIMES
) -> dict[str, Any] | None:
    """Valid and the split halved at random: coverage and mean width of all, and by how many numbers of their relation
    the fitted half had; means, and how far they stray.
    """
    loaded, fitted = predictor.loaded, predictor.calibration.radii
    found = [one for one in readings.values() if one is not None]
    if not found or fitted is None or fitted.scale is None:
        return None
    scaling, random = loaded.scaling, np.random.default_rng(0)
    nothing = ResidualScale.none(fitted.scale.vocabulary, fitted.scale.edges, fitted.scale.spread)
    asked = AskedNumbers.joined([one.asked for one in found])
    truth = np.concatenate([one.questions.truth for one in found])
    rows = []
    for _ in range(times):
        fitted_on, left = _halved(random.random(len(truth)) < 0.5)
        on = asked.take(fitted_on)
        made = fit_conditional_radii(on, scaling.scale(on.relation, truth[fitted_on]), nothing)
        radii, rest = replace(made, ends_at_zero=fitted.ends_at_zero, limits=fitted.limits), asked.take(left)
        low, high = radii.interval(scaling, rest.relation, rest.scaled, LEVEL, radii.reach(rest))
        with np.errstate(invalid="ignore"):
            width = scaling.linear(rest.relation, high) - scaling.linear(rest.relation, low)
        count, has_width = radii.count[rest.relation], width < _WIDEST
        row = []
        for least, most in ((0, np.inf), (ENOUGH, np.inf), (0, ENOUGH), *HELD_OUT.values()):
            of_sort = (least <= count) & (count < most) & np.isfinite(radii.radius[radii.at(LEVEL), rest.relation])
            inside = (low <= truth[left]) & (truth[left] <= high)
            row += [_mean(inside[of_sort]), _mean(width[of_sort & has_width])]
        rows.append(row)
    marks = [_spread_of(column) for column in np.array(rows).T]
    told = dict(zip(("coverage", "width", "own", "own_width", "shared", "shared_width"), marks, strict=False))
    by_count = {
        name: {"coverage": marks[at], "width": marks[at + 1]} for name, at in zip(HELD_OUT, (6, 8, 10), strict=True)
    }
    return {"times": times, **told, "by_numbers_fitted_on": by_count}


_WIDEST = 50.0
"""In training ranges; relations with one number in training have no range to measure by."""


def thirds(loaded: LoadedRun, numbers: NumberReading | None, times: int = 20) -> dict[str, Any] | None:
    """Validation numbers halved at random: intervals made for the question and those of one width for each relation,
    of all questions and of each third of them; means, and how far they stray.
    """
    if numbers is None:
        return None
    graph, scaling, random = loaded.graph, loaded.scaling, np.random.default_rng(0)
    tables = [graph.split(name) for name in loaded.known_splits]
    spread, edges = training_spread(graph, tables, scaling), training_edges(graph, tables, scaling)
    nothing, limits = ResidualScale.none(graph.vocabulary, edges, spread), furthest_ends(graph, tables, scaling)
    truth, ends = numbers.questions.truth, never_negative(graph.vocabulary, tables)
    rows: dict[str, list[list[float]]] = {}
    for _ in range(times):
        fitted_on, left = _halved(random.random(len(truth)) < 0.5)
        on, rest, true = numbers.asked.take(fitted_on), numbers.asked.take(left), truth[left]
        known = scaling.scale(on.relation, truth[fitted_on])
        least, most = limits[:, on.relation]
        is_beyond = (truth[fitted_on] < least) | (truth[fitted_on] > most)
        conditional = fit_conditional_radii(on, known, nothing, is_beyond)
        one = replace(fit_radii(on.relation, np.abs(known - on.scaled), spread), ends_at_zero=ends)
        kinds = {
            "for_the_question": replace(conditional, ends_at_zero=ends, limits=limits),
            "one_width_each": one,
            "one_width_each_same_ends": replace(one, limits=limits),
        }
        reach = conditional.reach(rest)
        assert reach is not None  # a scale was given
        far = sum(reach) / spread[rest.relation]
        third = np.argsort(np.argsort(far, kind="stable")) * 3 // len(far)
        for name, radii in kinds.items():
            low, high = radii.interval(scaling, rest.relation, rest.scaled, LEVEL, radii.reach(rest))
            inside = (low <= true) & (true <= high)
            with np.errstate(over="ignore", invalid="ignore"):
                low, high, value = (scaling.linear(rest.relation, end) for end in (low, high, true))
                outside = np.maximum(np.maximum(low - value, value - high), 0.0)
                width, score = high - low, high - low + 2.0 / (1.0 - LEVEL) * outside
            has_width = width < _WIDEST
            row = [float(np.median(width[has_width])) if has_width.any() else np.nan, _mean(score[has_width])]
            for part in (has_width, *(has_width & (third == place) for place in range(3))):
                row += [_mean(inside[part]), _mean(width[part])]
            rows.setdefault(name, []).append(row)
    told: dict[str, Any] = {"times": times, "questions": len(truth)}
    for name, found in rows.items():
        marks = [_spread_of(column) for column in np.array(found).T]
        each = [{"coverage": marks[at], "width": marks[at + 1]} for at in (4, 6, 8)]
        told[name] = dict(zip(("median_width", "score", "coverage", "width"), marks, strict=False)) | {"thirds": each}
    return told


def one_width_each(
    predictor: Predictor, fitted_on: NumberReading | None, asked: NumberReading | None
) -> dict[str, Any] | None:
    """What intervals of one width for each relation, uncut, would have come to: those of 0.1.0."""
    loaded, radii = predictor.loaded, predictor.calibration.radii
    if fitted_on is None or asked is None or radii is None or radii.scale is None:
        return None
    truth = loaded.scaling.scale(fitted_on.asked.relation, fitted_on.questions.truth)
    old = fit_radii(fitted_on.asked.relation, np.abs(truth - fitted_on.asked.scaled), radii.scale.spread)
    found: dict[str, Any] = coverage(loaded, replace(old, ends_at_zero=radii.ends_at_zero), asked)["levels"][
        f"{LEVEL:g}"
    ]
    return found


def _halved(chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.flatnonzero(chosen).astype(np.int64), np.flatnonzero(~chosen).astype(np.int64)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _spread_of(values: NDArray[np.float64]) -> dict[str, float] | None:
    known = values[np.isfinite(values)]
    return {"mean": float(known.mean()), "deviation": float(known.std())} if len(known) else None


def line(told: dict[str, Any]) -> str:
    """One run for people: each scope's coverage, and each task's calibration error."""
    if "not_calibrated" in told:
        return f"{told['run']} ({told['graph']}): not calibrated, {told['not_calibrated']}"
    parts = []
    for scope, found in scopes(told).items():
        one = found["levels"][f"{LEVEL:g}"]
        width = "none" if one["mean_width"] is None else f"{one['mean_width']:.3f}"
        parts.append(f"{scope} {one['coverage']:.4f} of {found['questions']:,}, mean width {width}")
    if told.get("one_width_each"):
        parts.append(f"with one width for each relation {told['one_width_each']['mean_width']:.3f}")
    if told.get("thirds"):
        for name, words in (("for_the_question", "on halves of valid"), ("one_width_each", "with one width each")):
            one = told["thirds"][name]
            covered = ", ".join(f"{part['coverage']['mean']:.3f}" for part in one["thirds"] if part["coverage"])
            parts.append(f"{words}: score {one['score']['mean']:.3f}, by thirds {covered}")
    for task in ("link", "relation"):
        if task in told.get("measured", {}):
            error = told["measured"][task]
            before, after = error["calibration_error_before"], error["calibration_error_after"]
            parts.append(f"{task} calibration error {before:.4f} to {after:.4f}")
    return f"{told['run']} ({told['graph']}, {told['split']}): " + "; ".join(parts)


def scopes(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was measured of all numbers, and of those of triplets."""
    numbers = told.get("measured", {}).get("number")
    if numbers is None:
        return {}
    return {"all": numbers} | ({"triplet": numbers["triplet"]} if "triplet" in numbers else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--split", default="test")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only-thirds", action="store_true")
    parser.add_argument("--require", type=float, nargs=2, metavar=("LOW", "HIGH"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    result: dict[str, Any] = {"hynt": __version__, "torch": torch.__version__, "level": LEVEL, "runs": []}
    outside = 0
    for path in given.runs:
        try:
            predictor = load(path, given.device, lambda text: print(text, file=sys.stderr, flush=True))
            told = measured(predictor, given.split, only_thirds=given.only_thirds)
        except HyntError as problem:
            told = {"run": path.name, "error": str(problem)}
            print(f"{path.name}: {problem}", file=sys.stderr, flush=True)
            outside += 1
        else:
            on_gpu = predictor.device.type == "cuda"
            result["device"] = torch.cuda.get_device_name() if on_gpu else "cpu"
            print(line(told), file=sys.stderr, flush=True)
            if given.require and "all" in scopes(told):
                low, high = given.require
                outside += not low <= scopes(told)["all"]["levels"][f"{LEVEL:g}"]["coverage"] <= high
        result["runs"].append(told)
        if given.out is not None:  # after each run: what is measured is not lost with what follows
            write_measured(given.out, result, str(__doc__))
    if given.out is None:
        print(json.dumps(result, indent=1, ensure_ascii=False))
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
