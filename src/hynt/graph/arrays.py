"""The three kinds of arrays that columns are made of, and lists of any length in them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def spread(start: Ids, size: Ids) -> tuple[Ids, Ids]:
    """For spans that start at `start` (n,) and are `size` (n,) long, end to end: which span, and which place in all."""
    owner = np.repeat(np.arange(len(size), dtype=np.int64), size)
    shift = np.repeat(start - (np.cumsum(size) - size), size)
    return owner, shift + np.arange(len(owner), dtype=np.int64)
