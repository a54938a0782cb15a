"""One process of a training job. The first one has the run folder and tells the others what the run is; from there on
all are made of the same parts and do the same steps, each its own part of every step.

The others need the graph, which each reads for itself, so machines need not share a file system.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hynt.batches.number_scaling import NumberScaling
from hynt.config import from_mapping, to_mapping
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import DataError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.runs.checkpoint import OPTIMISER, WEIGHTS
from hynt.runs.graph_identity import fingerprints, graph_differences
from hynt.runs.model_choice import settings_class_for
from hynt.runs.progress import EpochRecord, TrainingState, ValidationRecord
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import Optimisation
from hynt.training.phases import phases_for, runner_for
from hynt.training.tables import WholeTables, tables_for
from hynt.training.trainer import Keeper, Trainer
from hynt.training.validating import validation_for


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
    def heard(cls, workers: SingleProcess, graph: KnowledgeGraph) -> Start | None:
        """What the first process tells; None: the run is finished. Refuses another graph than its."""
        said: dict[str, Any] = json.loads(workers.broadcast_text())
        if said["finished"]:
            return None
        changed = graph_differences(said["graph"], fingerprints(graph))
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
    return model, trainer.train(start.progress, partial(tables.fill_state, state) if start.resumed else None)


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


def follow(workers: SingleProcess, graph: KnowledgeGraph, device: torch.device, *, compiled: bool = True) -> None:
    """Trains along with the first process, which calls `train`, and writes nothing."""
    start = Start.heard(workers, graph)
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
        compiled=compiled,
    )
