"""Fitting a linear head for numbers once a model has learned links: the second phase of KBLN and LiteralE.

The vectors that the head sees do not change any more, so nothing but the head is trained.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.seeds import generator_for
from hynt.models.layers.triplets import Attributes, AttributeTriples, NumberHead
from hynt.objectives.streams import Loss, LossFunction, StepItems


@runtime_checkable
class HasNumberHead(Protocol):
    """A model that has a head for numbers to be fitted afterwards."""

    attributes: Attributes
    number_head: NumberHead

    def head_vectors(self, entity: Tensor) -> Tensor:
        """(rows, width) what the head sees of entities (rows,)."""
        ...


class ShuffledBatches:
    """Numbers of items in a random order, cut into steps; the last one may be shorter."""

    def __init__(self, order: Tensor, batch_size: int) -> None:
        self.order, self.batch_size = order, batch_size

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size)

    def items(self, index: int) -> StepItems:
        """The items of a step; their number is its shape."""
        chosen = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return StepItems(len(chosen), (chosen,))


class NumberHeadFit:
    """Every attribute triple once an epoch; the mean squared error."""

    parts: tuple[str, ...] = ("number",)

    def __init__(self, facts: FactTensors, batch_size: int) -> None:
        self.triples = AttributeTriples.of(facts)
        self.batch_size = batch_size
        self.item_count = len(self.triples.entity)

    def epoch(self, seed: int, epoch: int) -> ShuffledBatches:
        """Shuffled anew."""
        order = torch.randperm(self.item_count, generator=generator_for(seed, epoch, "number head"))
        return ShuffledBatches(order.to(self.triples.entity.device), self.batch_size)

    def is_common(self, shape: Hashable) -> bool:
        """All steps but the last have this shape."""
        return shape == min(self.batch_size, self.item_count)

    def loss_for(self, shape: Hashable) -> LossFunction:  # noqa: ARG002 - the same for all shapes
        """The head alone gets gradients."""
        triples = self.triples

        def loss(model: nn.Module, tensors: tuple[Tensor, ...]) -> Loss:
            (chosen,) = tensors
            fitted = cast(HasNumberHead, model)
            with torch.no_grad():
                vectors = fitted.head_vectors(triples.entity[chosen])
            predicted = fitted.number_head(vectors, triples.attribute[chosen]).float()
            total = (predicted - triples.value[chosen]).square().sum()
            count = total.new_full((), float(len(chosen)))
            return Loss(total / count, total.unsqueeze(0), count.unsqueeze(0))

        return loss
