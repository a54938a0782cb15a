"""Facts as tensors on a device: the columns of a `FactTable`, with numbers scaled.

Components of a fact have positions: 0 head, 1 relation, 2 tail, and for qualifier i (from 0) 3 + 2i its relation
and 4 + 2i its value.

Entities have ids 0 … entities − 1; the id `entities` stands for a masked one. Token models, which take each literal
for an entity of its own, find literal k under the id entities + 1 + k where literals were given; else a number's
entity slot holds the id for "hidden".
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError
from hynt.graph.fact_table import TAIL, FactTable, qualifier_of
from hynt.graph.vocabulary import Vocabulary


class Sizes(NamedTuple):
    """How many ids there are of each kind."""

    entities: int
    relations: int
    literals: int = 0  # distinct literals as written, where a token model asked for them

    @property
    def mask_entity(self) -> int:
        """The id that stands for a masked entity."""
        return self.entities

    @property
    def mask_relation(self) -> int:
        """The id that stands for a masked relation."""
        return self.relations


@dataclass(frozen=True, eq=False)
class FactTensors:
    """`n` facts with `m` qualifiers in all, on one device. Qualifier columns have one filler more at the end, for
    absent slots.
    """

    sizes: Sizes
    head: Tensor  # (n,) int32 entity id
    relation: Tensor  # (n,) int32 relation id
    tail_entity: Tensor  # (n,) int32 entity id; for a number, its literal's id or the id of a masked entity
    tail_value: Tensor  # (n,) float64 number in the graph's unit; 0 for an entity
    tail_number: Tensor  # (n,) float32 scaled number; 0 for an entity
    tail_is_number: Tensor  # (n,) bool
    offsets: Tensor  # (n + 1,) int64 qualifiers of fact i are offsets[i] … offsets[i + 1]
    qualifier_relation: Tensor  # (m + 1,) int32
    qualifier_entity: Tensor  # (m + 1,) int32
    qualifier_value: Tensor  # (m + 1,) float64
    qualifier_number: Tensor  # (m + 1,) float32
    qualifier_is_number: Tensor  # (m + 1,) bool
    relation_is_number: Tensor  # (relations + 1,) bool; false for the masked relation

    def __len__(self) -> int:
        return len(self.head)

    @property
    def device(self) -> torch.device:
        return self.head.device

    @property
    def qualifier_total(self) -> int:
        """How many qualifiers all facts have together."""
        return len(self.qualifier_relation) - 1

    def qualifier_counts(self) -> Tensor:
        """(n,) int64: how many qualifiers each fact has."""
        return self.offsets[1:] - self.offsets[:-1]

    def qualifier_at(self, rows: Tensor, position: Tensor) -> Tensor:
        """(k,) int64: where among all qualifiers lies the one that holds `position` (k,) of the facts `rows` (k,); the
        filler's place where the triplet does.
        """
        return torch.where(position > TAIL, self.offsets[rows] + qualifier_of(position), self.qualifier_total)

    def to(self, device: torch.device | str) -> FactTensors:
        """The same on another device."""
        moved = {f.name: getattr(self, f.name).to(device) for f in fields(self) if f.name != "sizes"}
        return replace(self, **moved)

    @classmethod
    def from_table(
        cls,
        table: FactTable,
        vocabulary: Vocabulary,
        scaling: NumberScaling,
        device: torch.device | str = "cpu",
        literals: pa.StringArray | None = None,
    ) -> FactTensors:
        """`literals`, distinct, gives each number's literal an id; a literal that is not among them gets the id of a
        masked entity.
        """
        is_number = vocabulary.relation_is_number
        sizes = Sizes(vocabulary.entity_count, vocabulary.relation_count, 0 if literals is None else len(literals))

        def columns(
            relation: NDArray[np.int32], entity: NDArray[np.int32], value: NDArray[np.float64], written: pa.StringArray
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            kind = is_number[relation]
            ids = np.where(kind, _literal_ids(written, literals, sizes), entity).astype(np.int32)
            raw = np.where(kind, value, 0.0)
            scaled = np.where(kind, _scaled(relation, raw, kind, scaling, vocabulary), 0.0).astype(np.float32)
            return torch.from_numpy(ids), torch.from_numpy(raw), torch.from_numpy(scaled), torch.from_numpy(kind)

        tail = columns(table.relation, table.tail_entity, table.tail_number, table.tail_literal)
        values = columns(
            table.qualifier_relation, table.qualifier_entity, table.qualifier_number, table.qualifier_literal
        )
        entity, value, number, kind = (_with_filler(column) for column in values)
        return cls(
            sizes,
            _tensor(table.head),
            _tensor(table.relation),
            *tail,
            _tensor(table.offsets),
            _with_filler(_tensor(table.qualifier_relation)),
            entity,
            value,
            number,
            kind,
            _with_filler(_tensor(is_number)),
        ).to(device)

    def columns(self) -> FactTable:
        """The facts in memory without literals, whose ids, where they have some, stand in the places for entities."""
        here = self.to("cpu")
        return FactTable(
            here.head.numpy(),
            here.relation.numpy(),
            here.tail_entity.numpy(),
            here.tail_value.numpy(),
            pa.nulls(len(here), pa.string()),
            here.offsets.numpy(),
            here.qualifier_relation[:-1].numpy(),
            here.qualifier_entity[:-1].numpy(),
            here.qualifier_value[:-1].numpy(),
            pa.nulls(here.qualifier_total, pa.string()),
        )

    def to_table(self) -> FactTable:
        """Back to columns. Literals are not kept on the device, so a number is written as Python spells its value."""
        found = self.columns()

        def literals(values: NDArray[np.float64], kind: NDArray[np.bool_]) -> pa.StringArray:
            pairs = zip(values.tolist(), kind.tolist(), strict=True)
            return pa.array([repr(value) if is_number else None for value, is_number in pairs], type=pa.string())

        tail, pair = self.tail_is_number.cpu().numpy(), self.qualifier_is_number[:-1].cpu().numpy()
        return replace(
            found,
            tail_entity=np.where(tail, 0, found.tail_entity).astype(np.int32),
            tail_literal=literals(found.tail_number, tail),
            qualifier_entity=np.where(pair, 0, found.qualifier_entity).astype(np.int32),
            qualifier_literal=literals(found.qualifier_number, pair),
        )


def distinct_literals(table: FactTable) -> pa.StringArray:
    """The literals of a table as written, each once, in the order they are met: the tokens of models that have no
    numbers.
    """
    chunks = pa.chunked_array([table.tail_literal, table.qualifier_literal], type=pa.string())
    return chunks.drop_null().unique()


def _literal_ids(written: pa.StringArray, literals: pa.StringArray | None, sizes: Sizes) -> NDArray[np.int64]:
    """(n,) ids of literals; where it is none of those known, the id of a masked entity."""
    if literals is None:
        return np.full(len(written), sizes.mask_entity, dtype=np.int64)
    import pyarrow.compute as compute

    found = compute.fill_null(compute.index_in(written, value_set=literals, skip_nulls=True), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64) + sizes.entities + 1


def _scaled(
    relation: NDArray[np.int32],
    value: NDArray[np.float64],
    kind: NDArray[np.bool_],
    scaling: NumberScaling,
    vocabulary: Vocabulary,
) -> NDArray[np.float32]:
    scaled = np.zeros(len(value))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled[kind] = scaling.scale(relation[kind], value[kind])
        narrow = scaled.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(narrow))
    if len(wrong):
        name = vocabulary.relations[relation[wrong[0]]].name
        raise DataError(
            f"the relation {name!r} has the value {float(value[wrong[0]])!r}, which its scale cannot take.",
            advice="Correct the value"
            + (", or take the relation off the log scale." if scaling.is_log[relation[wrong[0]]] else "."),
        )
    return narrow


def _tensor(array: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(np.array(array))  # a copy: a saved graph's columns are read-only views of a file


def _with_filler(column: Tensor) -> Tensor:
    return torch.cat([column, column.new_zeros(1)])
