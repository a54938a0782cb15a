"""A model as one map from plain tensors to scores, for exporters: the two calls of the contract in a single forward.

Facts lie in one rectangle, (rows, capacity) for qualifiers, so that the number of rows can stay open in the exported
program; the capacity is fixed when it is made.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from hynt.batches.buckets import Layout, Places, Span
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.models.contract import Candidates, Entities, Model, Number, Relations

OUTPUTS = {Task.LINK: "entity_scores", Task.RELATION: "relation_scores", Task.NUMBER: "number"}
"""What comes out, by what is asked."""


class Inputs(NamedTuple):
    """What goes in. Ids are the graph's; a hidden component has the id for that, a hidden number reads 0 and is
    marked.
    """

    head: Tensor  # (rows,) int64
    relation: Tensor  # (rows,) int64
    tail_entity: Tensor  # (rows,) int64; for a number its literal's id, if the model has any, or a hidden entity's
    tail_number: Tensor  # (rows,) float32, scaled; 0 for an entity
    tail_is_number: Tensor  # (rows,) bool
    tail_number_hidden: Tensor  # (rows,) bool
    qualifier_relation: Tensor  # (rows, capacity) int64
    qualifier_entity: Tensor  # (rows, capacity) int64
    qualifier_number: Tensor  # (rows, capacity) float32
    qualifier_is_number: Tensor  # (rows, capacity) bool
    qualifier_number_hidden: Tensor  # (rows, capacity) bool
    qualifier_present: Tensor  # (rows, capacity) bool; false: there is no such qualifier
    asked: Tensor  # (rows,) int64: 0 head, 1 relation, 2 tail, 3 + 2i relation and 4 + 2i value of qualifier i

    @classmethod
    def of(cls, batch: MaskedBatch) -> Inputs:
        """From a batch whose layout is one segment."""
        ((rows, capacity),) = batch.layout.segments
        found = batch.tensors()
        return cls(
            *(
                found[name].view(rows, capacity) if name.startswith("qualifier_") else found[name]
                for name in cls._fields
            )
        )


class _Rectangle:
    """A layout of one segment with an open number of rows. Its only span is everything, without any arithmetic on the
    number of rows, which the exporter would take for a constant.
    """

    def __init__(self, rows: int, capacity: int) -> None:
        self.rows, self.capacity = rows, capacity
        self.slots, self.tokens = rows * capacity, rows * (1 + capacity)
        self.segments = ((rows, capacity),)

    def spans(self) -> tuple[Span, ...]:
        """The one span."""
        return (Span(slice(None), slice(None), slice(None), self.rows, self.capacity),)


class ScoringModule(nn.Module):
    """Scores of all entities, scores of all relations and the number, as far as the model answers them."""

    def __init__(self, model: Model, capacity: int) -> None:
        super().__init__()
        self.model, self.capacity = model, capacity
        tasks = {task for task, _ in model.answers}
        self.tasks = tuple(task for task in OUTPUTS if task in tasks)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what comes out, in order."""
        return tuple(OUTPUTS[task] for task in self.tasks)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """`tensors` are the fields of `Inputs`, in order."""
        given = Inputs(*tensors)
        question = self.model.read(self._batch(given))
        kinds: dict[Task, Candidates] = {Task.LINK: Entities(), Task.RELATION: Relations(), Task.NUMBER: Number()}
        return tuple(self.model.score(question, kinds[task]) for task in self.tasks)

    def _batch(self, given: Inputs) -> MaskedBatch:
        count, capacity = given.head.shape[0], self.capacity
        rows = torch.arange(count, device=given.head.device)
        within = torch.arange(capacity, device=given.head.device)
        places = Places(
            rows.unsqueeze(1).expand(count, capacity).reshape(-1),
            within.expand(count, capacity).reshape(-1),
            rows * capacity,
            rows * (1 + capacity),
        )
        layout = cast(Layout, _Rectangle(count, capacity))
        return MaskedBatch(
            self.model.sizes,
            layout,
            places,
            given.head,
            given.relation,
            given.tail_entity,
            given.tail_number,
            given.tail_is_number,
            given.tail_number_hidden,
            given.qualifier_relation.reshape(-1),
            given.qualifier_entity.reshape(-1),
            given.qualifier_number.reshape(-1),
            given.qualifier_is_number.reshape(-1),
            given.qualifier_number_hidden.reshape(-1),
            given.qualifier_present.reshape(-1),
            given.asked,
        )
