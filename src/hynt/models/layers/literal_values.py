"""What number each literal stands for, for models that rank literals instead of computing a number."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors


class LiteralValues(nn.Module):
    """The pairs of relation and literal met in training, and their scaled values. Not learned."""

    relation: Tensor  # (pairs,) int64
    literal: Tensor  # (pairs,) int64, from 0
    value: Tensor  # (pairs,) float32 scaled

    def __init__(self, entities: int, relation: Tensor, literal: Tensor, value: Tensor) -> None:
        super().__init__()
        self.entities = entities
        for name, column in (("relation", relation), ("literal", literal), ("value", value)):
            self.register_buffer(name, column)

    @classmethod
    def of(cls, train: FactTensors) -> LiteralValues:
        """From training facts whose literals have ids."""
        first = train.sizes.entities + 1
        entity = torch.cat([train.tail_entity, train.qualifier_entity[:-1]]).long()
        relation = torch.cat([train.relation, train.qualifier_relation[:-1]]).long()
        value = torch.cat([train.tail_number, train.qualifier_number[:-1]])
        chosen, literals = entity >= first, max(train.sizes.literals, 1)
        key = relation[chosen] * literals + entity[chosen] - first
        pairs, which = torch.unique(key, return_inverse=True)
        # A literal may stand for two values of one relation (written in two units): the last one met counts.
        values = torch.zeros(len(pairs), device=key.device).index_put((which,), value[chosen])
        return cls(train.sizes.entities, pairs // literals, pairs % literals, values)

    def best(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows,) the value of the literal with the highest score among those the row's `relation` (rows,) has.

        `logits` (rows, entities + literals). For a relation without literals in training, among all.
        """
        return self.value[self._scores(logits, relation).argmax(1)]

    def expected(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows,) the mean of the same literals' values, weighted by how likely the scores make them."""
        return self._scores(logits, relation).softmax(1) @ self.value

    def answer(self, logits: Tensor, relation: Tensor, choice: Literal["argmax", "softmax-mean"]) -> Tensor:
        """(rows,) one or the other."""
        if not len(self.value):
            return logits.new_zeros(len(logits))  # no number in training: on the scale of such a relation, its middle
        return self.best(logits, relation) if choice == "argmax" else self.expected(logits, relation)

    def _scores(self, logits: Tensor, relation: Tensor) -> Tensor:
        """(rows, pairs) float32, −∞ for literals that the relation does not have."""
        scores = logits[:, self.entities + self.literal].float()
        allowed = relation.unsqueeze(1) == self.relation
        allowed = allowed | ~allowed.any(1, keepdim=True)
        return scores.masked_fill(~allowed, float("-inf"))
