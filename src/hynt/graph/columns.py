"""Facts as Parquet columns with names, as any tool reads them, and back to ids.

| column | type | meaning |
|---|---|---|
| head | string | entity id |
| relation | string | relation id |
| tail_entity | string, null for a number | entity id |
| tail_number | double, null for an entity | value, in the relation's unit |
| tail_literal | string, null for an entity | the number as it was written |
| qualifiers | list of struct (relation, entity, number, literal) | as above |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hynt.errors import DataError
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

_QUALIFIER = pa.struct(
    [("relation", pa.string()), ("entity", pa.string()), ("number", pa.float64()), ("literal", pa.string())]
)
FACT_SCHEMA = pa.schema(
    [
        pa.field("head", pa.string(), nullable=False),
        pa.field("relation", pa.string(), nullable=False),
        ("tail_entity", pa.string()),
        ("tail_number", pa.float64()),
        ("tail_literal", pa.string()),
        ("qualifiers", pa.list_(_QUALIFIER)),
    ]
)

_VALUE = [("entity", pa.string()), ("number", pa.float64()), ("literal", pa.string()), ("unit", pa.string())]
FULL_SCHEMA = pa.schema(
    [
        ("head", pa.string()),
        ("relation", pa.string()),
        *((f"tail_{name}", kind) for name, kind in _VALUE),
        ("qualifiers", pa.list_(pa.struct([("relation", pa.string()), *_VALUE]))),
    ]
)
"""The same with the unit of each number beside it, for whoever has no table of relations."""


class Names:
    """The names of a vocabulary as Arrow arrays, to turn whole columns of ids into names and back."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.entities = pa.array(vocabulary.entities, type=pa.string())
        self.relations = pa.array([relation.name for relation in vocabulary.relations], type=pa.string())
        self.units = pa.array([relation.unit for relation in vocabulary.relations], type=pa.string())
        self.is_number = vocabulary.relation_is_number

    def with_units(self, table: FactTable) -> pa.RecordBatch:
        """A batch of `FULL_SCHEMA` with the facts of a table."""
        columns = self.to_columns(table)

        def unit_of(relation: NDArray[np.int32]) -> pa.Array:
            return self.units.take(pa.array(relation, mask=~self.is_number[relation]))

        name, entity, number, literal = columns["qualifiers"].values.flatten()
        pairs = pa.StructArray.from_arrays(
            [name, entity, number, literal, unit_of(table.qualifier_relation)],
            fields=list(FULL_SCHEMA.field("qualifiers").type.value_type),
        )
        qualifiers = pa.ListArray.from_arrays(columns["qualifiers"].offsets, pairs)
        tail = [columns[column] for column in ("tail_entity", "tail_number", "tail_literal")]
        parts = [columns["head"], columns["relation"], *tail, unit_of(table.relation), qualifiers]
        return pa.record_batch(parts, schema=FULL_SCHEMA)

    def to_columns(self, table: FactTable) -> pa.RecordBatch:
        """A batch of `FACT_SCHEMA` with the facts of a table."""
        tail = self._values(table.relation, table.tail_entity, table.tail_number, table.tail_literal)
        values = self._values(
            table.qualifier_relation, table.qualifier_entity, table.qualifier_number, table.qualifier_literal
        )
        qualifiers = pa.ListArray.from_arrays(
            pa.array(table.offsets.astype(np.int32)),
            pa.StructArray.from_arrays(
                [self.relations.take(pa.array(table.qualifier_relation)), *values], fields=list(_QUALIFIER)
            ),
        )
        head, relation = self.entities.take(pa.array(table.head)), self.relations.take(pa.array(table.relation))
        return pa.record_batch([head, relation, *tail, qualifiers], schema=FACT_SCHEMA)

    def _values(
        self,
        relation: NDArray[np.int32],
        entity: NDArray[np.int32],
        number: NDArray[np.float64],
        literal: pa.StringArray,
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        is_number = self.is_number[relation]
        return self.entities.take(pa.array(entity, mask=is_number)), pa.array(number, mask=~is_number), literal

    def from_columns(self, columns: pa.Table, where: str) -> FactTable:
        """The facts of a table of `FACT_SCHEMA`; anything the vocabulary does not explain is an error.

        Whole columns at once: each look-up hashes the vocabulary anew, so doing it per chunk would grow with both.
        """
        head = self._ids(columns["head"], self.entities, "head", where)
        relation = self._ids(columns["relation"], self.relations, "relation", where)
        tail = self._parsed(
            relation, columns["tail_entity"], columns["tail_number"], columns["tail_literal"], "tail", where
        )
        lists = columns["qualifiers"]
        if lists.null_count:
            raise _damaged(where, "a fact has null for its list of qualifiers")
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(pc.list_value_length(lists).to_numpy(), out=offsets[1:])
        pairs = pc.list_flatten(lists)
        if pairs.null_count:
            raise _damaged(where, "a qualifier is null")
        name, entity, number, literal = pairs.flatten()
        qualifier_relation = self._ids(name, self.relations, "qualifier relation", where)
        values = self._parsed(qualifier_relation, entity, number, literal, "qualifier", where)
        return FactTable(head, relation, *tail, offsets, qualifier_relation, *values)

    def _parsed(
        self,
        relation: NDArray[np.int32],
        entity: pa.ChunkedArray,
        number: pa.ChunkedArray,
        literal: pa.ChunkedArray,
        what: str,
        where: str,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], pa.StringArray]:
        is_number = self.is_number[relation]
        has_entity, has_number = _valid(entity), _valid(number)
        if bool((has_number != is_number).any() or (has_entity == is_number).any()):
            raise _damaged(where, f"a {what} is not of the kind that its relation carries")
        if bool((is_number & ~_valid(literal)).any()):
            raise _damaged(where, f"a {what} is a number without the text that it was written as")
        entities = np.zeros(len(relation), dtype=np.int32)
        entities[has_entity] = self._ids(entity.drop_null(), self.entities, what, where)
        numbers = np.asarray(number.fill_null(0.0).to_numpy(), dtype=np.float64)
        if not bool(np.isfinite(numbers).all()):
            raise _damaged(where, f"a {what} is not a finite number")
        return entities, numbers, _joined(literal)

    def _ids(self, column: pa.ChunkedArray, names: pa.Array, what: str, where: str) -> NDArray[np.int32]:
        found = pc.index_in(column, value_set=names)
        if found.null_count:
            first = next(value for value, index in zip(column, found, strict=True) if not index.is_valid)
            raise _damaged(where, f"the {what} {first.as_py()!r} is not in the vocabulary")
        return np.asarray(found.to_numpy(), dtype=np.int32)


def table_with_units(graph: KnowledgeGraph, splits: Iterable[str]) -> pa.Table:
    """The facts of some splits, each with the name of its split."""
    names, schema = Names(graph.vocabulary), FULL_SCHEMA.insert(0, pa.field("split", pa.string()))
    tables = []
    for split in splits:
        batch = names.with_units(graph.split(split))
        label = pa.array(np.full(batch.num_rows, split), pa.string())
        tables.append(pa.table([label, *batch.columns], schema=schema))
    return pa.concat_tables(tables)


def _valid(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)


def _joined(literals: pa.ChunkedArray) -> pa.StringArray:
    """One array of all literals."""
    return pa.concat_arrays([*literals.chunks, pa.array([], type=pa.string())])


def _damaged(where: str, what: str) -> DataError:
    return DataError(f"{what}.", where=where, advice="The file was made or changed by hand; import the graph again.")
