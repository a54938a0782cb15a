"""Every process of a job but the first: it trains along and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from hynt.distributed.launch import is_launched
from hynt.distributed.worker_group import SingleProcess, join_job
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.progress import EpochRecord, TrainingState, ValidationRecord
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.distributed_start import receive_start, shared_phases
from hynt.training.optimisation import Optimisation
from hynt.training.phases import phases_for, runner_for
from hynt.training.run import learning_model
from hynt.training.sharded_run import (
    fill_state,
    fill_weights,
    prepare_tables,
    sample_from_tables,
    saved_state,
    saved_weights,
)
from hynt.training.trainer import Trainer
from hynt.training.validating import validation_for


@dataclass
class _NoKeeper:
    """The first process keeps what there is to keep; of spread tables it needs the rows of all."""

    model: nn.Module
    workers: SingleProcess

    def epoch_done(self, record: EpochRecord) -> None:
        """Nothing."""

    def validated(self, record: ValidationRecord) -> None:
        """Nothing."""

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:  # noqa: ARG002
        """Sends what the first process lacks."""
        saved_weights(self.model, self.workers)
        saved_state(optimisation, self.workers)


@contextmanager
def current_workers(device: torch.device) -> Iterator[SingleProcess]:
    """The team that this process was started in; alone, where no launcher started it."""
    if not is_launched():
        yield SingleProcess()
        return
    with join_job(device) as workers:
        yield workers


def follow(workers: SingleProcess, graph: KnowledgeGraph, device: torch.device, *, compiled: bool = True) -> None:
    """Trains along with the first process, which calls `train`."""
    start = receive_start(workers, graph)
    if start is None:
        return
    settings, progress, resumed = start
    data = training_data(graph, settings, fit_scaling(graph, settings), device)
    model = learning_model(settings, data, device)
    phases = phases_for(model, data, settings)
    sample_from_tables(phases, model, settings)
    phases = shared_phases(phases, workers)
    fill_weights(None, model, workers)
    restore: Callable[[Optimisation], None] | None = None
    if resumed:
        restore = lambda made: fill_state(None, made, model, workers)  # noqa: E731 - two lines would say no more
    trainer = Trainer(
        phases,
        settings,
        runner_for(model, device, settings, lambda text: None, compiled),
        validation_for(settings, data, model, device, workers),
        _NoKeeper(model, workers),
        device,
        workers.stopper,
        clock=workers.clock,
        take_best=lambda progress: fill_weights(None, model, workers),
        workers=workers,
        prepare=partial(prepare_tables, model, settings),
    )
    model.train()
    trainer.train(progress, restore)
