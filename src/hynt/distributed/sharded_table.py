"""A table of vectors too large for one device: its rows are sharded over the processes, by PyTorch's DTensor.

Every process asks for the rows of its own questions and gets just these; the engine moves them. With a sampled softmax
that is all a model needs of its entity tables: rows to read, rows to score, and the mean row of the label smoothing.

    rows = table(ids)             # (n, width) on every process its own
    loss(rows).backward()
    optimiser.step(rate)          # RowwiseAdagrad

No gradient of the table's size is ever made: left to itself, DTensor makes one of its shard's size in every step, which
took over ten times as long as the rows themselves (docs/decisions/0008). The way back keeps the gradients of the rows
that were asked for, summed over all who asked, and the optimiser moves these rows and no other.

`ShardedHynt` shards HyNT's entity tables: the vectors it reads, those it scores with, and their biases. The rest of the
model is whole in every process, and learns by summed gradients as in any job. It is trained with a
sampled softmax: nothing but the rows that a step needs ever travels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import AskableComponents
from hynt.models.contract import Candidates, EncodedQuestion, Entities, EntityIds, EntityRange
from hynt.models.hynt import Hynt, HyntSettings
from hynt.objectives.losses import LossSettings
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import Drawn, NegativeSampler, answer_shares, cross_entropy_of_rows
from hynt.objectives.streams import Phase, PhaseSettings, trainable


class ShardedTable(nn.Module):
    """`weight` is a DTensor, (rows, width) in all, of which each process holds consecutive rows."""

    def __init__(self, mesh: DeviceMesh, weight: DTensor) -> None:
        super().__init__()
        self.mesh, self.weight = mesh, weight
        self.rows, self.width = weight.shape
        self.first = min(self.rows, mesh.get_local_rank() * -(-self.rows // mesh.size()))  # as DTensor cuts
        # The sum of own rows, kept up to date row by row: the mean of all costs no sweep.
        self.total = _sum_of_rows(self.local())
        self._tap = torch.zeros((), device=self.local().device, requires_grad=True)  # lets the way back come by here
        self.asked: list[tuple[Tensor, Tensor]] = []  # ids of all processes, and the gradients of their rows
        self.of_mean: list[Tensor] = []  # gradients of the mean row, of this process's questions

    @classmethod
    def drawn(cls, mesh: DeviceMesh, rows: int, width: int, scale: float, seed: int = 0) -> ShardedTable:
        """A new table, uniform within ± scale. Each process draws its own rows; nobody ever holds all of them."""
        rank, per = mesh.get_local_rank(), -(-rows // mesh.size())
        own = max(0, min(rows, (rank + 1) * per) - rank * per)
        generator = torch.Generator().manual_seed(1_000_003 * seed + rank)
        local = torch.empty(own, width).uniform_(-scale, scale, generator=generator)
        shape, stride = torch.Size((rows, width)), (width, 1)
        return cls(mesh, DTensor.from_local(local.to(mesh.device_type), mesh, [Shard(0)], shape=shape, stride=stride))

    @classmethod
    def of(cls, mesh: DeviceMesh, whole: Tensor) -> ShardedTable:
        """A table with these rows, (rows, width), the same on every process."""
        return cls(mesh, distribute_tensor(whole.detach().clone(), mesh, [Shard(0)]))

    def forward(self, ids: Tensor) -> Tensor:
        """(n, width) the rows at ids (n,) int64. All processes ask at once, each for as many as the others."""
        everyone = DTensor.from_local(ids, self.mesh, [Shard(0)]).redistribute(self.mesh, [Replicate()]).to_local()
        own: Tensor = _OwnRows.apply(self._tap, self, everyone)  # type: ignore[no-untyped-call]
        # Each process has looked up what it holds; the sum over processes has all, and everybody keeps its own part.
        return DTensor.from_local(own, self.mesh, [Partial()]).redistribute(self.mesh, [Shard(0)]).to_local()

    def mean(self) -> Tensor:
        """(width,) the mean of all rows, the same on every process."""
        whole = DTensor.from_local(self.total, self.mesh, [Partial()]).redistribute(self.mesh, [Replicate()])
        mean = (whole.to_local() / self.rows).to(self.local().dtype)
        found: Tensor = _Mean.apply(self._tap, self, mean)  # type: ignore[no-untyped-call]
        return found

    def local(self) -> Tensor:
        """The rows that this process holds."""
        return self.weight.to_local()

    def whole(self) -> Tensor:
        """(rows, width) all rows, on every process: for small tables and tests."""
        return self.weight.full_tensor()

    def recount(self) -> None:
        """Adds up the rows again, after they were filled from elsewhere."""
        self.total = _sum_of_rows(self.local())

    def take_gradient(self) -> tuple[Tensor, Tensor]:
        """(k,) int64 own rows that anybody asked for since the last call, counted from this process's first, and
        (k, width) their gradients. The mean's gradient is added to these rows alone: it moves all rows alike, by 1/rows
        of what it is, and sweeping over a table for that would cost more than all the rest.
        """
        ids = torch.cat([ids for ids, _ in self.asked]) if self.asked else torch.zeros(0, dtype=torch.int64)
        own = (ids >= self.first) & (ids < self.first + len(self.local()))
        touched, place = torch.unique(ids[own] - self.first, return_inverse=True)
        gradient = self.local().new_zeros(len(touched), self.width)
        if self.asked:
            gradient.index_add_(0, place, torch.cat([rows for _, rows in self.asked])[own])
        if self.of_mean:
            share = DTensor.from_local(torch.stack(self.of_mean).sum(0), self.mesh, [Partial()])
            gradient += share.redistribute(self.mesh, [Replicate()]).to_local() / self.rows
        self.asked.clear()
        self.of_mean.clear()
        return touched, gradient


def _sum_of_rows(table: Tensor) -> Tensor:
    """(width,) float64, piece by piece: widening all of a table at once would take twice its memory."""
    total = torch.zeros(table.shape[1], dtype=torch.float64, device=table.device)
    for piece in table.split(1 << 16):  # type: ignore[no-untyped-call]
        total += piece.double().sum(0)
    return total


class _OwnRows(torch.autograd.Function):
    """Rows that this process holds, and zeros for the others; on the way back their gradients are kept."""

    @staticmethod
    def forward(context: Any, tap: Tensor, table: ShardedTable, ids: Tensor) -> Tensor:  # noqa: ARG004
        context.table, context.ids = table, ids
        local, place = table.local(), ids - table.first
        holds = (place >= 0) & (place < len(local))
        if not len(local):
            return local.new_zeros(len(ids), table.width)
        return torch.where(holds.unsqueeze(1), local[place.clamp(0, len(local) - 1)], 0.0)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        context.table.asked.append((context.ids, gradient))
        return torch.zeros((), device=gradient.device), None, None


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, tap: Tensor, table: ShardedTable, mean: Tensor) -> Tensor:  # noqa: ARG004
        context.table = table
        return mean.clone()

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        context.table.of_mean.append(gradient)
        return torch.zeros((), device=gradient.device), None, None


class RowwiseAdagrad:
    """Adagrad with one number per row instead of one per weight, moving only rows that were asked for.

        G ← G + mean(g²),   w ← w − rate · g / (√G + ε)

    The state of a table of width d is 1/d of its size, where Adam's is twice its size.
    """

    epsilon = 1e-8

    def __init__(self, table: ShardedTable) -> None:
        self.table = table
        self.squares = torch.zeros(len(table.local()), device=table.local().device)  # (own rows,) G

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Moves the rows that were asked for since the last step. All processes call it at once."""
        rows, gradient = self.table.take_gradient()
        squares = self.squares[rows] + gradient.square().mean(1)
        self.squares[rows] = squares
        change = rate * gradient / (squares.sqrt() + self.epsilon).unsqueeze(1)
        self.table.local()[rows] -= change
        self.table.total -= change.double().sum(0)


class ShardedHynt(Hynt):
    """The same model; of its own `entity` table only the row of the masked entity is left."""

    def __init__(self, sizes: Sizes, settings: HyntSettings, mesh: DeviceMesh, seed: int = 0) -> None:
        if not self.can_be_made(settings):
            raise ValueError("sharded tables are for untied outputs and numbers as numbers")
        super().__init__(sizes._replace(entities=0), settings)
        self.sizes, self.mesh = sizes, mesh
        width = settings.dimension
        scale = math.sqrt(6 / (sizes.entities + width))  # Xavier's bound for a table of this size
        self.read_table = ShardedTable.drawn(mesh, sizes.entities, width, scale, seed)
        self.output = ShardedTable.drawn(mesh, sizes.entities, width, scale, seed + 1)
        self.output_bias = ShardedTable.drawn(mesh, sizes.entities, 1, 0.0)

    @staticmethod
    def can_be_made(settings: HyntSettings) -> bool:
        """Whether these settings leave entity tables that rows can be fetched from."""
        return not settings.tied_output and settings.numbers != "discrete"

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """As HyNT's; the loss fetches the rows it needs."""
        stream = MaskedFacts(train, settings.batch_size, settings.masking, settings.losses, sharded_loss)
        return [Phase(stream, trainable(self), settings.epochs, work=self.work_of(settings))]

    @property
    def tables(self) -> tuple[ShardedTable, ...]:
        """The tables whose rows are sharded over the processes."""
        return self.read_table, self.output, self.output_bias

    def entity_rows(self, ids: Tensor) -> Tensor:
        """(n, d); the masked entity's vector is here, all others are fetched."""
        hidden = ids == self.sizes.mask_entity
        fetched = self.read_table(torch.where(hidden, 0, ids))
        return torch.where(hidden.unsqueeze(1), self.entity[0], fetched)

    def mask_entity_row(self) -> Tensor:
        """(d,) m_ent, which every process keeps whole."""
        return self.entity[0]

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """As HyNT scores. For entities all processes must ask at once for as many: rows of a range are fetched."""
        x = question.encoded
        match candidates:
            case Entities():
                return self.score(question, EntityRange(0, self.sizes.entities))
            case EntityRange(start, end):
                return self.score(question, EntityIds(torch.arange(start, end, device=x.device)))
            case EntityIds(ids):
                rows: Tensor = self.output(ids.reshape(-1))
                bias: Tensor = self.output_bias(ids.reshape(-1)).squeeze(1)
                if ids.dim() == 1:
                    return torch.nn.functional.linear(x, rows, bias)
                products: Tensor = (rows.view(*ids.shape, -1) * x.unsqueeze(1)).sum(-1)
                return products + bias.view(ids.shape)
        return super().score(question, candidates)


@dataclass(frozen=True, eq=False)
class ShardedSampler:
    """Draws as ever, and scores with rows that are fetched."""

    sampler: NegativeSampler

    def loss(
        self, model: ShardedHynt, asked: EncodedQuestion, answer: Tensor, weight: Tensor, smoothing: float
    ) -> Tensor:
        """(k,) float32 cross entropy of questions with a fresh sample."""
        drawn = self.sampler.draw(answer, weight)
        return sharded_cross_entropy(asked.encoded, model.output, model.output_bias, answer, drawn, smoothing)


def sharded_loss(facts: FactTensors, components: AskableComponents, losses: LossSettings) -> ShardedSampler:
    """One sample for all questions of a step: its rows travel between processes."""
    shares = answer_shares(facts, components)
    return ShardedSampler(NegativeSampler.of(shares, losses.negatives, losses.negative_source))


class TableUpdates:
    """Row-wise Adagrad over all sharded tables of a model, to be stepped after the update of the rest."""

    def __init__(self, model: ShardedHynt) -> None:
        self._each = [RowwiseAdagrad(table) for table in model.tables]

    def step(self, rate: float) -> None:
        """Moves the rows that the last step asked for."""
        for one in self._each:
            one.step(rate)

    def forget(self) -> None:
        """Drops the gradients of a step that must move nothing."""
        for one in self._each:
            one.table.asked.clear()
            one.table.of_mean.clear()

    def state(self) -> dict[str, Tensor]:
        """This process's part of the state, by table."""
        return {f"squares.{index}": one.squares for index, one in enumerate(self._each)}


# Sampled softmax where the output table is sharded over processes: rows are fetched, everything else stays as it is.


def sharded_cross_entropy(
    x: Tensor, table: ShardedTable, bias: ShardedTable, answer: Tensor, drawn: Drawn, smoothing: float
) -> Tensor:
    """(k,) float32, as `sampled_cross_entropy`; `bias` is a table of width 1. All processes call it at once, with as
    many questions and draws as the others.
    """
    ids = torch.cat([drawn.ids.flatten(), answer])
    rows, biases = table(ids), bias(ids)
    mean_row, mean_bias = (table.mean(), bias.mean()) if smoothing > 0 else (rows[0], biases[0])
    means = (mean_row, mean_bias[0], table.rows)
    return cross_entropy_of_rows(x, rows, biases.squeeze(1), means, answer, drawn, smoothing)


SHARDED: Mapping[str, type[ShardedHynt]] = {"hynt": ShardedHynt}
"""Models that can have sharded tables, by name."""
