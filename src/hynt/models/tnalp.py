"""tNaLP (Guan, Jin, Guo, Wang and Cheng, TKDE 2021): NaLP, and the types of roles and values must fit as well.

Types are latent vectors. A fact is as true as the worse of relatedness and fit: min(σ(s), σ(s_t)) = σ(min(s, s_t)).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.corruption import LossKind, Pool
from hynt.batches.fact_tensors import Sizes
from hynt.config.declarations import Count, Share
from hynt.kernels.pair_sweep import role_count
from hynt.models.layers.relatedness import PairModel, Relatedness, uniform_table, weighed
from hynt.models.layers.tokens import LiteralValues, NumberReading, Unseen, read_tokens, token_count


@dataclass(frozen=True)
class TnalpSettings:
    """tNaLP's sizes and how its negatives are drawn."""

    dimension: Count = 256  # d, of roles and values
    filters: Count = 200  # n_f
    hidden: Count = 1000  # n_g, units of the relatedness network
    type_dimension: Count = 30  # d_t, of latent types
    type_hidden: Count = 200  # n_t, units of the network that compares types
    relation_share: Share | None = None  # of negatives; None: relations among all ids
    pool: Pool = "seen"  # where negatives' values come from: seen in such a place, all, or all possible answers
    negatives: Count = 1  # for each fact
    loss: LossKind = "logistic"  # each told true from false, or the fact chosen among its negatives
    numbers: NumberReading = "argmax"  # how a ranking of literals becomes a number
    unseen: Unseen = "own"  # what stands for a literal that training lacks


class TypeFit(nn.Module):
    """τ_i = ReLU(T [pt_i; xt_i] + b); the score is linear in the minimum over i."""

    def __init__(self, sizes: Sizes, dimension: int, hidden: int, unseen: Unseen) -> None:
        super().__init__()
        self.width = hidden
        self.sizes, self.unseen = sizes, unseen
        self.role = uniform_table(role_count(sizes.relations), dimension)
        self.value = uniform_table(token_count(sizes), dimension)
        self.compare = nn.Linear(2 * dimension, hidden)  # T
        self.output = nn.Linear(hidden, 1)
        for layer in (self.compare, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def role_part(self, roles: Tensor) -> Tensor:
        """(…, hidden): the left half of T on types of roles, and its bias."""
        weight = self.compare.weight[:, : self.role.shape[1]]
        return functional.linear(functional.embedding(roles, self.role), weight, self.compare.bias)

    def value_part(self, values: Tensor) -> Tensor:
        """(…, hidden): the right half of T on types of values."""
        weight = self.compare.weight[:, self.role.shape[1] :]
        return functional.linear(
            read_tokens(values, self.value, self.sizes, "own" if self.training else self.unseen), weight
        )

    def both(self, roles: Tensor, values: Tensor) -> Tensor:
        """(n, hidden) the sum of both parts for pairs of (n,) roles and values, by one product."""
        vectors = read_tokens(values, self.value, self.sizes, "own" if self.training else self.unseen)
        return self.compare(torch.cat([functional.embedding(roles, self.role), vectors], 1))  # type: ignore[no-any-return]

    def after(self, joined: Tensor, counted: Tensor | None) -> Tensor:  # noqa: ARG002
        """(…, hidden) τ; nothing here depends on other rows."""
        return functional.relu(joined)

    def finish(self, lowest: Tensor) -> Tensor:
        """(…) from the minimum of τ."""
        return weighed(lowest, self.output)


class Tnalp(PairModel):
    """Relatedness and the fit of types."""

    settings: TnalpSettings

    def __init__(self, sizes: Sizes, settings: TnalpSettings, literals: LiteralValues) -> None:
        super().__init__(sizes, settings, literals)
        own = (settings.dimension, settings.filters, settings.hidden, settings.unseen)
        self.relatedness = Relatedness(sizes, *own)
        self.type_fit = TypeFit(sizes, settings.type_dimension, settings.type_hidden, settings.unseen)
        self.channels = (self.relatedness, self.type_fit)
