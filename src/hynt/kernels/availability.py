"""Whether the kernels of `hynt-inductive` serve: on a GPU, with Triton, at the widths that they are written for."""

from __future__ import annotations

from importlib.util import find_spec

from torch import Tensor

HAS_TRITON = find_spec("triton") is not None
WIDTHS = frozenset({16, 32, 64, 128, 256})


def kernels_serve(x: Tensor, width: int) -> bool:
    """For tensors like `x` of a model of this width."""
    return HAS_TRITON and x.is_cuda and width in WIDTHS
