"""Fitting a linear head for numbers once a model has learned links: the second phase of KBLN and LiteralE.

The vectors that the head sees do not change any more, so nothing but the head is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from hynt.batches.attribute_triples import AttributeTriples
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.seeds import generator_for
from hynt.objectives.streams import ItemStream, Loss, LossFunction, ShuffledEpoch


class HasNumberHead(Protocol):
    """A model that has a head for numbers to be fitted afterwards."""

    @property
    def number_head(self) -> Callable[[Tensor, Tensor], Tensor]:
        """From vectors (rows, width) and attributes (rows,) to scaled numbers (rows,)."""
        ...

    def head_vectors(self, entity: Tensor) -> Tensor:
        """(rows, width) what the head sees of entities (rows,)."""
        ...


class NumberHeadFit(ItemStream):
    """Every attribute triple once an epoch; the mean squared error."""

    name: ClassVar[str] = "number head"
    parts: ClassVar[tuple[str, ...]] = ("number",)

    def __init__(self, facts: FactTensors, batch_size: int) -> None:
        self.triples = AttributeTriples.of(facts)
        self.batch_size = batch_size
        self.item_count = len(self.triples.entity)

    def epoch(self, seed: int, epoch: int) -> ShuffledEpoch:
        """Every attribute triple once, in an order drawn from `seed` and `epoch`."""
        order = torch.randperm(self.item_count, generator=generator_for(seed, epoch, "number head"))
        return ShuffledEpoch(order.to(self.triples.entity.device), self.batch_size)

    def is_common(self, shape: Hashable) -> bool:
        """All steps but the last have this shape."""
        return shape == min(self.batch_size, self.item_count)

    def loss_for(self, shape: Hashable) -> LossFunction:  # noqa: ARG002 - the same for all shapes
        """The head alone gets gradients."""
        triples = self.triples

        def loss(model: HasNumberHead, tensors: tuple[Tensor, ...]) -> Loss:
            (chosen,) = tensors
            with torch.no_grad():
                vectors = model.head_vectors(triples.entity[chosen])
            predicted = model.number_head(vectors, triples.attribute[chosen]).float()
            total = (predicted - triples.value[chosen]).square().sum()
            count = total.new_full((), float(len(chosen)))
            return Loss(total / count, total.unsqueeze(0), count.unsqueeze(0))

        return loss
