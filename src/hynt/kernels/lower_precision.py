"""The parameters of several layers in a lower precision: one cast for all of them, and one on the way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class _Lowered(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, kind: torch.dtype, *parameters: Tensor) -> tuple[Tensor, ...]:
        context.shapes = [one.shape for one in parameters]
        flat = torch.cat([one.reshape(-1) for one in parameters]).to(kind)
        return tuple(_split(flat, context.shapes))

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        flat = torch.cat([one.reshape(-1) for one in gradients]).float()
        return None, *_split(flat, context.shapes)


def _split(flat: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
    parts = torch.split(flat, [shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def lowered(layers: Iterable[nn.Module], kind: torch.dtype) -> list[dict[str, Tensor]]:
    """The parameters of each layer by name, in this precision."""
    named: list[dict[str, Tensor]] = [dict(layer.named_parameters()) for layer in layers]
    if kind == torch.float32:
        return named
    each = iter(_Lowered.apply(kind, *(one for of_layer in named for one in of_layer.values())))  # type: ignore[no-untyped-call]
    return [{name: next(each) for name in of_layer} for of_layer in named]
