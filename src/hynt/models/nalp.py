"""NaLP (Guan, Jin, Wang and Cheng, WWW 2019): a fact is true if all its pairs of role and value are related.

    o_i = ReLU(BN(W_c [p_i; x_i]))      ρ_ij = ReLU(G [o_i; o_j] + b)      S = w · min over all i, j of ρ_ij + c

Numbers are tokens by their literals. Relations are exchanged and predicted for head and tail at once, which repairs
what the authors' code does one role at a time ("NaLP-Fix").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, relu

from hynt.batches.corruption import LossKind, Pool
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Share
from hynt.kernels.pair_sweep import PairQuestion, read_pairs, score_whole
from hynt.models.contract import EVERYWHERE, READS_A_FACT, Candidates, Capability, EncodedQuestion, Part
from hynt.models.layers.relatedness import Relatedness, score_pairs
from hynt.models.layers.tokens import LiteralValues, NumberReading, Unseen
from hynt.objectives.negatives import NegativeFacts, negative_phases
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings


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


class Nalp(nn.Module):
    """Roles, values, and the relatedness of their pairs."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (NegativeFacts,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE

    def __init__(self, sizes: Sizes, settings: NalpSettings, literals: LiteralValues) -> None:
        super().__init__()
        self.sizes, self.settings, self.literals = sizes, settings, literals
        own = (settings.dimension, settings.filters, settings.hidden, settings.unseen)
        self.relatedness = Relatedness(sizes, *own)
        self.channels = (self.relatedness,)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: NalpSettings) -> Nalp:
        """A new model; training facts say which literals each relation has."""
        return cls(sizes, settings, LiteralValues.of(train))

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """One phase: true facts beside false ones made from them."""
        return negative_phases(self, self.settings, train, settings)

    def fact_score(self, roles: Tensor, values: Tensor) -> Tensor:
        """() S of one fact from the (m,) ids of its roles and values, as the paper has it: every ρ_ij written down.

        What follows gives the same by `hynt.kernels.pair_sweep`, for whole batches and for all candidates.
        """
        own = self.relatedness
        pairs = torch.cat([embedding(roles, own.role), embedding(values, own.value)], 1)  # (m, 2d) [p_i; x_i]
        o = relu(own.norm.fixed(linear(pairs, own.convolution), -1))  # (m, filters)
        every = torch.cat([o.unsqueeze(1).expand(-1, len(o), -1), o.expand(len(o), -1, -1)], 2)  # [o_i; o_j]
        rho = relu(linear(every, own.relate, own.relate_bias))  # (m, m, hidden)
        score: Tensor = own.output(rho.amin((0, 1)))
        return score.squeeze()

    def score_facts(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """(rows,) logits of whole facts."""
        return score_whole(self.channels, batch, real)

    def read(self, batch: MaskedBatch) -> PairQuestion:
        """The minima over the visible pairs."""
        return read_pairs(self.channels, batch)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Logits of the facts that candidates make, or the numbers."""
        assert isinstance(question, PairQuestion)
        return score_pairs(self.channels, question, candidates, self.sizes, self.literals, self.settings.numbers)
