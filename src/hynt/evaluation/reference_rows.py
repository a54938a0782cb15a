"""The trivial answers that stand beside every model's: without them a number says little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hynt.batches.fact_tensors import FactTensors
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import by_scope
from hynt.models.contract import Model
from hynt.models.registry import build

REFERENCES = ("frequency", "relation-mean", "relation-median", "neighbour-mean")


def reference_rows(evaluator: Evaluator, train: FactTensors) -> dict[str, dict[str, Any]]:
    """By model, task and scope the metrics of each trivial model on the evaluator's questions.

    `train` holds the facts that the model beside them learned from, without ids for literals.
    """
    plain = replace(evaluator, literals=None, type_constrained=False)
    rows: dict[str, dict[str, Any]] = {}
    for name in REFERENCES:
        model = build(name, train.sizes, train)
        assert isinstance(model, Model)
        found = plain.evaluate(model)
        rows[name] = {task: by_scope(questions, found.ties) for task, questions in found.per_question.items()}
    return rows
