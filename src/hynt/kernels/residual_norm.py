"""A residual connection with dropout, and the layer norm that whoever reads it next begins with."""

from __future__ import annotations

import torch.nn.functional as functional
from torch import Tensor

from hynt.kernels.availability import kernels_serve
from hynt.kernels.dropout import Dropout


def added_and_normed(x: Tensor, added: Tensor, drop: Dropout) -> tuple[Tensor, Tensor]:
    """x + dropout(added), float32, and its layer norm without parameters in the precision of `added`; all (n, d)."""
    if kernels_serve(x, x.shape[1]):
        from hynt.kernels.residual_norm_kernel import AddedAndNormed

        new, normed = AddedAndNormed.apply(x, added, drop.keys(), drop.rate)  # type: ignore[no-untyped-call]
        return new, normed
    x = x + drop(added).float()
    return x, functional.layer_norm(x, x.shape[-1:]).to(added.dtype)
