"""Linear maps in the precision of their input, and what stands around them: a residual connection with dropout, and the
layer norm that whoever reads it next begins with.

On a GPU a bias's gradient is added up by a kernel, since PyTorch adds up the columns of a tall matrix some ten times
slower than the GPU reads it; and several maps of one input add their gradients inside the matrix products. The
parameters of several layers are cast to a lower precision, and their gradients back, at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.kernels.device import Aside, kernels_serve
from hynt.kernels.dropout import Dropout


class _Maps(torch.autograd.Function):
    """Several maps of one input, each of its first rows. Their gradients for it are added up by the products; those of
    weights are made aside where these are `lowered`. `waits` says that what comes back may have been made aside.
    """

    @staticmethod
    def forward(
        context: Any, x: Tensor, rows: tuple[int, ...], lowered: bool, waits: bool, *parameters: Tensor | None
    ) -> tuple[Tensor, ...]:
        context.lowered, context.waits = lowered, waits
        weights, biases = parameters[::2], parameters[1::2]
        context.save_for_backward(x, *weights)
        context.rows, context.has_bias = rows, [bias is not None for bias in biases]
        # The map of all rows comes first on the way back, so that it can begin the sum.
        context.sequence = sorted(range(len(rows)), key=lambda number: -rows[number])
        return tuple(
            functional.linear(x[:count], weight, bias)
            for count, weight, bias in zip(rows, weights, biases, strict=True)
            if weight is not None
        )

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        from hynt.kernels.linear_kernel import column_sums, gradients_of_maps

        x, *weights = context.saved_tensors
        if context.waits:
            Aside.wait("tables", gradients)
        outers = [gradient.contiguous() for gradient in gradients]
        together = go_together(x, outers)
        of_x: Tensor | None = None
        found: list[Tensor | None] = [None] * (2 * len(weights))
        for number in context.sequence:
            count, weight, outer = context.rows[number], weights[number], outers[number]
            if not context.needs_input_grad[0]:
                pass
            elif of_x is None:
                of_x = outer @ weight if count == len(x) else torch.cat([outer @ weight, x.new_zeros(x[count:].shape)])
            else:
                of_x[:count].addmm_(outer, weight)
            if together:
                continue
            found[2 * number] = outer.t() @ x[:count]
            if context.has_bias[number]:
                found[2 * number + 1] = column_sums(outer, weight.dtype)
        if together:
            with Aside.doing("weights", x, *outers, wanted=context.lowered):
                found[::2], biases = gradients_of_maps([x] * len(outers), outers)
            found[1::2] = [one if has else None for one, has in zip(biases, context.has_bias, strict=True)]
        return of_x, None, None, None, *found


MOST_TOGETHER, MULTIPLE = 4, 16


def go_together(x: Tensor, outers: Sequence[Tensor]) -> bool:
    """Whether one kernel finds the gradients of all weights and biases: in bf16, of widths that it reads fast. In
    float32 its products would be slow.
    """
    widths = [one.shape[1] for one in (x, *outers)]
    return x.dtype == torch.bfloat16 and len(outers) <= MOST_TOGETHER and not any(one % MULTIPLE for one in widths)


def apply_all(
    layers: Sequence[nn.Linear], x: Tensor, rows: Sequence[int] | None = None, *, waits: bool = False
) -> tuple[Tensor, ...]:
    """(rows, outputs) of each map, of all rows of `x` (n, inputs) or of so many first ones. `waits`: what they made is
    read as tables, whose gradients `Aside` may make.
    """
    counts = tuple(len(x) for _ in layers) if rows is None else tuple(rows)
    both = [one for layer in layers for one in (layer.weight, layer.bias)]
    parameters = [None if one is None else one.to(x.dtype) for one in both]
    if kernels_serve(x, x.shape[1]):
        found: tuple[Tensor, ...] = _Maps.apply(x, counts, is_lowered(layers[0]), waits, *parameters)  # type: ignore[no-untyped-call]
        return found
    each = zip(counts, parameters[::2], parameters[1::2], strict=True)
    return tuple(functional.linear(x[:count], weight, bias) for count, weight, bias in each if weight is not None)


def apply(layer: nn.Linear, x: Tensor) -> Tensor:
    """(n, outputs) from (n, inputs)."""
    return apply_all([layer], x)[0]


def added_and_normed(x: Tensor, added: Tensor, drop: Dropout) -> tuple[Tensor, Tensor]:
    """x + dropout(added), float32, and its layer norm without parameters in the precision of `added`; all (n, d)."""
    if kernels_serve(x, x.shape[1]):
        from hynt.kernels.linear_kernel import AddedAndNormed

        new, normed = AddedAndNormed.apply(x, added, drop.keys(), drop.rate)  # type: ignore[no-untyped-call]
        return new, normed
    x = x + drop(added).float()
    return x, functional.layer_norm(x, x.shape[-1:]).to(added.dtype)


def norm_in(x: Tensor, kind: torch.dtype) -> Tensor:
    """(n, d) in the precision `kind`: the layer norm without parameters of (n, d)."""
    if kernels_serve(x, x.shape[1]):
        from hynt.kernels.linear_kernel import Normed

        found: Tensor = Normed.apply(x, kind)  # type: ignore[no-untyped-call]
        return found
    return functional.layer_norm(x.float(), x.shape[-1:]).to(kind)


def stretched(x: Tensor, by: nn.LayerNorm, scale: float = 1.0) -> Tensor:
    """(n, d) what this layer norm makes, times `scale`, of `x` (n, d), which a norm without parameters made."""
    weight, bias = by.weight * scale, by.bias * scale
    if kernels_serve(x, x.shape[1]):
        # As a diagonal matrix: that product costs nothing, and the gradients' sums over n come from a fast kernel.
        found: tuple[Tensor] = _Maps.apply(  # type: ignore[no-untyped-call]
            x, (len(x),), False, False, torch.diag(weight).to(x.dtype), bias.to(x.dtype)
        )
        return found[0]
    return (x * weight + bias).to(x.dtype)


class _Lowered(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, kind: torch.dtype, *parameters: Tensor) -> tuple[Tensor, ...]:
        context.shapes = [one.shape for one in parameters]
        flat = torch.cat([one.reshape(-1) for one in parameters]).to(kind)
        return tuple(_split(flat, context.shapes))

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        Aside.finish(gradients)
        flat = torch.cat([one.reshape(-1) for one in gradients]).float()
        return None, *_split(flat, context.shapes)


def _split(flat: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
    parts = torch.split(flat, [shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def lowered(layers: Iterable[nn.Module], kind: torch.dtype) -> list[dict[str, Tensor]]:
    """The parameters of each layer by name, in this precision."""
    Aside.forget()
    named: list[dict[str, Tensor]] = [dict(layer.named_parameters()) for layer in layers]
    if kind == torch.float32:
        return named
    each = iter(_Lowered.apply(kind, *(one for of_layer in named for one in of_layer.values())))  # type: ignore[no-untyped-call]
    return [{name: next(each) for name in of_layer} for of_layer in named]


def is_lowered(layer: nn.Linear) -> bool:
    """Whether its parameters come from `lowered`, which waits for gradients that are made aside."""
    return not isinstance(layer.weight, nn.Parameter)
