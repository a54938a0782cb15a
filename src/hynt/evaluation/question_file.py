"""The per-question results of an evaluation as one Parquet file, for comparing runs later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from hynt.errors import DataError
from hynt.evaluation.questions import TASKS, TaskName
from hynt.evaluation.results import Evaluation, NumberQuestions, RankedQuestions, TaskQuestions, columns
from hynt.graph.vocabulary import Vocabulary
from hynt.whole_file import whole_file

SCHEMA_VERSION = 1
_META = b"hynt-evaluation"


def write_questions(evaluation: Evaluation, path: Path) -> None:
    """One row a question; columns that a task has not are null. The protocol travels in the file's metadata."""
    tables = []
    parts: list[tuple[str, TaskQuestions]] = list(evaluation.per_question.items())
    if evaluation.type_constrained is not None:
        parts.append(("link_type_constrained", evaluation.type_constrained))
    for name, questions in parts:
        found: dict[str, Any] = {"task": pa.array([name]).take(pa.array(np.zeros(len(questions), dtype=np.int64)))}
        tables.append(pa.table(found | columns(questions)))
    meta = {"schema": SCHEMA_VERSION, "ties": evaluation.ties, "tasks": [name for name, _ in parts]}
    joined = pa.concat_tables(tables, promote_options="default")
    text = json.dumps(meta | {"protocol": dict(evaluation.protocol)})
    with whole_file(path) as file:
        parquet.write_table(joined.replace_schema_metadata({_META: text.encode()}), file)


def read_questions(path: Path, vocabulary: Vocabulary) -> Evaluation:
    """What `write_questions` wrote; the vocabulary must be that of the graph it was made on."""
    try:
        table = parquet.read_table(path)
        meta = json.loads((table.schema.metadata or {})[_META])
        if meta["schema"] != SCHEMA_VERSION:
            raise KeyError("schema")
        parts = {name: _part(table, name) for name in meta["tasks"]}
        constrained = parts.pop("link_type_constrained", None)
        asked: dict[TaskName, TaskQuestions] = {task: parts[task] for task in TASKS if task in parts}
        if constrained is not None and not isinstance(constrained, RankedQuestions):
            raise KeyError("link_type_constrained")
        return Evaluation(vocabulary, asked, constrained, meta["ties"], meta["protocol"])
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as problem:
        raise DataError(
            f"this is no file of per-question results of this version: {problem}.",
            where=str(path), advice="Evaluate the run again and save its questions.",
        ) from None  # fmt: skip


def _part(table: pa.Table, name: str) -> TaskQuestions:
    chosen = table.filter(compute.equal(table["task"], name))
    kind = NumberQuestions if name == "number" else RankedQuestions
    return kind(**{column: chosen[column].to_numpy() for column in kind.__dataclass_fields__})
