"""The per-question results of an evaluation as one Parquet file, for comparing runs later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.evaluation.results import Evaluation, TaskQuestions, columns
from hynt.files import whole_file

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
