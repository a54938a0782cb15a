"""Numbers as the graph spells them, for models that take each literal for a token of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.fact_table import FactTable, concatenate
from hynt.training.loading import LoadedRun
from hynt.training.training_data import training_splits


def with_stored_literals(asked: FactTable, loaded: LoadedRun) -> FactTable:
    """The same facts; a number that training holds under the same relation gets the spelling it has there.

    A person writes 80 where the file has "+80.0": the same number, but another token.
    """
    if loaded.literals is None:
        return asked
    train = concatenate([loaded.graph.split(name) for name in training_splits(loaded.settings)])
    relation = np.concatenate([train.relation, train.qualifier_relation])
    value = np.concatenate([train.tail_number, train.qualifier_number])
    literal = pa.concat_arrays([train.tail_literal, train.qualifier_literal])

    def spelt(of: NDArray[np.int32], numbers: NDArray[np.float64], written: pa.StringArray) -> pa.StringArray:
        found = written.to_pylist()
        for index, spelling in enumerate(found):
            if spelling is None:
                continue
            stored = np.flatnonzero((relation == of[index]) & (value == numbers[index]))
            if len(stored):
                found[index] = literal[int(stored[0])].as_py()
        return pa.array(found, type=pa.string())

    return replace(
        asked,
        tail_literal=spelt(asked.relation, asked.tail_number, asked.tail_literal),
        qualifier_literal=spelt(asked.qualifier_relation, asked.qualifier_number, asked.qualifier_literal),
    )
