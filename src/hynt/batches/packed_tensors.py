"""Nested tuples and dataclasses of tensors laid into one long tensor per type, and back.

What a captured step reads must stay where it is. So what is drawn for a step is packed, copied with a few launches into
buffers that stay, and read from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

ALIGNMENT = 16
"""Every tensor begins at a multiple of so many items: kernels load aligned rows faster."""

Nested = TypeVar("Nested")


class Packing(Generic[Nested]):
    """How values like an example are packed. Tensors that are `constant` are left where they are."""

    def __init__(self, example: Nested, constant: Iterable[Tensor] = ()) -> None:
        self._constant = {id(one) for one in constant}
        self._shapes: Nested = _rebuilt(example, lambda one: one if self._stays(one) else one.to("meta"))
        self._kinds = sorted({one.dtype for one in _tensors(self._shapes) if one.is_meta}, key=str)

    def _stays(self, one: Tensor) -> bool:
        return id(one) in self._constant

    def packed(self, value: Nested) -> tuple[Tensor, ...]:
        """One tensor (n,) per type."""
        moving = [one for one in _tensors(value) if not self._stays(one)]
        sizes = {kind: sum(_room(one) for one in moving if one.dtype == kind) for kind in self._kinds}
        buffers = tuple(torch.empty(sizes[kind], dtype=kind, device=moving[0].device) for kind in self._kinds)
        places = [one for one in _tensors(self.unpacked(buffers)) if not self._stays(one)]
        for kind in self._kinds:
            both = [(place, one) for place, one in zip(places, moving, strict=True) if one.dtype == kind]
            torch._foreach_copy_([place for place, _ in both], [one for _, one in both])
        return buffers

    def unpacked(self, buffers: tuple[Tensor, ...]) -> Nested:
        """The value as views of these tensors."""
        by_kind, at = dict(zip(self._kinds, buffers, strict=True)), dict.fromkeys(self._kinds, 0)

        def placed(one: Tensor) -> Tensor:
            if not one.is_meta:
                return one
            begin = at[one.dtype]
            at[one.dtype] += _room(one)
            return by_kind[one.dtype][begin : begin + one.numel()].view(one.shape)

        found: Nested = _rebuilt(self._shapes, placed)
        return found


def _room(one: Tensor) -> int:
    return -(-one.numel() // ALIGNMENT) * ALIGNMENT


def _rebuilt(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with other tensors."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return type(value)(*(_rebuilt(one, change) for one in value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _rebuilt(getattr(value, one.name), change) for one in fields(value)})
    return value


def _tensors(value: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def taken(one: Tensor) -> Tensor:
        found.append(one)
        return one

    _rebuilt(value, taken)
    return found
