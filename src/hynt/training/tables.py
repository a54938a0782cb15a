"""A model's weights over the processes that train it: whole in each, or with sharded entity tables.

What is saved is the same either way: of sharded tables the first process puts the rows together in its own memory,
never on a device. So a run goes on in any number of processes, and is loaded, asked and evaluated like any other.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as distributed
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from hynt.batches.epoch_plan import derived_seed
from hynt.distributed.sharded_hynt import SHARDED, ShardedHynt, TableUpdates
from hynt.distributed.sharded_table import ShardedTable
from hynt.distributed.worker_group import SingleProcess
from hynt.runs.checkpoint import fill_tensors, weights_of
from hynt.runs.opening import new_model
from hynt.runs.settings import Optimiser, RunSettings
from hynt.runs.training_data import TrainingData
from hynt.training.optimisation import Optimisation


class WholeTables:
    """A model that every process holds all of. Whatever is called here, all processes call at once."""

    def __init__(self, model: nn.Module, workers: SingleProcess) -> None:
        self.model, self.workers = model, workers

    def prepare(self, optimisation: Optimisation) -> None:
        """Lets an update move what is no parameter: here, nothing."""

    def weights(self) -> dict[str, Tensor]:
        """What the first process saves."""
        return weights_of(self.model)

    def state(self, optimisation: Optimisation) -> dict[str, Tensor]:
        """What the first process saves of an optimiser."""
        return optimisation.tensors()

    def fill_weights(self, path: Path | None) -> None:
        """Gives all processes the weights of a checkpoint, which only the first one reads; None: as it has them."""
        if path is not None:
            fill_tensors(path, weights_of(self.model))
        self.workers.broadcast(weights_of(self.model).values())

    def fill_state(self, path: Path | None, optimisation: Optimisation) -> None:
        """Gives all processes the optimiser's state of a checkpoint, which only the first one reads."""
        if path is not None:
            fill_tensors(path, optimisation.tensors())
        self.workers.broadcast(value for value in optimisation.tensors().values() if value.numel())


class ShardedTables(WholeTables):
    """HyNT with sharded tables: each process has some rows."""

    model: ShardedHynt

    def __init__(self, model: ShardedHynt, workers: SingleProcess, optimiser: Optimiser) -> None:
        super().__init__(model, workers)
        self.share = optimiser.table_rate / optimiser.learning_rate

    def prepare(self, optimisation: Optimisation) -> None:
        """Lets the tables learn with the rest: their rate rises and falls with the rest's."""
        updates = TableUpdates(self.model)

        def after() -> None:
            if bool(optimisation.failed):
                updates.forget()
            else:
                updates.step(self.share * float(optimisation.rate))

        optimisation.after, optimisation.tables = after, updates.state()

    def weights(self) -> dict[str, Tensor]:
        """A plain HyNT's; the tables, for the first process alone."""
        weights = weights_of(self.model)
        whole = [_joined(table.local(), self.workers) for table in self.model.tables]
        if self.workers.rank == 0:
            weights["entity"] = torch.cat([whole[0], self.model.entity.detach().cpu()])
            weights["entity_output"], weights["entity_output_bias"] = whole[1], whole[2].squeeze(1)
        return weights

    def state(self, optimisation: Optimisation) -> dict[str, Tensor]:
        """The optimiser's, and that of the tables."""
        tables = {f"table.{name}": _joined(rows, self.workers) for name, rows in optimisation.tables.items()}
        return optimisation.tensors() | tables

    def fill_weights(self, path: Path | None) -> None:
        """Every process gets its own rows."""
        found = {} if path is None else load_file(path)
        tables: list[Tensor] = []
        if found:
            rows = self.model.sizes.entities
            tables = [found["entity"][:rows], found["entity_output"], found["entity_output_bias"].unsqueeze(1)]
            found["entity"] = found["entity"][rows:]
            for name, target in weights_of(self.model).items():
                if target.numel():
                    target.detach().copy_(found[name])
        self.workers.broadcast(value for value in weights_of(self.model).values() if value.numel())
        if self.workers.broadcast_text(str(int(bool(found)))) == "1":
            for index, table in enumerate(self.model.tables):
                _deal(tables[index] if tables else None, table.local(), table, self.workers)

    def fill_state(self, path: Path | None, optimisation: Optimisation) -> None:
        """Every process gets the state of its own rows."""
        found = {} if path is None else load_file(path)
        if found:
            for name, target in optimisation.tensors().items():
                target.copy_(found[name])
        self.workers.broadcast(value for value in optimisation.tensors().values() if value.numel())
        for (name, own), table in zip(optimisation.tables.items(), self.model.tables, strict=True):
            _deal(found[f"table.{name}"] if found else None, own, table, self.workers)


def tables_for(settings: RunSettings, data: TrainingData, device: torch.device, workers: SingleProcess) -> WholeTables:
    """The model before its first step, as its settings have it; of sharded tables each process draws its own rows."""
    if settings.tables == "whole":
        return WholeTables(new_model(settings, data, device), workers)
    torch.default_generator.manual_seed(derived_seed(settings.seed, "weights"))
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    seed = derived_seed(settings.seed, "tables") % (1 << 31)
    model = SHARDED[settings.model_name](data.facts.sizes, settings.model, mesh, seed).to(device)
    return ShardedTables(model, workers, settings.optimiser)


def _joined(local: Tensor, workers: SingleProcess) -> Tensor:
    """All rows, in the first process's own memory; in the others, nothing."""
    here = local.detach().cpu().contiguous()
    parts = workers.collected(here.numpy().tobytes())
    pieces = [torch.frombuffer(bytearray(part), dtype=here.dtype) for part in parts if part]
    return torch.cat(pieces).view(-1, *here.shape[1:]) if pieces else here[:0]


def _deal(whole: Tensor | None, local: Tensor, table: ShardedTable, workers: SingleProcess) -> None:
    """Gives every process its own of all rows, which only the first one has, in pieces that any memory has room for."""
    piece = max(1, (1 << 26) // max(1, local[:1].numel()))
    for start in range(0, table.rows, piece):
        end = min(start + piece, table.rows)
        message = local.new_empty(end - start, *local.shape[1:])
        if whole is not None:
            message.copy_(whole[start:end])
        workers.broadcast([message])
        low, high = max(start, table.first), min(end, table.first + len(local))
        if low < high:
            local[low - table.first : high - table.first] = message[low - start : high - start]
    table.recount()
