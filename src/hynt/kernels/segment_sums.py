"""Sums of neighbours in a sorted list, and look-ups whose way back is such a sum: in one order, without atomics.

In the sum of a fact's other slots nothing is ever subtracted: what stands in a slot takes no part in its own sum, so it
cannot leak through rounding.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_slots import Links
from hynt.batches.message_plan import MessagePlan, SummedItems
from hynt.kernels.device import HAS_TRITON, kernels_serve


def summed(items: Tensor, links: Links) -> Tensor:
    """(rows, width), in the precision of `items` (n, width): the sum of each row's items. No gradient."""
    if HAS_TRITON and items.is_cuda:
        from hynt.kernels.segment_kernel import summed_by_kernel

        return summed_by_kernel(items, links)
    # The last bag holds the items that belong to no row.
    bags: Tensor = functional.embedding_bag(links.order, items, links.offsets, mode="sum", include_last_offset=True)
    return bags[:-1]


def picked(table: Tensor, links: Links) -> Tensor:
    """(items, width): the row of each item; for an item of no row, the last one's. No gradient."""
    return table.index_select(0, links.row.clamp(max=links.rows - 1))


class LookUp(torch.autograd.Function):
    """`picked`, whose way back sums what comes to each row."""

    @staticmethod
    def forward(context: Any, table: Tensor, links: Links) -> Tensor:
        context.links = links
        return picked(table, links)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        return summed(gradients[0].contiguous(), context.links), None


class SumUp(torch.autograd.Function):
    """`summed`, whose way back hands every item its row's."""

    @staticmethod
    def forward(context: Any, items: Tensor, links: Links) -> Tensor:
        context.links = links
        return summed(items.contiguous(), links)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        links = context.links
        belongs = (links.row < links.rows).unsqueeze(1)
        return torch.where(belongs, picked(gradients[0], links), 0.0), None


def look_up(table: Tensor, links: Links) -> Tensor:
    """(items, width) rows of `table` (rows, width)."""
    found: Tensor = LookUp.apply(table, links)  # type: ignore[no-untyped-call]
    return found


def scaled(items: Tensor, table: Tensor, links: Links, more: Tensor) -> Tensor:
    """(items + more, width): `items` (items, width), each times 1 + its row of `table` (rows, width), then `more`."""
    if kernels_serve(items, items.shape[1]):
        from hynt.kernels.segment_kernel import Scaled

        found: Tensor = Scaled.apply(items, table, more, links)  # type: ignore[no-untyped-call]
        return found
    return torch.cat([items * (1 + look_up(table, links)), more])


def sum_up(items: Tensor, links: Links) -> Tensor:
    """(rows, width) sums of `items` (items, width)."""
    found: Tensor = SumUp.apply(items, links)  # type: ignore[no-untyped-call]
    return found


def _sums(items: Tensor, of: SummedItems) -> Tensor:
    found: Tensor = functional.embedding_bag(of.item, items, of.offsets, mode="sum", include_last_offset=True)
    return found


class _OtherSlots(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, pairs: Tensor, plan: MessagePlan) -> Tensor:
        context.plan, context.kind = plan, pairs.dtype
        return _sums(pairs.float(), plan.slots_of_message)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        return _sums(gradients[0].contiguous(), context.plan.messages_of_slot).to(context.kind), None


def other_slots(pairs: Tensor, plan: MessagePlan) -> Tensor:
    """(messages, d) float32: what each message is made of, from the pairs of all slots (slots, d)."""
    found: Tensor = _OtherSlots.apply(pairs, plan)  # type: ignore[no-untyped-call]
    return found
