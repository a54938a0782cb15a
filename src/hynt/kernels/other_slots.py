"""The sum of a fact's other slots, for every slot that hears a message.

Nothing is ever subtracted: what stands in a slot takes no part in its own sum, so it cannot leak through rounding.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.message_plan import MessagePlan, SummedItems


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
