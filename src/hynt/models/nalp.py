"""NaLP (Guan, Jin, Wang and Cheng, WWW 2019): a fact is true if all its pairs of role and value are related.

    o_i = ReLU(BN(W_c [p_i; x_i]))      ρ_ij = ReLU(G [o_i; o_j] + b)      S = w · min over all i, j of ρ_ij + c

Numbers are tokens by their literals. Relations are exchanged and predicted for head and tail at once, which repairs
what the authors' code does one role at a time ("NaLP-Fix").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, relu

from hynt.batches.corruption import LossKind, Pool
from hynt.batches.fact_tensors import Sizes
from hynt.config.declarations import Count, Share
from hynt.models.layers.relatedness import PairModel, Relatedness
from hynt.models.layers.tokens import LiteralValues, NumberReading, Unseen


@dataclass(frozen=True)
class NalpSettings:
    """NaLP's sizes and how its negatives are drawn."""

    dimension: Count = 256  # d, of roles and values
    filters: Count = 200  # n_f
    hidden: Count = 1000  # n_g, units of the relatedness network
    relation_share: Share | None = None  # of negatives; None: relations among all ids
    pool: Pool = "seen"  # where negatives' values come from: seen in such a place, all, or all possible answers
    negatives: Count = 1  # for each fact
    loss: LossKind = "logistic"  # each told true from false, or the fact chosen among its negatives
    numbers: NumberReading = "argmax"  # how a ranking of literals becomes a number
    unseen: Unseen = "own"  # what stands for a literal that training lacks


class Nalp(PairModel):
    """Roles, values, and the relatedness of their pairs."""

    settings: NalpSettings

    def __init__(self, sizes: Sizes, settings: NalpSettings, literals: LiteralValues) -> None:
        super().__init__(sizes, settings, literals)
        own = (settings.dimension, settings.filters, settings.hidden, settings.unseen)
        self.relatedness = Relatedness(sizes, *own)
        self.channels = (self.relatedness,)

    def fact_score(self, roles: Tensor, values: Tensor) -> Tensor:
        """() S of one fact from the (m,) ids of its roles and values, as the paper has it: every ρ_ij written down.

        `PairModel` gives the same by `hynt.kernels.pair_sweep`, for whole batches and for all candidates.
        """
        own = self.relatedness
        pairs = torch.cat([embedding(roles, own.role), embedding(values, own.value)], 1)  # (m, 2d) [p_i; x_i]
        o = relu(own.norm.fixed(linear(pairs, own.convolution), -1))  # (m, filters)
        every = torch.cat([o.unsqueeze(1).expand(-1, len(o), -1), o.expand(len(o), -1, -1)], 2)  # [o_i; o_j]
        rho = relu(linear(every, own.relate, own.relate_bias))  # (m, m, hidden)
        score: Tensor = own.output(rho.amin((0, 1)))
        return score.squeeze()
