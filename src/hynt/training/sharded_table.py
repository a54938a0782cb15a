"""A table of vectors too large for one device: its rows are spread over the processes, by PyTorch's DTensor.

Every process asks for the rows of its own questions and gets just these; where they lie is the engine's business. With
a sampled softmax that is all a model needs of its entity tables: rows to read, rows to score, and the mean row of the
label smoothing. On the way back each process gets the gradient of its own rows, summed over all who asked, and
`RowwiseAdagrad` moves only the rows that were asked for.

    rows = table(ids)             # (n, width) on every process its own
    loss(rows).backward()
    optimiser.step(learning_rate)
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor


class ShardedTable(nn.Module):
    """`weight` is a DTensor, (rows, width) in all, of which each process holds consecutive rows."""

    def __init__(self, mesh: DeviceMesh, rows: int, width: int, scale: float, seed: int = 0) -> None:
        """Starts uniform within ± scale. Each process draws its own rows; nobody ever holds all of them."""
        super().__init__()
        self.mesh, self.rows, self.width = mesh, rows, width
        rank, world = mesh.get_local_rank(), mesh.size()
        per = -(-rows // world)  # as DTensor cuts: all shards alike but the last ones
        own = max(0, min(rows, (rank + 1) * per) - rank * per)
        self.first = min(rows, rank * per)
        generator = torch.Generator().manual_seed(1_000_003 * seed + rank)
        local = (2 * torch.rand(own, width, generator=generator) - 1) * scale
        shape, stride = torch.Size((rows, width)), (width, 1)
        local = local.to(mesh.device_type)
        self.weight = nn.Parameter(DTensor.from_local(local, mesh, [Shard(0)], shape=shape, stride=stride))
        self.asked: list[Tensor] = []  # ids of all processes since the last step

    @classmethod
    def of(cls, mesh: DeviceMesh, whole: Tensor) -> ShardedTable:
        """A table with these rows, (rows, width), the same on every process."""
        made = cls(mesh, whole.shape[0], whole.shape[1], scale=0.0)
        made.weight = nn.Parameter(distribute_tensor(whole.detach(), mesh, [Shard(0)]))
        return made

    def forward(self, ids: Tensor) -> Tensor:
        """(n, width) the rows at ids (n,) int64. All processes ask at once, each for as many as the others."""
        everyone = DTensor.from_local(ids, self.mesh, [Shard(0)]).redistribute(self.mesh, [Replicate()])
        self.asked.append(everyone.to_local())
        # Each process looks up what it has, the sum over processes has all, and everybody keeps its own part of it.
        found = cast(DTensor, functional.embedding(everyone, self.weight))
        return found.redistribute(self.mesh, [Shard(0)]).to_local()

    def mean(self) -> Tensor:
        """(width,) the mean of all rows, the same on every process. Each process has a share of its gradient, as it
        has a share of the questions: the table gets the sum.
        """
        own = cast(DTensor, self.weight).to_local(grad_placements=[Shard(0)]).sum(0) / self.rows
        whole = DTensor.from_local(own, self.mesh, [Partial()]).redistribute(self.mesh, [Replicate()])
        return whole.to_local(grad_placements=[Partial()])

    def local(self) -> Tensor:
        """The rows that this process holds."""
        return cast(DTensor, self.weight.detach()).to_local()

    def whole(self) -> Tensor:
        """(rows, width) all rows, on every process: for small tables and tests."""
        return cast(DTensor, self.weight.detach()).full_tensor()


class RowwiseAdagrad:
    """Adagrad with one number a row instead of one a weight, moving only rows that were asked for.

        G ← G + mean(g²),   w ← w − rate · g / (√G + ε)

    The state of a table of width d is 1/d of its size, where Adam's is twice its size.
    """

    def __init__(self, table: ShardedTable, epsilon: float = 1e-8) -> None:
        self.table, self.epsilon = table, epsilon
        self.squares = torch.zeros(len(table.local()), device=table.local().device)  # (own rows,) G

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Moves the rows that were asked for since the last step, and forgets their gradient."""
        table = self.table
        asked = torch.unique(torch.cat(table.asked)) if table.asked else torch.zeros(0, dtype=torch.int64)
        table.asked.clear()
        own = asked[(asked >= table.first) & (asked < table.first + len(table.local()))] - table.first
        gradient: Any = table.weight.grad
        if gradient is None:
            return
        rows = cast(DTensor, gradient).redistribute(table.mesh, [Shard(0)]).to_local()[own]
        table.weight.grad = None
        squares = self.squares[own] + rows.square().mean(1)
        self.squares[own] = squares
        table.local()[own] -= rate * rows / (squares.sqrt() + self.epsilon).unsqueeze(1)
