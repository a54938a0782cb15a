"""HINGE (Rosso, Yang and Cudré-Mauroux, WWW 2020): a convolution over each triplet, and one over it with a qualifier.

    α = ReLU(BN(Ω₁ ∗ [h; r; t]))      β_i = ReLU(BN(Ω₂ ∗ [h; r; t; q_i; v_i]))      S = w · min(α, β₁, …, β_n) + b

Filters span all rows of their image, so a convolution is a sum over rows: candidates for one row add to what the
others make. Numbers are tokens by their literals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.corruption import LossKind, Pool
from hynt.batches.fact_tensors import Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Range, Share
from hynt.kernels.convolved_minimum import KERNEL, convolved_minimum, moments, windows_of
from hynt.kernels.device import HAS_TRITON
from hynt.kernels.swept_minimum import SweptMinimum
from hynt.kernels.triplet_sweep import fact_vectors
from hynt.models.layers.relatedness import MaskedBatchNorm, TripletModel, uniform_table
from hynt.models.layers.tokens import LiteralValues, NumberReading, Unseen, token_count


@dataclass(frozen=True)
class HingeSettings:
    """HINGE's sizes and how its negatives are drawn."""

    dimension: Annotated[int, Range(KERNEL)] = 256  # d
    filters: Count = 400  # n_f, of each convolution
    relation_share: Share = 0.5  # of negatives that exchange a relation
    pool: Pool = "seen"  # where negatives' values come from: seen in such a place, all, or all possible answers
    negatives: Count = 1  # for each fact
    loss: LossKind = "logistic"  # each told true from false, or the fact chosen among its negatives
    numbers: NumberReading = "argmax"  # how a ranking of literals becomes a number
    unseen: Unseen = "own"  # what stands for a literal that training lacks


class RowConvolution(nn.Module):
    """Filters of as many rows as an image has and KERNEL columns, batch normalisation, ReLU."""

    def __init__(self, rows: int, filters: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(filters, rows, KERNEL))
        nn.init.trunc_normal_(self.weight, std=0.1, a=-0.2, b=0.2)
        self.bias = nn.Parameter(torch.zeros(filters))
        self.norm = MaskedBatchNorm(filters)

    def linear(self, vectors: Tensor, first: int) -> Tensor:
        """(n, filters × (d − 2)) what rows `first`, `first` + 1, … add, from (n, rows, d)."""
        weight = self.weight[:, first : first + vectors.shape[1]]
        if not vectors.is_cuda:
            return functional.conv1d(vectors, weight).flatten(1)
        # As a matrix product, whose precision evaluation can set: a GPU's convolutions round to ten bits by default.
        windows = vectors.unfold(2, KERNEL, 1).transpose(2, 3).flatten(1, 2)  # (n, rows × KERNEL, d − 2)
        return torch.matmul(weight.flatten(1), windows).flatten(1)

    is_monotone = True

    def forward(self, image: Tensor) -> Tensor:
        """(n, filters × (d − 2)) from whole images (n, rows, d), with fixed statistics."""
        return self.rest(self.fold(self.linear(image, 0), shifted=True))

    def after(self, added: Tensor, counted: Tensor) -> Tensor:
        """The same shape: bias, normalised by filter, ReLU."""
        image = self._image(added) + self.bias.unsqueeze(1)
        return self.rest(self.norm(image, counted).flatten(-2))

    def normalised(self, windows: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """(filters, rows × KERNEL) filters and (filters,) what is added, normalised for windows (n, rows × KERNEL,
        columns): `after` as one linear map, since all that it measures follows from the windows' moments.
        """
        weight = self.weight.flatten(1)
        if self.training:
            size, mean, covariance = moments(windows, counted)
            middle = (weight * mean).sum(1)  # sums, not products, whose numbers a GPU may round to ten bits
            variance = (weight.unsqueeze(2) * weight.unsqueeze(1) * covariance).sum((1, 2)).clamp(min=0)
            self.norm.follow(middle + self.bias, variance, size)
            scale = self.norm.weight * torch.rsqrt(variance + self.norm.epsilon)
            return weight * scale.unsqueeze(1), self.norm.bias - middle * scale
        scale, shift = self.norm.scale_and_shift()
        return weight * scale.unsqueeze(1), scale * self.bias + shift

    def fold(self, added: Tensor, *, shifted: bool) -> Tensor:
        """The running statistics and, where `shifted`, the biases."""
        scale, shift = self.norm.scale_and_shift()
        image = self._image(added) * scale.unsqueeze(1)
        return (image + (scale * self.bias + shift).unsqueeze(1) if shifted else image).flatten(-2)

    def _image(self, added: Tensor) -> Tensor:
        """(…, filters, d − 2)."""
        filters = len(self.bias)
        return added.view(*added.shape[:-1], filters, added.shape[-1] // filters)

    def rest(self, folded: Tensor) -> Tensor:
        """ReLU, which is what comes after the folded normalisation."""
        return functional.relu(folded)


class Hinge(TripletModel):
    """Two convolutions, a minimum, and a linear output."""

    settings: HingeSettings
    of_triplet: RowConvolution
    of_qualifier: RowConvolution

    def __init__(self, sizes: Sizes, settings: HingeSettings, literals: LiteralValues) -> None:
        super().__init__(sizes, settings, literals)
        self.entity = uniform_table(token_count(sizes), settings.dimension)
        self.relation = uniform_table(sizes.relations, settings.dimension)
        self.of_triplet = RowConvolution(3, settings.filters)
        self.of_qualifier = RowConvolution(5, settings.filters)
        self.output = nn.Linear(settings.filters * (settings.dimension - KERNEL + 1), 1)
        nn.init.xavier_normal_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.kernel = SweptMinimum(self.output)

    def fact_score(self, triplet: Tensor, qualifiers: Tensor) -> Tensor:
        """() S of one fact from the vectors (3, d) of h, r, t and (n, 2, d) of its qualifiers, as the paper has it.

        `TripletModel` gives the same by `hynt.kernels.triplet_sweep`, for whole batches and for all candidates.
        """
        alpha = self.of_triplet(triplet.unsqueeze(0))
        beta = self.of_qualifier(torch.cat([triplet.expand(len(qualifiers), -1, -1), qualifiers], 1))
        score: Tensor = self.output(torch.cat([alpha, beta]).amin(0))
        return score.squeeze()

    def finish(self, triplet: Tensor, lowest: Tensor | None, has_any: Tensor) -> Tensor:  # noqa: ARG002
        """w·min(α, β₁, …) + b. The minimum over no qualifier is infinite and drops out by itself."""
        features = triplet if lowest is None else torch.minimum(triplet, lowest)
        scores: Tensor = self.output(features)
        return scores.squeeze(-1)

    def score_facts(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """(rows,) logits of whole facts."""
        return self.fused_scores(batch, real) if HAS_TRITON and real.is_cuda else super().score_facts(batch, real)

    def fused_scores(self, batch: MaskedBatch, real: Tensor) -> Tensor:
        """The same by `hynt.kernels.convolved_minimum`, which keeps no features."""
        images, pairs = fact_vectors(self, batch)
        slot_row, present = batch.places.slot_row, batch.qualifier_present
        windows = windows_of(images)
        triplet = self.of_triplet.normalised(windows, real)
        seen = torch.cat([windows[slot_row], windows_of(pairs)], 1)
        both = self.of_qualifier.normalised(seen, present & real[slot_row])
        layout = [number for segment in batch.layout.segments for number in segment]
        weight = self.output.weight.view(len(self.of_triplet.bias), -1)
        scores = convolved_minimum(images, pairs, present, slot_row, layout, triplet, both, weight)
        return scores + self.output.bias
