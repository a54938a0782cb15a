"""Values laid into long tensors and read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hynt.objectives.drawn_beside import Packing


class Inner(NamedTuple):
    count: int
    flags: Tensor
    none: None
    table: Tensor


@dataclass(frozen=True)
class Outer:
    inner: Inner
    ids: Tensor
    whole: Tensor


def value(seed: int, table: Tensor) -> Outer:
    generator = torch.Generator().manual_seed(seed)
    inner = Inner(3, torch.rand(5, generator=generator) > 0.5, None, table)
    return Outer(inner, torch.randint(9, (4, 3), generator=generator), torch.rand((), generator=generator))


def test_what_is_packed_comes_back_and_what_stays_is_not_copied():
    table = torch.arange(1000)
    packing = Packing(value(0, table), [table])
    for seed in (0, 1):
        one = value(seed, table)
        packed = packing.packed(one)
        assert {buffer.dtype for buffer in packed} == {torch.bool, torch.int64, torch.float32}
        assert sum(buffer.numel() for buffer in packed) < 100
        found = packing.unpacked(packed)
        assert found.inner.table is table
        assert (found.inner.count, found.inner.none) == (3, None)
        for name in ("ids", "whole"):
            assert torch.equal(getattr(found, name), getattr(one, name))
        assert torch.equal(found.inner.flags, one.inner.flags)
