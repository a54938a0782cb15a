"""HyNT with its entity tables sharded over processes: the vectors it reads, those it scores with, and their biases.

The rest of the model is whole in every process, and learns by summed gradients as in any job. It is trained with a
sampled softmax: nothing but the rows that a step needs ever travels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import AskableComponents
from hynt.distributed.sharded_table import RowwiseAdagrad, ShardedTable
from hynt.models.contract import Candidates, EncodedQuestion, Entities, EntityIds, EntityRange
from hynt.models.hynt import Hynt, HyntSettings
from hynt.objectives.losses import LossSettings
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import Drawn, NegativeSampler, answer_shares, cross_entropy_of_rows
from hynt.objectives.streams import Phase, PhaseSettings, trainable


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
        return [Phase(stream, trainable(self), settings.epochs)]

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
