"""Everything a report says about how good a run is, measured once and kept in the run as `measurements-SPLIT.json`.

A held-out split is read, and counted as read, only when nothing is kept: a report can be made again, and a page can
show the figures, without another look at the test split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hynt.asking.predictor import Predictor
from hynt.batches.fact_tensors import FactTensors
from hynt.calibration.measuring import coverage
from hynt.errors import DataError, UsageError
from hynt.evaluation import breakdowns
from hynt.evaluation.bootstrap import intervals
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.questions import SCOPES, TASKS
from hynt.evaluation.reference_rows import reference_rows
from hynt.evaluation.results import Evaluation, NumberQuestions
from hynt.reporting.report.certainty import first_ones, surest_and_least
from hynt.reporting.report.kept import SCHEMA_VERSION, Measurements, kept_measurements, measurements_path
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.hashed_files import index_text, write_atomically
from hynt.runs.opening import LoadedRun
from hynt.runs.run_graph import whole_run
from hynt.runs.training_data import training_splits, training_table

Asking = Callable[[int, int], None]


def measured(
    predictor: Predictor,
    split: str,
    *,
    again: bool = False,
    asking: Asking | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[Measurements, bool]:
    """The measurements of a split, and whether they were kept ones. New ones count as one reading of the split."""
    loaded = predictor.loaded
    refuse_split(loaded, split)
    weights = loaded.run.manifest["files"].get(WEIGHTS)
    kept = None if again else kept_measurements(loaded.run.path, split, weights)
    if kept is not None:
        return kept, True
    predictor.calibration  # noqa: B018 - made on first use, from valid: before the split asked for is touched
    with whole_run():
        reads = loaded.run.count_read(split)
    found: Measurements = {
        "schema_version": SCHEMA_VERSION,
        "weights": weights,
        "split": split,
        "reads_of_split": reads,
        **measure_all(predictor, split, reads, asking),
    }
    if weights is not None:
        try:
            write_atomically(measurements_path(loaded.run.path, split), index_text(found))
        except OSError as problem:
            note(f"the measurements cannot be kept in the run ({problem.strerror}); the next report reads again.")
    return found, False


def refuse_split(loaded: LoadedRun, split: str) -> None:
    """Refuses a split that the graph lacks, that is empty, or that the run was trained on."""
    if split in training_splits(loaded.settings):
        raise UsageError(
            f"the run was trained on {split}, so its answers there say nothing.",
            where="--split",
            advice="Choose another split.",
        )
    if not len(loaded.graph.split(split)):
        raise UsageError(f"the split {split} has no facts.", where="--split", advice="Choose another split.")


def measure_all(predictor: Predictor, split: str, reads: int, asking: Asking | None) -> Measurements:
    """Metrics with intervals, trivial rows, breakdowns, reliability, coverage, and the surest answers."""
    loaded = predictor.loaded
    evaluator = Evaluator(
        loaded.graph,
        loaded.scaling,
        split,
        TASKS,
        device=predictor.device,
        literals=loaded.literals,
        described=loaded.described() | {"reads_of_split": reads},
    )
    evaluation = evaluator.evaluate(loaded.model, asking)
    if not evaluation.per_question:
        raise DataError(
            f"the split {split} asks nothing that the model {loaded.settings.model_name!r} answers.",
            where=str(loaded.run.path),
            advice="Choose another split, or train a model that answers more.",
        )
    train = FactTensors.from_table(
        training_table(loaded.graph, loaded.settings), loaded.graph.vocabulary, loaded.scaling, evaluator.device
    )
    calibration, firsts = predictor.calibration, first_ones(predictor, split)
    numbers = evaluation.per_question.get("number")
    covered = None
    if isinstance(numbers, NumberQuestions) and calibration.radii is not None:
        covered = coverage(loaded, calibration.radii, numbers)
    return {
        "evaluation": evaluation.to_mapping(),
        "intervals": {
            task: {
                scope: {name: _finite(ends) for name, ends in intervals(questions, scope, evaluation.ties).items()}
                for scope in SCOPES
            }
            for task, questions in evaluation.per_question.items()
        },
        "references": reference_rows(evaluator, train),
        "breakdowns": _breakdowns(evaluation, loaded),
        "not_calibrated": calibration.missing,
        "reliability": {
            one.task: one.to_mapping(calibration.tasks.get(one.task, {}).get("temperature")) for one in firsts
        },
        "coverage": covered,
        "answers": surest_and_least(predictor, split, firsts[0]) if firsts else None,
    }


def _finite(ends: tuple[float, float]) -> list[float] | None:
    """An interval's ends for JSON; None where no sample gave a value."""
    return list(ends) if all(end == end for end in ends) else None


def _breakdowns(evaluation: Evaluation, loaded: LoadedRun) -> dict[str, Any]:
    vocabulary, ties = loaded.graph.vocabulary, evaluation.ties
    frequency = breakdowns.entity_frequency(training_table(loaded.graph, loaded.settings), vocabulary)
    found: dict[str, Any] = {}
    for task, questions in evaluation.per_question.items():
        by_relation = breakdowns.by_relation(questions, ties, vocabulary)
        labels = dict(zip((one.name for one in vocabulary.relations), loaded.graph.relation_labels, strict=True))
        found[task] = {
            "relation": [{**row, "label": labels[row["group"]]} for row in by_relation],
            "position": breakdowns.by_position(questions, ties),
            "qualifiers": breakdowns.by_qualifier_count(questions, ties),
        }
        if task != "relation":
            found[task]["frequency"] = breakdowns.by_entity_frequency(questions, ties, frequency)
    return found
