"""Questions that were read from one file, written as a Parquet file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.graph.columns import FULL_SCHEMA
from hynt.graph.fact import Number


def as_parquet(batch, path):
    """The questions of a batch, row by row, in the shape that facts have."""
    rows = [_row(*batch.questions.parts(number)) for number in range(len(batch.questions))]
    parquet.write_table(pa.Table.from_pylist(rows, schema=FULL_SCHEMA), path)


def _row(head, relation, tail, pairs):
    tails = {f"tail_{name}": cell for name, cell in _cells(tail).items()}
    qualifiers = [{"relation": name, **_cells(value)} for name, value in pairs]
    return {"head": head, "relation": relation, **tails, "qualifiers": qualifiers}


def _cells(value):
    if isinstance(value, Number):
        return {"number": value.value, "literal": value.literal, "unit": value.unit}
    return {"entity": value}
