"""Numbers as they come out: a distribution over bins of the scaled line, learnt from Gaussians cut into these bins.

KBLN and LiteralE fit a linear head for numbers instead, once they have learned links: their second phase. The vectors
that the head sees do not change any more, so nothing but the head is trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.epoch_plan import generator_for
from hynt.batches.fact_tensors import FactTensors
from hynt.objectives.attribute_triples import AttributeTriples
from hynt.objectives.streams import ItemStream, Loss, LossFunction, ShuffledEpoch


@dataclass(frozen=True)
class Bins:
    """Equal bins whose centres run from −margin to 1 + margin."""

    count: int
    margin: float = 0.0
    width_of_target: float = 0.75
    """The target Gaussian's standard deviation, in bins."""

    @property
    def width(self) -> float:
        """How far centres lie apart."""
        return (1 + 2 * self.margin) / (self.count - 1)

    def centres(self, device: torch.device) -> Tensor:
        """(count,) float32."""
        return torch.linspace(-self.margin, 1 + self.margin, self.count, device=device)

    def edges(self, device: torch.device) -> Tensor:
        """(count + 1,) float32: half a bin around each centre."""
        centres = self.centres(device)
        return torch.cat([centres - self.width / 2, centres[-1:] + self.width / 2])

    def target(self, value: Tensor) -> Tensor:
        """(n, count) float32 shares of a Gaussian around each of (n,) values; the end bins take what is outside."""
        inner = self.edges(value.device)[1:-1]
        spread = self.width_of_target * self.width * math.sqrt(2)
        below = 0.5 * (1 + torch.erf((inner - value.unsqueeze(1)) / spread))
        nothing = torch.zeros_like(value).unsqueeze(1)
        bounds = torch.cat([nothing, below, nothing + 1], 1)
        return bounds[:, 1:] - bounds[:, :-1]

    def loss(self, logits: Tensor, value: Tensor) -> Tensor:
        """(n,) float32 cross entropy of (n, count) logits."""
        return -(self.target(value) * logits.float().log_softmax(-1)).sum(-1)


class NumberDistribution(NamedTuple):
    """What a model believes of some numbers, on the scale it was trained on."""

    bins: Bins
    probability: Tensor  # (n, count) float32

    @classmethod
    def of(cls, bins: Bins, logits: Tensor) -> NumberDistribution:
        """From (n, count) logits."""
        return cls(bins, logits.float().softmax(-1))

    def mean(self) -> Tensor:
        """(n,) the expected value: what an error's square is smallest for."""
        return self.probability @ self.bins.centres(self.probability.device)

    def mean_of_exponentials(self, reach: Tensor) -> Tensor:
        """(n,) float32 the value x at which exp(reach · x) is the mean of such exponentials, for a `reach` (n,); where
        that is 0, the mean itself. So a mean in the original unit has a place on a log scale.
        """
        centres, mean = self.bins.centres(self.probability.device).double(), self.mean()
        total = torch.logsumexp(self.probability.double().log() + reach.double().unsqueeze(1) * centres, 1)
        return torch.where(reach > 0, (total / reach.clamp(min=1e-12)).float(), mean)

    def quantile(self, share: float) -> Tensor:
        """(n,) the value below which this share lies, bins being filled evenly."""
        if not 0 <= share <= 1:
            raise ValueError(f"a share lies between 0 and 1, but {share} was asked for")
        cumulative = self.probability.cumsum(-1)
        at = torch.searchsorted(cumulative, torch.full_like(cumulative[:, :1], share)).clamp(max=self.bins.count - 1)
        inside = self.probability.gather(1, at)
        before = cumulative.gather(1, at) - inside
        within = ((share - before) / inside.clamp(min=1e-12)).clamp(0, 1)
        edges = self.bins.edges(self.probability.device)
        return (edges[at] + within * self.bins.width).squeeze(1)

    def median(self) -> Tensor:
        """(n,) what an error's size is smallest for."""
        return self.quantile(0.5)

    def crps(self, value: Tensor, edges: Tensor | None = None) -> Tensor:
        """(n,) float64 the continuous ranked probability score of the true `value` (n,): the integral of the squared
        distance between what is believed to lie below each number and what does. Less is better; for a belief in one
        number it is the absolute error. `edges` (n, count + 1) are those of the bins on the scale of `value`, where
        that is another one.
        """
        probability, value = self.probability.double(), value.double().unsqueeze(1)
        if edges is None:
            edges = self.bins.edges(value.device).unsqueeze(0).expand(len(value), -1)
        edges = edges.double()
        left, right = edges[:, :-1], edges[:, 1:]
        above = probability.cumsum(1)
        below, width = above - probability, right - left
        # Each bin in two parts, before and behind the value; within a part the belief is a straight line.
        cut = torch.minimum(torch.maximum(value, left), right)
        middle = below + probability * torch.where(width > 0, (cut - left) / width, 0.0)
        before = (cut - left) * (below**2 + below * middle + middle**2) / 3
        first, last = 1 - middle, 1 - above
        behind = (right - cut) * (first**2 + first * last + last**2) / 3
        outside = (edges[:, :1] - value).clamp(min=0) + (value - edges[:, -1:]).clamp(min=0)
        return (before + behind).sum(1) + outside.squeeze(1)

    def moved(self, by: Tensor) -> NumberDistribution:
        """The same as far up the scale as `by` (n,) says; what would go beyond the ends stays in the end bins."""
        bins = (by / self.bins.width).clamp(-self.bins.count, self.bins.count).unsqueeze(1)
        place = torch.arange(1, self.bins.count, device=by.device) - bins  # where the inner edges were
        below = functional.pad(self.probability.cumsum(1), (1, 0))
        left = place.floor().clamp(0, self.bins.count - 1)
        at, part = left.long(), (place - left).clamp(0, 1)
        inner = below.gather(1, at) * (1 - part) + below.gather(1, at + 1) * part
        bounds = torch.cat([below[:, :1], inner, below[:, -1:]], 1)
        return self._replace(probability=bounds[:, 1:] - bounds[:, :-1])


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
