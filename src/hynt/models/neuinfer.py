"""NeuInfer (Guan, Jin, Guo, Wang and Cheng, ACL 2020): is the triplet valid, and do its qualifiers agree with it?

Both are answered by small networks; the probability that a fact is true is their weighted mean. Everything is kept as
logarithms, because probabilities near 0 and 1 could not be ranked. Numbers are tokens by their literals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.corruption import LossKind, Pool
from hynt.batches.fact_tensors import Sizes
from hynt.config.declarations import Count, Share
from hynt.models.layers.relatedness import TripletModel, uniform_table, weighed
from hynt.models.layers.tokens import LiteralValues, NumberReading, Unseen, token_count

Depth = Literal[1, 2]


@dataclass(frozen=True)
class NeuInferSettings:
    """NeuInfer's sizes and how its negatives are drawn."""

    dimension: Count = 256  # d
    hidden: Count = 1000  # g, units of the last layer about qualifiers
    validity_layers: Depth = 1  # n₁
    compatibility_layers: Depth = 1  # n₂
    validity_weight: Share = 0.3  # w
    relation_share: Share | None = None  # of negatives; None: relations among all ids
    pool: Pool = "seen"  # where negatives' values come from: seen in such a place, all, or all possible answers
    negatives: Count = 1  # for each fact
    loss: LossKind = "logistic"  # each told true from false, or the fact chosen among its negatives
    numbers: NumberReading = "argmax"  # how a ranking of literals becomes a number
    unseen: Unseen = "own"  # what stands for a literal that training lacks


class PartsNetwork(nn.Module):
    """Fully connected layers with ReLU over some parts side by side; the first can be given a few parts at a time."""

    def __init__(self, parts: int, dimension: int, widths: list[int]) -> None:
        super().__init__()
        self.dimension = dimension
        sizes = [parts * dimension, *widths]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        for layer in self.layers:
            _initialise(layer)

    def linear(self, vectors: Tensor, first: int) -> Tensor:
        """(n, width) what parts `first`, `first` + 1, … add to the first layer, from (n, parts, d)."""
        start = first * self.dimension
        weight = self.layers[0].weight
        assert isinstance(weight, Tensor)
        return functional.linear(vectors.flatten(1), weight[:, start : start + vectors.shape[1] * self.dimension])

    @property
    def is_monotone(self) -> bool:
        """A single layer ends with a ReLU; a second one may turn high into low."""
        return len(self.layers) == 1

    def after(self, added: Tensor, counted: Tensor) -> Tensor:  # noqa: ARG002
        """(…, last width) from the first layer's sum; there are no statistics here."""
        return self.rest(self.fold(added, shifted=True))

    def fold(self, added: Tensor, *, shifted: bool) -> Tensor:
        """The first layer's bias, where `shifted`."""
        bias = self.layers[0].bias
        assert isinstance(bias, Tensor)
        return added + bias if shifted else added

    def rest(self, folded: Tensor) -> Tensor:
        """(…, last width): ReLU, and the layers that follow."""
        x = functional.relu(folded)
        for layer in list(self.layers)[1:]:
            x = functional.relu(layer(x))
        return x


class NeuInfer(TripletModel):
    """A network for triplets, one for triplets with a qualifier, and two outputs."""

    settings: NeuInferSettings
    kernel = None  # its scores are not linear in the minima

    def __init__(self, sizes: Sizes, settings: NeuInferSettings, literals: LiteralValues) -> None:
        super().__init__(sizes, settings, literals)
        d, g = settings.dimension, settings.hidden
        self.entity, self.relation = uniform_table(token_count(sizes), d), uniform_table(sizes.relations, d)
        validity = [3 * d - 3 * d // 2] if settings.validity_layers == 1 else [2 * d, d]
        compatibility = [g] if settings.compatibility_layers == 1 else [5 * d - int((5 * d - g) / 2), g]
        self.of_triplet = PartsNetwork(3, d, validity)
        self.of_qualifier = PartsNetwork(5, d, compatibility)
        self.validity_output = nn.Linear(validity[-1], 1)
        self.compatibility_output = nn.Linear(g, 1)
        _initialise(self.validity_output)
        _initialise(self.compatibility_output)

    def finish(self, triplet: Tensor, lowest: Tensor | None, has_any: Tensor) -> Tensor:
        """log p − log(1 − p) with p = w·σ(a) + (1 − w)·σ(c), or p = σ(a) where there is no qualifier: softplus of it,
        or of its negative, is the cross entropy of p.
        """
        valid = weighed(triplet, self.validity_output)
        if lowest is None:
            return valid
        held = torch.where(has_any.unsqueeze(-1), lowest, 0.0)  # the minimum over nothing is infinite
        agrees = weighed(held, self.compatibility_output)
        w = self.settings.validity_weight
        one, other = (math.log(share) if share > 0 else float("-inf") for share in (w, 1 - w))
        true = torch.logaddexp(functional.logsigmoid(valid) + one, functional.logsigmoid(agrees) + other)
        false = torch.logaddexp(functional.logsigmoid(-valid) + one, functional.logsigmoid(-agrees) + other)
        return torch.where(has_any, true - false, valid)


def _initialise(layer: nn.Module) -> None:
    assert isinstance(layer, nn.Linear)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
