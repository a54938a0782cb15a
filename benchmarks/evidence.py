"""What papers leave out, of a run that was just trained: how it does by number of qualifiers and on facts whose triplet
training has, whether its probabilities and intervals hold what they promise, whether it needs the numbers it reads, and
the outcome of every question, so that two rows can be compared in pairs.

`benchmarks.reproduce --evidence` puts it into each row; the tables `qualifiers`, `leakage`, `calibration`, `literals`
and `differences` of `benchmarks.paper` print it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from benchmarks.result_file import Outcomes
from hynt.errors import HyntError
from hynt.evaluation.results import Evaluation, RankedQuestions
from hynt.graph.fact_table import FIRST_QUALIFIER
from hynt.reporting.report.measurements import breakdowns_of
from hynt.runs.opening import LoadedRun

GROUPINGS = ("qualifiers", "leakage", "position")


def from_answers(loaded: LoadedRun, found: Evaluation) -> dict[str, Any]:
    """Breakdowns and outcomes, from the answers there are: nothing is asked again."""
    outcomes = {}
    for task, questions in found.per_question.items():
        value = questions.rank() if isinstance(questions, RankedQuestions) else questions.mean_error
        outcomes[task] = Outcomes(questions.row, questions.position < FIRST_QUALIFIER, value).packed()
    return {"breakdowns": breakdowns_of(found, loaded, GROUPINGS), "outcomes": outcomes}


def from_asking(folder: Path, device: torch.device) -> dict[str, Any]:
    """Calibration, fitted on valid and measured on test; and links where the numbers that are read are others'. What
    fails is told: the row is there already.
    """
    try:
        return {"calibration": calibration(folder, device) | without_its_numbers(folder, device)}
    except (HyntError, RuntimeError, ValueError, MemoryError, AssertionError) as problem:
        return {"calibration": {"failed": str(problem)}}


def calibration(folder: Path, device: torch.device) -> dict[str, Any]:
    """The error of the probabilities of first answers before and after, and what 90 % intervals cover."""
    from hynt.calibration.measuring import LEVEL, measure
    from hynt.front.run import load

    predictor = load(folder, device.type)
    if predictor.calibration.missing:
        return {"missing": predictor.calibration.missing}
    found, told = measure(predictor.loaded, predictor.calibration, "test", device), dict[str, Any]()
    for task in ("link", "relation"):
        if task in found:
            names = ("calibration_error_before", "calibration_error_after", "questions")
            told[task] = {name.removeprefix("calibration_error_"): found[task][name] for name in names}
    if "number" in found:
        told["number"] = {"level": LEVEL}
        for scope, one in {"all": found["number"], "triplet": found["number"].get("triplet")}.items():
            if one is None:
                continue
            at_level = one["levels"][f"{LEVEL:g}"]
            told["number"][scope] = {name: at_level[name] for name in ("coverage", "mean_width")}
            told["number"][scope]["questions"] = one["questions"]
    return told


def without_its_numbers(folder: Path, device: torch.device) -> dict[str, Any]:
    """Link MRR where every number that the run reads is another fact's; nothing for a model that reads none."""
    from hynt.front.run import Run

    run = Run(folder, device.type)
    reads = {part.value for part in run.loaded.trained.reads}
    if "numbers" not in reads or not run.graph.vocabulary.relation_is_number.any():
        return {}
    found = run.evaluate("test", tasks="link", references=False, shuffle_literals=True).to_dict()["link"]
    return {"shuffled_literals": {scope: found[scope]["mrr"] for scope in ("triplet", "all")}}
