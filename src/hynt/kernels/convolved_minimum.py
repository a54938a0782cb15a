"""HINGE's scores of whole facts, Σ over features of w·max(0, min(α, β₁, …)), where α and β are normalised convolutions.

Written out, features are by far the largest tensors of a step, and they pass through memory a dozen times. Here they
never reach it. Two things make that possible:

- The statistics that normalise a filter's output follow from the mean and the products of the numbers that it sees:
  of the windows' mean m and second moments M, a filter w finds w·m on average and w·(M − m·mᵀ)·w of variance.
- A fact's score has one gradient, so the score's derivatives by its windows are made with the score and only
  multiplied later.

The plain twin is `triplet_sweep.score_whole` with `RowConvolution.after`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

KERNEL = 3
"""Columns that a filter sees at once."""


def windows_of(images: Tensor) -> Tensor:
    """(n, rows × KERNEL, columns) what filters see at each place, from (n, rows, d)."""
    return images.unfold(2, KERNEL, 1).transpose(2, 3).flatten(1, 2)


def moments(windows: Tensor, counted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """() how many places there are; (k,) mean and (k, k) covariance of windows (n, k, columns) of the rows that count,
    (n,) bool.
    """
    share = counted.to(windows.dtype)
    size = share.sum() * windows.shape[2]
    mean = torch.mv(windows.sum(2).t(), share) / size.clamp(min=1)
    products = (torch.bmm(windows, windows.transpose(1, 2)) * share.view(-1, 1, 1)).sum(0) / size.clamp(min=1)
    return size, mean, products - torch.outer(mean, mean)


def convolved_minimum(
    images: Tensor,
    pairs: Tensor,
    present: Tensor,
    slot_row: Tensor,
    layout: list[int],
    triplet: tuple[Tensor, Tensor],
    both: tuple[Tensor, Tensor],
    output: Tensor,
) -> Tensor:
    """(n,) float32 scores of facts with images (n, 3, d), and pairs (slots, 2, d) of which some are `present` (slots,).

    Slots belong to rows `slot_row` (slots,); `layout` is rows and slots of each row, segment by segment.
    Filters (filters, 9) and (filters, 15) come with what is added, (filters,); output (filters, columns).
    """
    score: Tensor = _forward(
        images, pairs, present, slot_row, layout, triplet[0], triplet[1], both[0], both[1], output
    )[0]
    return score


@torch.library.custom_op("hynt::convolved_minimum", mutates_args=())
def _forward(
    images: Tensor,
    pairs: Tensor,
    present: Tensor,
    slot_row: Tensor,
    layout: list[int],
    triplet: Tensor,
    shift: Tensor,
    both: Tensor,
    shift_both: Tensor,
    output: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(n,) scores, and their derivatives by windows of triplets (n, 9, columns) and of pairs (slots, 6, columns)."""
    from hynt.kernels.convolved_minimum_kernel import (  # importing triton takes long
        Facts,
        FilterWeights,
        scores_and_slopes,
    )

    del slot_row
    facts = Facts(images.contiguous(), pairs.contiguous(), present)
    weights = FilterWeights(*(one.contiguous() for one in (triplet, shift, both, shift_both, output)))
    return scores_and_slopes(facts, weights, layout)


@_forward.register_fake
def _(images: Tensor, pairs: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    n, columns = len(images), images.shape[2] - KERNEL + 1
    return images.new_empty(n), images.new_empty(n, 9, columns), images.new_empty(len(pairs), 6, columns)


@torch.library.custom_op("hynt::convolved_minimum_backward", mutates_args=())
def _backward(
    outer: Tensor,
    images: Tensor,
    pairs: Tensor,
    present: Tensor,
    layout: list[int],
    triplet: Tensor,
    shift: Tensor,
    both: Tensor,
    shift_both: Tensor,
    output: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the five last."""
    from hynt.kernels.convolved_minimum_kernel import Facts, FilterWeights, weight_gradients

    facts = Facts(images.contiguous(), pairs.contiguous(), present)
    weights = FilterWeights(*(one.contiguous() for one in (triplet, shift, both, shift_both, output)))
    return tuple(weight_gradients(outer.contiguous(), facts, weights, layout))  # type: ignore[return-value]


@_backward.register_fake
def _(outer: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(one, memory_format=torch.contiguous_format) for one in others[-5:])


def _images_from(slopes: Tensor, factor: Tensor, rows: int) -> Tensor:
    """(n, rows, d) gradients from derivatives by windows (n, rows × KERNEL, columns) and a factor of each row (n,)."""
    apart = slopes.view(len(slopes), rows, KERNEL, slopes.shape[2])
    moved = [functional.pad(apart[:, :, shift], (shift, KERNEL - 1 - shift)) for shift in range(KERNEL)]
    return (moved[0] + moved[1] + moved[2]) * factor.view(-1, 1, 1)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.layout = inputs[4]
    ctx.save_for_backward(*(one for one in inputs if isinstance(one, Tensor)), output[1], output[2])


def _return(ctx: Any, outer: Tensor, *unused: Any) -> tuple[Any, ...]:
    images, pairs, present, slot_row, *weights, to_images, to_pairs = ctx.saved_tensors
    found = _backward(outer, images, pairs, present, ctx.layout, *weights)
    of_images, of_pairs = _images_from(to_images, outer, 3), _images_from(to_pairs, outer[slot_row], 2)
    return (of_images, of_pairs, None, None, None, *found)


torch.library.register_autograd("hynt::convolved_minimum", _return, setup_context=_remember)
