"""Which components of which facts may be asked for, and how likely each task then is.

Training masks one component per fact and epoch, drawn uniformly from those allowed. Three switches take kinds of
components out; they are the rows "without masking" of the paper's ablation table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.graph.fact_table import FIRST_QUALIFIER, TAIL, component_count


@dataclass(frozen=True)
class Masking:
    """What training may mask besides entities of the triplet, which it always may."""

    numbers: bool = True
    relations: bool = True
    qualifiers: bool = True


@dataclass(frozen=True, eq=False)
class AskableComponents:
    """The components that may be asked for, end to end: those of fact i are offsets[i] … offsets[i + 1], never none."""

    offsets: Tensor  # (n + 1,) int64
    position: Tensor  # (components,) int64
    task: Tensor  # (components,) int64 a `Task`

    @classmethod
    def of(cls, facts: FactTensors, masking: Masking | None = None) -> AskableComponents:
        """All components of all facts that `masking` (by default everything) lets be asked for, in the order of
        positions.
        """
        masking = masking or Masking()
        count, device = facts.qualifier_counts(), facts.device
        owner = torch.repeat_interleave(torch.arange(len(facts), device=device), component_count(count))
        first = FIRST_QUALIFIER * torch.arange(len(facts), device=device) + 2 * facts.offsets[:-1]
        position = torch.arange(len(owner), device=device) - first[owner]
        slot = facts.qualifier_at(owner, position)
        number = torch.where(
            position > TAIL, facts.qualifier_is_number[slot], facts.tail_is_number[owner] & (position == TAIL)
        )
        task = torch.where(number, int(Task.NUMBER), int(Task.LINK))
        task = torch.where(position % 2 == 1, int(Task.RELATION), task)
        allowed = torch.ones_like(number)
        if not masking.numbers:
            allowed &= task != Task.NUMBER
        if not masking.relations:
            allowed &= task != Task.RELATION
        if not masking.qualifiers:
            allowed &= position <= TAIL
        counts = torch.zeros(len(facts), dtype=torch.int64, device=device).index_add_(0, owner, allowed.long())
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(offsets, position[allowed], task[allowed])

    def __len__(self) -> int:
        """How many components there are in all."""
        return len(self.position)

    def counts(self) -> Tensor:
        """(n,) int64: how many components of each fact may be asked for."""
        return self.offsets[1:] - self.offsets[:-1]

    def owner(self) -> Tensor:
        """(components,) int64: the fact each component belongs to."""
        return torch.repeat_interleave(torch.arange(len(self.offsets) - 1, device=self.offsets.device), self.counts())

    def drawn(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """(position, task), (n,) each: one component per fact, drawn by (n,) float64 numbers in [0, 1)."""
        counts = self.counts()
        chosen = self.offsets[:-1] + (uniform * counts).long().clamp(max=counts - 1)
        return self.position[chosen], self.task[chosen]

    def task_likelihood(self) -> Tensor:
        """(n, 3) float64: how likely each task is to be asked of each fact."""
        tally = torch.zeros(len(self.offsets) - 1, len(Task), dtype=torch.float64, device=self.position.device)
        ones = torch.ones(len(self), dtype=torch.float64, device=self.position.device)
        tally.index_put_((self.owner(), self.task), ones, accumulate=True)
        return tally / self.counts().unsqueeze(1)
