"""From the recipe's tables to facts: two sorted streams, facts and qualifiers, read side by side in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hynt.graph.fact import Fact, Number, Qualifier, Value

_BATCH_ROWS = 65_536
_FACTS = ["statement", "head", "relation", "kind", "value", "number", "unit"]
_QUALIFIERS = ["statement", "relation", "kind", "value", "number", "unit"]


def read_facts(facts: list[Path], qualifiers: list[Path]) -> Iterator[Fact]:
    """Every fact with its qualifiers, in the order of the dump."""
    pending = _in_order(qualifiers, _QUALIFIERS)
    following = next(pending, None)
    for statement, head, relation, kind, value, number, unit in _in_order(facts, _FACTS):
        held = []
        while following is not None and following[0] == statement:
            held.append(Qualifier(following[1], _value(*following[2:])))
            following = next(pending, None)
        yield Fact(head, relation, _value(kind, value, number, unit), tuple(held))
    if following is not None:
        raise RuntimeError(f"a qualifier of statement {following[0]} has no fact")


def read_rows(paths: list[Path], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, file by file."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _in_order(paths: list[Path], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Rows that must come sorted by statement: an engine that loses the order would mix up facts."""
    last = None
    for row in read_rows(paths, columns):
        if last is not None and row[0] < last:
            raise RuntimeError(f"statement {row[0]} comes after {last}")
        last = row[0]
        yield row


def _value(kind: str, value: str, number: float | None, unit: str) -> Value:
    return Number(number, value, unit) if kind == "number" and number is not None else value
