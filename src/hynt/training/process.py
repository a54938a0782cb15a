"""One process of a training job. The first one has the run folder and tells the others what the run is; from there on
all are made of the same parts and do the same steps, each its own part of every step.

The others need the graph, which each reads for itself, so machines need not share a file system.

A model's weights are whole in each process, or its entity tables are sharded over them. What is saved is the same
either way: of sharded tables the first process puts the rows together in its own memory, never on a device. So a run
goes on in any number of processes, and is loaded, asked and evaluated like any other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as distributed
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from hynt.batches.epoch_plan import derived_seed
from hynt.batches.number_scaling import NumberScaling
from hynt.config import from_mapping, to_mapping
from hynt.distributed.sharded_table import SHARDED, ShardedHynt, ShardedTable, TableUpdates
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import DataError
from hynt.evaluation.tiles import is_out_of_memory
from hynt.graph.content_hash import graph_differences, graph_fingerprints
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.kernels.device import threads_at_most
from hynt.models.contract import Model
from hynt.models.registry import MODELS
from hynt.objectives.streams import Phase
from hynt.runs import WEIGHTS
from hynt.runs.checkpoint import OPTIMISER, EpochRecord, TrainingState, ValidationRecord, fill_tensors, weights_of
from hynt.runs.model_choice import settings_class_for
from hynt.runs.opening import new_model
from hynt.runs.settings import Optimiser, RunSettings, furthest_above
from hynt.runs.training_data import TrainingData, fit_scaling, training_data
from hynt.training.muon import layer_matrices
from hynt.training.optimisation import Optimisation
from hynt.training.step import CapturedStep, EagerStep, StepRunner
from hynt.training.trainer import Keeper, Trainer
from hynt.training.validating import validation_for


@contextmanager
def within_memory(settings: RunSettings, where: str = "") -> Iterator[None]:
    """Says what to do where a step takes more memory than there is; `where`: the run that is trained."""
    try:
        yield
    except (RuntimeError, MemoryError) as problem:
        if not is_out_of_memory(problem):
            raise
        streams = MODELS.get(settings.model_name).streams
        setting = (streams and streams[0].saves_memory) or f"batch_size={max(1, settings.batch_size // 4)}"
        asked, advice = (
            f"a batch size of {settings.batch_size}",
            f"Start again with less in a step, say --set {setting}.",
        )
        most = furthest_above(settings, int, ("batch_size", "losses.", "model."))
        if most is not None and most[0] != "batch_size":
            asked = f"{most[0]}={most[1]:,}"
            advice = f"Start again with less than {most[1]:,}; {most[2]:,} is usual."
        kept = "; checkpoints are kept" if where else ""
        raise DataError(f"the device ran out of memory with {asked}{kept}.", where=where, advice=advice) from None


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


def phases_for(
    model: nn.Module, data: TrainingData, settings: RunSettings, rank: int = 0, world: int = 1
) -> list[Phase]:
    """The stages of training that this model brings; where several processes share it, this one's part of each."""
    matrices = {id(one): one for one in layer_matrices(model)}
    phases = [
        replace(phase, matrices=tuple(matrices[id(one)] for one in phase.parameters if id(one) in matrices))
        for phase in cast(Model, model).phases(data.facts, settings.for_phases())
    ]
    if world == 1:
        return phases
    return [replace(phase, stream=phase.stream.share(rank, world)) for phase in phases]


def uses_bf16(settings: RunSettings, device: torch.device) -> bool:
    """Half precision by choice, and by default on a GPU that has it."""
    if settings.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return settings.precision == "bf16"


def runner_for(
    model: nn.Module, device: torch.device, settings: RunSettings, note: Callable[[str], None], compiled: bool = True
) -> Callable[[Phase, Optimisation], StepRunner]:
    """Captured steps on CUDA, plain ones elsewhere, and where rows of sharded tables are fetched: how many there are is
    known only in the step.
    """
    bf16 = uses_bf16(settings, device)

    def made(phase: Phase, optimisation: Optimisation) -> StepRunner:
        if device.type == "cuda" and settings.tables == "whole":
            return CapturedStep(model, phase.stream, optimisation, device, bf16=bf16, compiled=compiled, note=note)
        return EagerStep(model, phase.stream, optimisation, device, bf16=bf16)

    return made


@dataclass(frozen=True)
class Start:
    """Where training begins, the same for all processes."""

    settings: RunSettings
    progress: TrainingState
    resumed: bool  # whether there is a state of the optimiser to go on from

    def tell(self, workers: SingleProcess, graph: Mapping[str, str]) -> None:
        """Tells the other processes, and by what the graph is known."""
        said = {
            "finished": False,
            "settings": to_mapping(self.settings),
            "graph": dict(graph),
            "progress": self.progress.to_mapping(),
            "resumed": self.resumed,
        }
        workers.broadcast_text(json.dumps(said))

    @classmethod
    def received(cls, workers: SingleProcess, graph: KnowledgeGraph) -> Start | None:
        """What the first process tells; None: the run is finished. Refuses another graph than its."""
        said: dict[str, Any] = json.loads(workers.broadcast_text())
        if said["finished"]:
            return None
        changed = graph_differences(said["graph"], graph_fingerprints(graph))
        if changed:
            raise DataError(
                f"the graph of process {workers.rank + 1} is not that of the first one: {'; '.join(changed)}.",
                advice="Give all machines the same graph.",
            )
        settings: RunSettings = from_mapping(settings_class_for(said["settings"]["model_name"]), said["settings"])
        progress = TrainingState.from_mapping(said["progress"], "what the first process said")
        return cls(settings, progress, bool(said["resumed"]))


def tell_finished(workers: SingleProcess) -> None:
    """Tells the other processes that there is nothing left to train."""
    workers.broadcast_text(json.dumps({"finished": True}))


def trained(
    start: Start,
    graph: KnowledgeGraph,
    scaling: NumberScaling,
    device: torch.device,
    keeper_of: Callable[[WholeTables], Keeper],
    *,
    checkpoint: Path | None = None,
    weights: Path | None = None,
    workers: SingleProcess,
    stopper: Stopper,
    clock: Callable[[], float] = time.monotonic,
    note: Callable[[str], None] = lambda text: None,
    compiled: bool = True,
) -> tuple[nn.Module, TrainingState]:
    """Trains to the end, from the first process's `checkpoint` where it has one, else from `weights` where these are
    given: the model, and where it stands.
    """
    settings = start.settings
    data = training_data(graph, settings, scaling, device)
    tables = tables_for(settings, data, device, workers)
    model = tables.model
    phases = phases_for(model, data, settings, workers.rank, workers.world)
    tables.fill_weights(weights if checkpoint is None else checkpoint / WEIGHTS)
    state = None if checkpoint is None else checkpoint / OPTIMISER
    trainer = Trainer(
        phases,
        settings,
        runner_for(model, device, settings, note, compiled),
        validation_for(settings, data, model, device, workers),
        keeper_of(tables),
        device,
        stopper,
        clock=clock,
        workers=workers,
        prepare=tables.prepare,
    )
    model.train()
    with threads_for(phases, device):
        return model, trainer.train(start.progress, partial(tables.fill_state, state) if start.resumed else None)


WORK_OF_A_THREAD = 200_000_000
"""Products in a step that keep a thread busy, as measured for hynt (docs/results/laptop.md)."""


def threads_for(phases: Sequence[Phase], device: torch.device) -> AbstractContextManager[None]:
    """On a CPU no more threads than a step has work for."""
    work = [phase.work for phase in phases if phase.work is not None]
    has_few = device.type == "cpu" and bool(work)
    return threads_at_most(max(work) // WORK_OF_A_THREAD) if has_few else nullcontext()


@dataclass
class _Follower:
    """The first process keeps what there is to keep; of sharded tables it needs the rows of all."""

    tables: WholeTables

    def epoch_done(self, record: EpochRecord) -> None:
        """Does nothing: the first process writes the record."""

    def validated(self, record: ValidationRecord) -> None:
        """Does nothing: the first process writes the record."""

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:  # noqa: ARG002
        """Sends what the first process lacks."""
        self.tables.weights()
        self.tables.state(optimisation)

    def take_best(self, progress: TrainingState) -> None:  # noqa: ARG002
        """Receives the weights that the first process goes on from."""
        self.tables.fill_weights(None)


def follow(workers: SingleProcess, graph: KnowledgeGraph, device: torch.device) -> None:
    """Trains along with the first process, which calls `train`, and writes nothing."""
    start = Start.received(workers, graph)
    if start is None:
        return
    trained(
        start,
        graph,
        fit_scaling(graph, start.settings),
        device,
        _Follower,
        workers=workers,
        stopper=workers.stopper,
        clock=workers.clock,
    )
