"""Changes of `hynt-inductive` that only an ablation wants, each made to the classes of this process.

`benchmarks/device.py` makes one before it trains: `ablation=fixed-split`. Settings (layers, share observed)
and changes of the graph (literals shuffled or removed) need nothing from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import hynt.models.layers.message_passing as passing
import hynt.objectives.observed_and_targets as asking
from hynt.batches.fact_slots import Links
from hynt.batches.message_plan import MessagePlan
from hynt.models.hynt_inductive import HyntInductive
from hynt.objectives.drawn_beside import DrawnBeside
from hynt.objectives.number_distribution import Bins
from hynt.objectives.observed_and_targets import ObservedAndTargets


def fixed_split() -> None:
    """The same facts are observed in every step, and the rest are asked about."""
    on_gpu, on_cpu = DrawnBeside._chosen, ObservedAndTargets.drawn

    def chosen(self: Any) -> Any:
        if not hasattr(self, "always"):
            order = torch.Generator().manual_seed(0)
            self.always = [
                (torch.randperm(len(chance), generator=order) < seen).to(chance.device)
                for chance, (seen, _) in zip(self._chances, self._sizes, strict=True)
            ]
        drawn = self._chances
        self._chances = [torch.where(one, -1.0, chance) for one, chance in zip(self.always, drawn, strict=True)]
        try:
            return on_gpu(self)
        finally:
            self._chances = drawn

    def drawn(self: Any, generator: Any) -> tuple[Tensor, Tensor, Tensor]:
        first, second, _ = on_cpu(self, torch.Generator().manual_seed(0))
        seen = torch.cat([first, second]).cpu()
        rest = torch.ones(len(self.facts), dtype=torch.bool).index_fill_(0, seen, False).nonzero().squeeze(1)
        asked = rest[torch.randperm(len(rest), generator=generator)[: self.split.targets]].sort().values
        return first, second, asked.to(self.facts.device)

    DrawnBeside._chosen, ObservedAndTargets.drawn = chosen, drawn  # type: ignore[method-assign]


def no_split() -> None:
    """What is asked about is observed too."""
    on_cpu = ObservedAndTargets.drawn

    def chosen(self: Any) -> Any:
        parts = []
        for rows, chance, (seen, asked) in zip(self._kinds, self._chances, self._sizes, strict=True):
            place = torch.argsort(chance, stable=True)
            parts.append([rows[one.sort().values] for one in (place[:seen], place[:asked])])
        (first, first_asked), (second, second_asked) = parts
        return self._stream.step((first, second), torch.cat([first_asked, second_asked]), self._room, self._read)

    def drawn(self: Any, generator: Any) -> tuple[Tensor, Tensor, Tensor]:
        first, second, _ = on_cpu(self, generator)
        seen = torch.cat([first, second])
        place = torch.randperm(len(seen), generator=generator)[: self.split.targets].to(seen.device)
        return first, second, seen[place].sort().values

    DrawnBeside._chosen, ObservedAndTargets.drawn = chosen, drawn  # type: ignore[method-assign]


def mean_of_messages() -> None:
    """A node weighs itself and every message alike: without a query all logits are 0."""
    plain = passing.NodeAttention.__init__

    def without_query(self: Any, own: Tensor, heads: int, parts: int) -> None:
        width = own.shape[1] // 3
        plain(self, torch.cat([torch.zeros_like(own[:, :width]), own[:, width:]], 1), heads, parts)

    passing.NodeAttention.__init__ = without_query  # type: ignore[method-assign]


def message_with_receiver() -> None:
    """An observed fact's messages are made of all its slots, the receiver's too; questions still do not see their own.
    Only plain forms can do it, so steps are slow.
    """
    plain = MessagePlan._others

    def others(self: Any, slot: Tensor) -> tuple[Tensor, Tensor]:
        owner, other = plain(self, slot)
        message = self.slot_message.long()[slot]
        is_heard = message < len(self.message_slot)
        receiver = self.to_values.row.long()[torch.where(is_heard, message, 0)]
        mine = (is_heard & (receiver < self.sizes.entities)).nonzero().squeeze(1)  # beyond entities are questions
        owner, other = torch.cat([owner, mine]), torch.cat([other, slot[mine]])
        order = torch.argsort(owner, stable=True)
        return owner[order], other[order]

    MessagePlan._others = others  # type: ignore[method-assign]
    setattr(passing, "kernels_serve", lambda *_: False)  # noqa: B010


def squared_error() -> None:
    """Numbers learn from the squared error of the distribution's mean, weighed as 20."""

    def loss(self: Any, logits: Tensor, value: Tensor) -> Tensor:
        mean = logits.float().softmax(-1) @ self.centres(logits.device)
        found: Tensor = 20 * (mean - value).square()
        return found

    Bins.loss = loss  # type: ignore[method-assign]


def any_number_masked() -> None:
    """Of a third of the slots of facts asked about nothing is known either: a question has any number of masks."""
    plain = getattr(asking, "plan_training")  # noqa: B009

    def planned(facts: Any, numbers: Any, observed: Any, targets: Tensor, capacity: int, *more: int) -> Any:
        plan, questions = plain(facts, numbers, observed, targets, capacity, *more)
        known = 2 * sum(map(len, observed)) + capacity
        here = torch.arange(len(plan.slot_first), device=targets.device) >= known
        masked = here & (torch.rand(len(here), device=targets.device) < 1 / 3)
        values, relations = (
            Links.of(torch.where(masked, one.rows, one.row), one.rows) for one in (plan.value_rows, plan.relation_rows)
        )
        return replace(plan, value_rows=values, relation_rows=relations), questions

    setattr(asking, "plan_training", planned)  # noqa: B010


def residual_of_each_entity() -> None:
    """A vector for every entity of the graph, through a gate that starts shut, is added to where entities start."""
    made, starts = HyntInductive.__init__, HyntInductive._starts

    def with_residual(self: Any, sizes: Any, *more: Any) -> None:
        made(self, sizes, *more)
        self.of_entity = nn.Parameter(torch.randn(sizes.entities, self.settings.dimension) * 0.1)
        self.gate = nn.Parameter(torch.zeros(self.settings.dimension))

    def started(self: Any, *given: Any) -> tuple[Tensor, Tensor]:
        entity, relation = starts(self, *given)
        return entity + self.gate * self.of_entity, relation

    setattr(HyntInductive, "__init__", with_residual)  # noqa: B010
    setattr(HyntInductive, "_starts", started)  # noqa: B010


ABLATIONS: dict[str, Callable[[], None]] = {
    "fixed-split": fixed_split,
    "no-split": no_split,
    "mean": mean_of_messages,
    "with-receiver": message_with_receiver,
    "squared-error": squared_error,
    "any-number": any_number_masked,
    "entity-residual": residual_of_each_entity,
}
