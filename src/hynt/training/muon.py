"""Muon: the momentum of the layers' matrices is made orthogonal before it moves them.

A gradient of a matrix has a few large directions and many small ones; its nearest orthogonal matrix moves all of them
alike. Maps that were laid side by side in one matrix (queries, keys and values, say) are maps of their own: so a matrix
is cut into square blocks as wide as its shorter side. Five Newton–Schulz steps, all blocks of one size at once, give
the nearest orthogonal matrix well enough. No step looks at a value from the host, so it can be captured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
UPDATE_SIZE = 0.2
"""Root mean square of an update before the rate: about that of Adam's, so that their rates compare."""
STEPS = 5
FIRST, THIRD, FIFTH = 3.4445, -4.7750, 2.0315
"""Of the polynomial a·x + b·x³ + c·x⁵ on singular values: it draws all of them near 1 in few steps."""


def layer_matrices(model: nn.Module) -> tuple[nn.Parameter, ...]:
    """The matrices that Muon is for: weights of linear maps in a model's list of layers, made of square blocks.

    Not tables of entities or relations, whose rows learn one by one, nor what leads into the layers and out of them.
    """
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    maps = {id(part): part for layers in lists for part in layers.modules() if isinstance(part, nn.Linear)}
    weights = [one for part in maps.values() for name, one in part.named_parameters(recurse=False) if name == "weight"]
    return tuple(
        one for one in weights if one.requires_grad and min(one.shape) > 1 and not max(one.shape) % min(one.shape)
    )


class Muon:
    """Moves matrices by their orthogonalised momentum, with Nesterov's look ahead and decoupled weight decay."""

    def __init__(self, matrices: Sequence[nn.Parameter], weight_decay: float, *, beside: bool = False) -> None:
        """`beside`: lays matrices of one side side by side, so that one sweep moves them all."""
        self.weight_decay = weight_decay
        self._sides: dict[int, list[nn.Parameter]] = {}
        for one in matrices:
            self._sides.setdefault(min(one.shape), []).append(one)
        self.wholes = {side: side_by_side(some) for side, some in self._sides.items()} if beside else {}
        # (blocks, side, side) for each side.
        self.momentum = {side: torch.zeros_like(_stacked(list(some), side)) for side, some in self._sides.items()}

    @torch.no_grad()
    def update(self, rate: Tensor, scale: Tensor | None, failed: Tensor) -> None:
        """One step at `rate` () along gradients over `scale` (); where `failed` () is up, nothing changes."""
        works = failed == 0
        for side, matrices in self._sides.items():
            gradient = _stacked([torch.zeros_like(one) if one.grad is None else one.grad for one in matrices], side)
            gradient = torch.where(works, gradient if scale is None else gradient / scale, 0.0)
            momentum = self.momentum[side]
            momentum.lerp_(gradient, works * (1 - MOMENTUM))
            update = orthogonalised(gradient.lerp(momentum, MOMENTUM)) * (UPDATE_SIZE * math.sqrt(side))
            kept, moved = 1 - works * rate * self.weight_decay, works * rate
            blocks = torch.split(update, [one.numel() // side**2 for one in matrices])
            both = [(one, _joined(own, one.shape)) for one, own in zip(matrices, blocks, strict=True)]
            if side in self.wholes and all(one.grad is not None for one in matrices):
                whole = torch.cat([step.reshape(-1) for _, step in both])
                self.wholes[side].mul_(kept).addcmul_(whole, moved, value=-1)
                continue
            learning, steps = zip(*((one, step) for one, step in both if one.grad is not None), strict=True)
            # All at once: a launch for each of a hundred matrices would take longer than the work itself.
            torch._foreach_mul_(learning, kept)
            torch._foreach_sub_(learning, torch._foreach_mul(steps, moved))

    def tensors(self) -> dict[str, Tensor]:
        """The state by name, for a checkpoint."""
        return {f"momentum.{side}": value for side, value in self.momentum.items()}


def orthogonalised(blocks: Tensor) -> Tensor:
    """(n, side, side) float32: matrices with the same singular vectors and singular values near 1; 0 stays 0."""
    x = blocks / (blocks.norm(dim=(1, 2), keepdim=True) + 1e-7)
    x = x.to(torch.bfloat16 if blocks.is_cuda else torch.float32)
    for _ in range(STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=THIRD, alpha=FIFTH), x, beta=FIRST)
    found: Tensor = x.float()
    return found


def side_by_side(parameters: Sequence[nn.Parameter]) -> Tensor:
    """(all,) the numbers of all parameters, which become views of it."""
    whole = torch.cat([one.detach().reshape(-1) for one in parameters])
    for one, mine in zip(parameters, torch.split(whole, [one.numel() for one in parameters]), strict=True):
        one.data = mine.view(one.shape)
    return whole


def _stacked(matrices: Sequence[Tensor], side: int) -> Tensor:
    """(blocks, side, side): the square blocks of all matrices, row by row of each."""
    cut = [one.detach().reshape(-1, side, one.shape[1] // side, side).transpose(1, 2) for one in matrices]
    return torch.cat([one.reshape(-1, side, side) for one in cut])


def _joined(blocks: Tensor, shape: torch.Size) -> Tensor:
    """The matrix of this shape whose blocks these are."""
    side = blocks.shape[1]
    return blocks.view(-1, shape[1] // side, side, side).transpose(1, 2).reshape(shape)
