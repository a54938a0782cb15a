"""What models share that tell true facts from false ones: NaLP, tNaLP, HINGE and NeuInfer.

First how related the pairs of a fact are: the heart of NaLP, and half of tNaLP, pooled without forming pairs of pairs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.kernels import pair_sweep, triplet_sweep
from hynt.kernels.pair_sweep import Channel, PairQuestion, role_count
from hynt.kernels.swept_minimum import SweptMinimum
from hynt.kernels.triplet_sweep import FactQuestion, PartLayer
from hynt.models.contract import EVERYWHERE, READS_A_FACT, Candidates, Capability, EncodedQuestion, Part, Relations
from hynt.models.layers.tokens import LiteralValues, Unseen, read_tokens, score_candidates, token_count
from hynt.objectives.negatives import NegativeFacts, negative_phases
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings


def uniform_table(rows: int, dimension: int) -> nn.Parameter:
    """(rows, dimension), uniform within ± 1 / √dimension."""
    bound = dimension**-0.5
    return nn.Parameter(torch.empty(rows, dimension).uniform_(-bound, bound))


def weighed(features: Tensor, output: nn.Linear) -> Tensor:
    """(…) what a linear layer with one outcome makes of (…, width). While training it is a sum, which a compiler merges
    with what is around it: a product of its own, three with those of the way back, takes longer than all that.
    """
    if output.training:
        return (features * output.weight[0]).sum(-1) + output.bias
    return output(features).squeeze(-1)  # type: ignore[no-any-return]


class Relatedness(nn.Module):
    """o_i = ReLU(BN(W_c [p_i; x_i])); ρ_ij = ReLU(G [o_i; o_j] + b); the score is linear in the minimum over all i, j.

    With G = [G₁ G₂] the minimum over pairs (i, j) is ReLU(min_i G₁o_i + min_j G₂o_j + b): i and j range
    independently and ReLU is monotone. So (G₁o_i, G₂o_i) is what a pair of role and value becomes.
    """

    def __init__(self, sizes: Sizes, dimension: int, filters: int, hidden: int, unseen: Unseen) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.sizes, self.unseen = sizes, unseen
        self.role = uniform_table(role_count(sizes.relations), dimension)
        self.value = uniform_table(token_count(sizes), dimension)
        self.convolution = nn.Parameter(torch.empty(filters, 2 * dimension))  # W_c
        nn.init.trunc_normal_(self.convolution, std=0.1, a=-0.2, b=0.2)
        self.norm = MaskedBatchNorm(filters)
        self.relate = nn.Parameter(nn.init.xavier_uniform_(torch.empty(hidden, 2 * filters)))  # G
        self.relate_bias = nn.Parameter(torch.zeros(hidden))
        self.output = nn.Linear(hidden, 1)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def role_part(self, roles: Tensor) -> Tensor:
        """(…, filters): the left half of W_c on roles."""
        d = self.role.shape[1]
        return functional.linear(functional.embedding(roles, self.role), self.convolution[:, :d])

    def value_part(self, values: Tensor) -> Tensor:
        """(…, filters): the right half of W_c on values."""
        d = self.role.shape[1]
        vectors = read_tokens(values, self.value, self.sizes, "own" if self.training else self.unseen)
        return functional.linear(vectors, self.convolution[:, d:])

    def both(self, roles: Tensor, values: Tensor) -> Tensor:
        """(n, filters) the sum of both parts for pairs of (n,) roles and values, by one product."""
        vectors = read_tokens(values, self.value, self.sizes, "own" if self.training else self.unseen)
        return functional.linear(torch.cat([functional.embedding(roles, self.role), vectors], 1), self.convolution)

    def after(self, joined: Tensor, counted: Tensor | None) -> Tensor:
        """(…, 2 hidden): G₁o and G₂o."""
        normal = self.norm.fixed(joined, -1) if counted is None else self.norm(joined, counted)
        filters = len(self.convolution)
        both = torch.cat([self.relate[:, :filters], self.relate[:, filters:]])
        return functional.linear(functional.relu(normal), both)

    def finish(self, lowest: Tensor) -> Tensor:
        """(…) from the minima of G₁o and of G₂o."""
        first, second = lowest.chunk(2, -1)
        return weighed(functional.relu(first + second + self.relate_bias), self.output)


# Batch normalisation in which padding does not count.


class MaskedBatchNorm(nn.Module):
    """Normalises each feature of (n, features) or (n, features, width) by statistics of the rows that count.

    As torch's own, but shapes stay static: rows are left out by a weight, not by picking the others.
    """

    running_mean: Tensor  # (features,)
    running_variance: Tensor  # (features,)

    momentum, epsilon = 0.1, 1e-5

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_variance", torch.ones(features))

    def forward(self, x: Tensor, counted: Tensor) -> Tensor:
        """The same shape. `counted` (n,) bool says which rows make the statistics while training."""
        if not self.training:
            return self.fixed(x, 1)
        x = x.float()
        rows, one_each = counted.float(), (1, -1, 1)[: x.dim()]
        share = rows.view(-1, *(1,) * (x.dim() - 1))
        size = rows.sum() * (x.shape[2] if x.dim() == 3 else 1)
        over = (0, 2)[: x.dim() - 1]
        mean = (x * share).sum(over) / size.clamp(min=1)
        centred = x - mean.view(one_each)
        variance = (centred.square() * share).sum(over) / size.clamp(min=1)
        self.follow(mean, variance, size)
        scale = self.weight * torch.rsqrt(variance + self.epsilon)
        return centred * scale.view(one_each) + self.bias.view(one_each)

    @torch.no_grad()
    def follow(self, mean: Tensor, variance: Tensor, size: Tensor) -> None:
        """Moves the running statistics towards (features,) those of a batch with () so many numbers of each feature."""
        # A batch without a row that counts, such as one of facts without qualifiers, leaves no trace.
        step = torch.where(size > 1, self.momentum, 0.0)
        self.running_mean += step * (mean - self.running_mean)
        self.running_variance += step * (variance * size / (size - 1).clamp(min=1) - self.running_variance)

    def fixed(self, x: Tensor, axis: int) -> Tensor:
        """Any shape with features at `axis`, by the running statistics: then every row is normalised by itself."""
        scale, shift = self.scale_and_shift()
        shape = [1] * x.dim()
        shape[axis] = len(scale)
        return x * scale.view(shape) + shift.view(shape)

    def scale_and_shift(self) -> tuple[Tensor, Tensor]:
        """(features,) each: the running statistics as a factor and a term."""
        scale = self.weight * torch.rsqrt(self.running_variance + self.epsilon)
        return scale, self.bias - self.running_mean * scale


# What models share that tell true facts from false ones, and take literals for tokens.


class TellsTruth(nn.Module):
    """A model that is trained to tell facts from what is no fact."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (NegativeFacts,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE
    settings: Any  # the model's own

    def __init__(self, sizes: Sizes, settings: Any, literals: LiteralValues) -> None:
        super().__init__()
        self.sizes, self.settings, self.literals = sizes, settings, literals

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: Any) -> Self:
        """A new model; training facts say which literals each relation has."""
        return cls(sizes, settings, LiteralValues.of(train))

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """One phase: true facts beside false ones made from them."""
        return negative_phases(self, self.settings, train, settings)


class PairModel(TellsTruth):
    """Nothing but channels, which look at pairs of role and value."""

    channels: tuple[Channel, ...]
    relatedness: Relatedness

    def entity_vectors(self) -> Tensor:
        """(tokens, d) what was learned about each entity as a value, then about literals."""
        return self.relatedness.value

    def score_facts(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """(rows,) logits of whole facts."""
        return pair_sweep.score_whole(self.channels, batch, real)

    def read(self, batch: MaskedBatch) -> PairQuestion:
        """The minima over the visible pairs, of each channel."""
        return pair_sweep.read_pairs(self.channels, batch)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Logits of the facts that candidates make, or the numbers."""
        assert isinstance(question, PairQuestion)
        if isinstance(candidates, Relations):  # asked of a triplet, each makes two pairs
            return pair_sweep.score_relations(self.channels, question, self.sizes.relations)

        def score(asked: PairQuestion, ids: Tensor) -> Tensor:
            return pair_sweep.score_values(self.channels, asked, ids, self.sizes.relations)

        return score_candidates(question, candidates, score, self.sizes, self.literals, self.settings.numbers)


class TripletModel(TellsTruth, ABC):
    """Layers that look at triplets, and at triplets with one qualifier."""

    entity: nn.Parameter
    relation: nn.Parameter
    of_triplet: PartLayer
    of_qualifier: PartLayer
    kernel: SweptMinimum | None

    @abstractmethod
    def finish(self, triplet: Tensor, lowest: Tensor | None, has_any: Tensor) -> Tensor:
        """Scores from what the layers make, as `TripletNetwork` has it."""

    def vectors(self, ids: Tensor) -> Tensor:
        """(…, d) vectors of visible entities and literals (…)."""
        return read_tokens(ids, self.entity, self.sizes, self.settings.unseen)

    def entity_vectors(self) -> Tensor:
        """(tokens, d) what was learned about each entity, then about literals."""
        return self.entity

    def score_facts(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """(rows,) logits of whole facts."""
        return triplet_sweep.score_whole(self, batch, real)

    def read(self, batch: MaskedBatch) -> FactQuestion:
        """The visible parts of each fact as ids; they are embedded when candidates are scored."""
        return triplet_sweep.read_fact(batch)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Logits of the facts that candidates make, or the numbers."""
        assert isinstance(question, FactQuestion)
        score = partial(triplet_sweep.sweep, self)
        return score_candidates(question, candidates, score, self.sizes, self.literals, self.settings.numbers)
