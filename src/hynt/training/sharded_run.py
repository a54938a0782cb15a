"""A run whose entity tables are spread: how they are made, saved and filled again.

What is saved is a plain HyNT: the first process puts the rows together in its own memory, never on a device. So a run
goes on in any number of processes, and is loaded, asked and evaluated like any other.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as distributed
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from hynt.batches.seeds import derived_seed
from hynt.distributed.launch import is_launched
from hynt.distributed.sharded_hynt import ShardedHynt, ShardedSampler, TableUpdates
from hynt.distributed.sharded_table import ShardedTable
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import UsageError
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import NegativeSampler, answer_shares
from hynt.objectives.streams import Phase
from hynt.runs.checkpoint import fill_tensors, weights_of
from hynt.runs.model_choice import check_softmax
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData
from hynt.training.optimisation import Optimisation


def check_tables(settings: RunSettings) -> None:
    """Refuses spread tables where they cannot be, before a folder is made."""
    if settings.tables == "whole":
        return
    if not is_launched():
        raise UsageError(
            "spread tables need several processes to be spread over.",
            where="tables",
            advice="Say --processes 2, or more, or start it by torchrun.",
        )
    problem = ""
    if settings.model_name != "hynt" or settings.model.tied_output or settings.model.numbers == "discrete":
        problem = "only hynt, with untied outputs and numbers, can have spread tables"
    elif settings.losses.softmax == "full":
        problem = "spread tables are trained with a sampled softmax"
    if problem:
        raise UsageError(f"{problem}.", where="tables", advice="Change that, or say whole.")
    check_softmax(settings)


def new_sharded_model(settings: RunSettings, data: TrainingData, device: torch.device) -> nn.Module:
    """The model before its first step; each process draws its own rows."""
    torch.default_generator.manual_seed(derived_seed(settings.seed, "weights"))
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    seed = derived_seed(settings.seed, "tables") % (1 << 31)
    return ShardedHynt(data.facts.sizes, settings.model, mesh, seed).to(device)


def sample_from_tables(phases: list[Phase], model: nn.Module, settings: RunSettings) -> None:
    """Lets the loss fetch rows, where tables are spread."""
    if not isinstance(model, ShardedHynt):
        return
    for phase in phases:
        assert isinstance(phase.stream, MaskedFacts)
        shares = answer_shares(phase.stream.facts, phase.stream.planner.components)
        losses = settings.losses
        # One sample for all questions: its rows travel between processes.
        sampler = NegativeSampler.of(shares, losses.negatives, losses.negative_source)
        phase.stream.entity_loss = ShardedSampler.like(sampler)


def prepare_tables(model: nn.Module, settings: RunSettings, optimisation: Optimisation) -> None:
    """Lets the tables learn with the rest: their rate rises and falls with the rest's."""
    if not isinstance(model, ShardedHynt):
        return
    updates, share = TableUpdates(model), settings.optimiser.table_rate / settings.optimiser.learning_rate

    def after() -> None:
        if bool(optimisation.failed):
            updates.forget()
        else:
            updates.step(share * float(optimisation.rate))

    optimisation.after, optimisation.tables = after, updates.state()


def saved_weights(model: nn.Module, workers: SingleProcess) -> dict[str, Tensor]:
    """What is saved of a model; of spread tables the first process gets all rows. All processes call it at once."""
    weights = weights_of(model)
    if not isinstance(model, ShardedHynt):
        return weights
    whole = [_joined(table.local(), workers) for table in model.tables]
    if workers.rank == 0:
        weights["entity"] = torch.cat([whole[0], model.entity.detach().cpu()])
        weights["entity_output"], weights["entity_output_bias"] = whole[1], whole[2].squeeze(1)
    return weights


def saved_state(optimisation: Optimisation, workers: SingleProcess) -> dict[str, Tensor]:
    """What is saved of an optimiser. All processes call it at once."""
    tables = {f"table.{name}": _joined(rows, workers) for name, rows in optimisation.tables.items()}
    return optimisation.tensors() | tables


def fill_weights(path: Path | None, model: nn.Module, workers: SingleProcess) -> None:
    """Gives all processes the weights of a checkpoint, which only the first one reads; None: as they are."""
    if not isinstance(model, ShardedHynt):
        if path is not None:
            fill_tensors(path, weights_of(model))
        workers.broadcast(weights_of(model).values())
        return
    found = {} if path is None else load_file(path)
    tables: list[Tensor] = []
    if found:
        rows = model.sizes.entities
        tables = [found["entity"][:rows], found["entity_output"], found["entity_output_bias"].unsqueeze(1)]
        found["entity"] = found["entity"][rows:]
        for name, target in weights_of(model).items():
            if target.numel():
                target.detach().copy_(found[name])
    workers.broadcast(value for value in weights_of(model).values() if value.numel())
    if workers.broadcast_text(str(int(bool(found)))) == "1":
        for index, table in enumerate(model.tables):
            _deal(tables[index] if tables else None, table.local(), table.first, table, workers)


def fill_state(path: Path | None, optimisation: Optimisation, model: nn.Module, workers: SingleProcess) -> None:
    """Gives all processes the optimiser's state of a checkpoint, which only the first one reads."""
    found: dict[str, Tensor] = {}
    if path is not None and optimisation.tables:
        found = load_file(path)
        for name, target in optimisation.tensors().items():
            target.copy_(found[name])
    elif path is not None:
        fill_tensors(path, optimisation.tensors())
    workers.broadcast(value for value in optimisation.tensors().values() if value.numel())
    if isinstance(model, ShardedHynt):
        for (name, own), table in zip(optimisation.tables.items(), model.tables, strict=True):
            whole = found[f"table.{name}"] if found else None
            _deal(whole, own, table.first, table, workers)


def _joined(local: Tensor, workers: SingleProcess) -> Tensor:
    """All rows, in the first process's own memory; in the others, nothing."""
    here = local.detach().cpu().contiguous()
    parts = workers.collected(here.numpy().tobytes())
    pieces = [torch.frombuffer(bytearray(part), dtype=here.dtype) for part in parts if part]
    return torch.cat(pieces).view(-1, *here.shape[1:]) if pieces else here[:0]


def _deal(whole: Tensor | None, local: Tensor, first: int, table: ShardedTable, workers: SingleProcess) -> None:
    """Gives every process its own of all rows, which only the first one has, in pieces that any memory has room for."""
    piece = max(1, (1 << 26) // max(1, local[:1].numel()))
    for start in range(0, table.rows, piece):
        end = min(start + piece, table.rows)
        message = local.new_empty(end - start, *local.shape[1:])
        if whole is not None:
            message.copy_(whole[start:end])
        workers.broadcast([message])
        low, high = max(start, first), min(end, first + len(local))
        if low < high:
            local[low - first : high - first] = message[low - start : high - start]
    table.recount()
