"""Answers in columns to rows of a Parquet file: one row an answer, question by question, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.answer_columns import NumberColumns, RankedColumns
from hynt.asking.asked_facts import AskedFacts
from hynt.graph.components import KIND_NAMES, NUMBER_KIND, RELATION_KIND
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.sentences import format_quantity

ANSWER_SCHEMA = pa.schema(
    [
        pa.field("question", pa.int64(), nullable=False),  # its number in the file, from 1
        ("kind", pa.string()),  # entity, relation or number; null for an error
        ("rank", pa.int32()),  # from 1; null for an error
        ("id", pa.string()),  # of the entity or relation
        ("label", pa.string()),
        ("probability", pa.float64()),  # calibrated, among the candidates
        ("value", pa.float64()),  # of a number, in its unit; decimal years for dates
        ("text", pa.string()),  # the number for people: 1,990, 88.2 years, 1922-01-28
        ("unit", pa.string()),
        ("low", pa.float64()),  # of the interval
        ("high", pa.float64()),
        ("known", pa.list_(pa.string())),  # the splits that hold this answer; of a number, those that hold any
        ("known_value", pa.float64()),  # the known number nearest to the answer
        ("error", pa.string()),  # why there is no answer
    ]
)

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Makes rows for one graph."""

    graph: KnowledgeGraph
    known: KnownAnswers

    @cached_property
    def _names(self) -> tuple[pa.Array, pa.Array]:
        """Ids and labels: those of all entities, and then of all relations."""
        graph = self.graph
        ids = [*graph.vocabulary.entities, *(relation.name for relation in graph.relations)]
        return pa.array(ids, pa.string()), pa.array([*graph.entity_labels, *graph.relation_labels], pa.string())

    @cached_property
    def _splits(self) -> pa.Array:
        """For every set of splits, as bits, their names."""
        sets = [list(self.known.split_names(bits)) for bits in range(1 << len(self.known.splits))]
        return pa.array(sets, pa.list_(pa.string()))

    @cached_property
    def _units(self) -> pa.Array:
        return pa.array([relation.unit for relation in self.graph.relations], pa.string())

    def ranked(self, asked: AskedFacts, number: Ids, found: RankedColumns) -> pa.Table:
        """Rows of entities and relations; `number` (n,) is the number of each question."""
        owner = found.owner()
        kind = asked.kind[owner]
        rank = np.arange(len(owner), dtype=np.int32) - found.offsets[:-1][owner].astype(np.int32) + np.int32(1)
        place = pa.array(found.candidate + np.where(kind == RELATION_KIND, self.graph.vocabulary.entity_count, 0))
        ids, labels = self._names
        return _table(
            len(owner),
            question=pa.array(number[owner]),
            kind=_KINDS.take(pa.array(kind)),
            rank=pa.array(rank),
            id=ids.take(place),
            label=labels.take(place),
            probability=pa.array(found.probability),
            known=self._splits.take(pa.array(found.splits)),
        )

    def numbers(self, number: Ids, relation: Ids, found: NumberColumns) -> pa.Table:
        """Rows of numbers; `number` (n,) and `relation` (n,) of each question."""
        without = ~found.has_interval
        bits, nearest, has_known = _nearest(found.known, found.value)
        units = self._units.take(pa.array(relation))
        texts = [
            format_quantity(value, unit) for value, unit in zip(found.value.tolist(), units.to_pylist(), strict=True)
        ]
        return _table(
            len(number),
            question=pa.array(number),
            kind=_KINDS.take(pa.array(np.full(len(number), NUMBER_KIND))),
            rank=pa.array(np.ones(len(number), dtype=np.int32)),
            value=pa.array(found.value),
            text=pa.array(texts, pa.string()),
            unit=units,
            low=pa.array(found.low, mask=without),
            high=pa.array(found.high, mask=without),
            known=self._splits.take(pa.array(bits)),
            known_value=pa.array(nearest, mask=~has_known),
        )

    def errors(self, problems: Sequence[tuple[int, str]]) -> pa.Table:
        """A row for each question, by its number, that has no answer."""
        numbers, texts = zip(*problems, strict=True) if problems else ((), ())
        return _table(len(problems), question=pa.array(numbers, pa.int64()), error=pa.array(texts, pa.string()))


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows by question; those of one question stay as they are."""
    joined = pa.concat_tables(tables).combine_chunks()
    order = np.argsort(joined["question"].to_numpy(), kind="stable")
    return joined.take(pa.array(order))


def _nearest(
    known: AnswerLists, value: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
    """(n,) the splits that hold a known number, (n,) the known number nearest to each value, (n,) whether there is."""
    has_known = np.diff(known.offsets) > 0
    bits, nearest = np.zeros(len(value), dtype=np.uint8), np.zeros(len(value))
    if has_known.any():
        owner = known.question()
        bits[has_known] = np.bitwise_or.reduceat(known.splits, known.offsets[:-1][has_known])
        order = np.lexsort((np.abs(known.answers - value[owner]), owner))
        nearest[has_known] = known.answers[order[known.offsets[:-1][has_known]]]
    return bits, nearest, has_known


def _table(rows: int, **columns: pa.Array) -> pa.Table:
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in ANSWER_SCHEMA]
    return pa.table(arrays, schema=ANSWER_SCHEMA)


_KINDS = pa.array(KIND_NAMES, pa.string())
