"""Dropout whose random numbers cost little.

On a GPU a step with dropout spends its time making random numbers: PyTorch's generator takes some sixty operations for
each. Whether a number is kept needs far less, so there the choice is a short integer hash of its place and of two
numbers drawn for each use of dropout. The compiler merges the hash into whatever comes before and after, and makes
it again on the way back instead of storing it; without a compiler one kernel does the same. On a CPU PyTorch's dropout
draws number by number, which takes a sixth of a training step; there one draw of 64 bits chooses for four numbers.

The kernels of messages let one hash decide for two neighbours in a table, sixteen bits each. They make it where they
need it and again on the way back; `kept_pairs` is the same thing for whole tensors.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
import torch.nn.functional as functional
from torch import Tensor

HAS_KERNEL = find_spec("triton") is not None
if HAS_KERNEL:
    from hynt.kernels.dropout_kernel import HashedDropout


class Dropout:
    """The dropout of one pass through a model: call it once for each tensor, at most `uses` times."""

    def __init__(self, rate: float, uses: int, device: torch.device) -> None:
        self.rate = rate
        self._used = 0
        self._keys: Tensor | None = None
        if rate > 0 and device.type == "cuda":
            # (uses, 2) int32. One small draw a pass: its state is that of PyTorch's generator, so seeds hold.
            self._keys = torch.randint(-(2**31), 2**31 - 1, (uses, 2), dtype=torch.int32, device=device)

    @property
    def drawn(self) -> Tensor | None:
        """(uses, 2) int32: what all uses were drawn from; None where nothing was."""
        return self._keys

    def keys(self) -> Tensor | None:
        """(2,) int32, which choose what is dropped next; None where nothing is, or PyTorch chooses."""
        if self._keys is None:
            return None
        self._used += 1
        return self._keys[self._used - 1]

    def small(self, x: Tensor) -> Tensor:
        """The same for a tensor that is then spread over a larger one: there a hash would be made for every copy."""
        return functional.dropout(x, self.rate, self.rate > 0) if x.is_cuda else dropped_by_bits(x, self.rate)

    def __call__(self, x: Tensor) -> Tensor:
        """`x` with some numbers 0 and the others grown, so that the expectation stays."""
        keys = self.keys()
        if keys is None:
            return dropped_by_bits(x, self.rate)
        if HAS_KERNEL and x.is_cuda and not torch.compiler.is_compiling():
            dropped: Tensor = HashedDropout.apply(x, keys, self.rate)  # type: ignore[no-untyped-call]
            return dropped
        first, second = keys.unbind()
        return torch.where(kept(x, first, second, self.rate), x * (1 / (1 - self.rate)), 0.0)


def dropped_by_bits(x: Tensor, rate: float) -> Tensor:
    """Dropout by 16 random bits for each number, so the rate is a multiple of 2⁻¹⁶: the one nearest to `rate`."""
    limit, count = min(round(rate * 2**16), 2**16 - 1), x.numel()
    if limit == 0:
        return x
    drawn = torch.empty(-(-count // 4), dtype=torch.int64, device=x.device).random_(-(2**63), None)
    is_kept = drawn.view(torch.int16)[:count].view(x.shape) >= limit - 2**15
    return x * (is_kept * (2**16 / (2**16 - limit))).to(x.dtype)


def kept(x: Tensor, first: Tensor, second: Tensor, rate: float) -> Tensor:
    """A bool for each number of `x`, false for a share of `rate`; `first` and `second`, () int32, make the choice."""
    place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    mixed = _multiplied(place + first, 16, 0x7FEB352D) ^ second
    mixed = _multiplied(_multiplied(mixed, 15, 0x846CA68B), 16, 0x9E3779B1)
    mixed = mixed ^ _shifted(mixed, 15)
    return (mixed & 0x7FFFFFFF) >= int(rate * 2**31)


def _multiplied(x: Tensor, shift: int, factor: int) -> Tensor:
    """A round of mixing: high bits into low ones, then low ones into high; int32 that wraps around."""
    return (x ^ _shifted(x, shift)) * (factor if factor < 2**31 else factor - 2**32)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """A shift to the right that brings in zeros, of int32, which has a sign."""
    low: int = (1 << (32 - bits)) - 1
    return (x >> bits) & low


STEPS = 2**16


def limit_and_growth(rate: float) -> tuple[int, float]:
    """The number below which sixteen bits drop, and what those kept are multiplied by."""
    limit = min(round(rate * STEPS), STEPS - 1)
    return limit, STEPS / (STEPS - limit)


def kept_pairs(rows: int, width: int, keys: Tensor, rate: float) -> Tensor:
    """(rows, width) bool, false for a share of `rate`; `keys` (2,) int32 make the choice. `width` is even."""
    limit, _ = limit_and_growth(rate)
    place = torch.arange(rows * width // 2, dtype=torch.int64, device=keys.device)
    first, second = (keys.long() & 0xFFFFFFFF).unbind()
    mixed = (place + first) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    mixed = mixed ^ second
    mixed = ((mixed ^ (mixed >> 15)) * 0x46CA68B) & 0xFFFFFFFF
    mixed = mixed ^ (mixed >> 16)
    return (torch.stack([mixed & 0xFFFF, mixed >> 16], 1) >= limit).view(rows, width)
