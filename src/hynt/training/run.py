"""From a graph and settings to a finished run folder, at one go or after any interruption.

run = start(graph, settings, Path("RUN"), device)     # or resume(Path("RUN"), …)
outcome = train(run, device, watcher)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from hynt.distributed.worker_group import SingleProcess
from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.runs.checkpoint import OPTIMISER, WEIGHTS, checkpoints, prune, read_progress, save_checkpoint, weights_of
from hynt.runs.model_choice import check_softmax
from hynt.runs.opening import best_name, last_good, new_model
from hynt.runs.progress import EpochRecord, TrainingState, ValidationRecord
from hynt.runs.run_folder import RunFolder, describe_environment
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData, fit_scaling, training_data, training_table
from hynt.training.distributed_start import broadcast_start, shared_phases
from hynt.training.optimisation import Optimisation
from hynt.training.phases import phases_for, runner_for
from hynt.training.sharded_run import (
    check_tables,
    fill_state,
    fill_weights,
    new_sharded_model,
    prepare_tables,
    sample_from_tables,
    saved_state,
    saved_weights,
)
from hynt.training.trainer import Trainer
from hynt.training.validating import check_metric, validation_for


class Watcher(Protocol):
    """Who is told how training goes; a bar on a terminal, or nobody."""

    def epoch_done(self, record: EpochRecord) -> None: ...

    def validated(self, record: ValidationRecord) -> None: ...

    def note(self, text: str) -> None:
        """Something that a person should know, once."""
        ...


class Silence:
    """A watcher that says nothing."""

    def epoch_done(self, record: EpochRecord) -> None:
        """Nothing."""

    def validated(self, record: ValidationRecord) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


def chosen_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here.", where="--device", advice="Say --device cpu or auto.")
    if name not in ("cpu", "cuda"):
        raise UsageError(f"unknown device {name!r}.", where="--device", advice="Choose cpu, cuda or auto.")
    return torch.device(name)


def start(
    graph: KnowledgeGraph, settings: RunSettings, out: Path, device: torch.device, graph_source: Path | None = None
) -> RunFolder:
    """A new run folder, with everything but the training."""
    # What cannot work is refused before a folder is made, not after hours of training.
    training_table(graph, settings)
    check_metric(settings, graph)
    check_softmax(settings)
    check_tables(settings)
    scaling = fit_scaling(graph, settings)
    return RunFolder.create(out, settings, graph, scaling, describe_environment(device), graph_source)


@dataclass
class _FolderKeeper:
    """Writes metrics and checkpoints into a run folder, and passes news on."""

    run: RunFolder
    model: nn.Module
    watcher: Watcher
    keep_best: bool
    workers: SingleProcess

    def epoch_done(self, record: EpochRecord) -> None:
        self._append(record.to_mapping())
        self.watcher.epoch_done(record)

    def validated(self, record: ValidationRecord) -> None:
        self._append(record.to_mapping())
        self.watcher.validated(record)

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:  # noqa: ARG002
        """What is best follows from the progress itself: its checkpoint's name."""
        progress = replace(progress, metrics_bytes=self.run.metrics.stat().st_size)
        saved = save_checkpoint(
            self.run.checkpoints,
            progress,
            saved_weights(self.model, self.workers),
            saved_state(optimisation, self.workers),
        )
        kept = {saved.name} | ({best_name(progress.best)} if progress.best is not None and self.keep_best else set())
        prune(self.run.checkpoints, kept)

    def take_best(self, progress: TrainingState) -> None:
        """Goes on from the best weights, where they are kept."""
        is_kept = progress.best is not None and self.keep_best
        path = self.run.checkpoints / best_name(progress.best) / WEIGHTS if progress.best and is_kept else None
        fill_weights(path, self.model, self.workers)

    def _append(self, mapping: Mapping[str, Any]) -> None:
        with self.run.metrics.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(mapping, ensure_ascii=False) + "\n")


def train(
    run: RunFolder,
    device: torch.device,
    watcher: Watcher | None = None,
    stopper: Stopper | None = None,
    *,
    compiled: bool = True,
    clock: Callable[[], float] = time.monotonic,
    workers: SingleProcess | None = None,
) -> RunFolder:
    """Trains a run to its end, from where its last good checkpoint left it. `clock` tells training time; the other
    processes of a `workers` call `follow`.
    """
    watcher, workers = watcher or Silence(), workers or SingleProcess()
    if run.is_finished:
        workers.broadcast_text(json.dumps({"finished": True}))
        run.tidy()
        return run
    settings, graph = run.settings(), run.graph()
    check_tables(settings)  # a run that several processes began may be gone on with in one
    data = training_data(graph, settings, run.scaling(graph), device)
    model = learning_model(settings, data, device)
    phases = phases_for(model, data, settings)
    sample_from_tables(phases, model, settings)
    phases = shared_phases(phases, workers)
    progress, checkpoint = last_good(run, watcher.note)
    restore: Callable[[Optimisation], None] | None = None
    if checkpoint is not None:
        state = checkpoint / OPTIMISER
        restore = lambda made: fill_state(state, made, model, workers)  # noqa: E731 - two lines would say no more
    _cut_metrics(run, progress)
    if workers.world > 1:
        broadcast_start(workers, settings, run.manifest["graph"]["fingerprints"], progress, resumed=restore is not None)
    fill_weights(None if checkpoint is None else checkpoint / WEIGHTS, model, workers)
    keeper = _FolderKeeper(run, model, watcher, settings.validation.keep_best, workers)
    trainer = Trainer(
        phases,
        settings,
        runner_for(model, device, settings, watcher.note, compiled),
        validation_for(settings, data, model, device, workers),
        keeper,
        device,
        stopper or Stopper(),
        clock=clock,
        take_best=keeper.take_best,
        workers=workers,
        prepare=partial(prepare_tables, model, settings),
    )
    model.train()
    try:
        end = trainer.train(progress, restore)
    except torch.cuda.OutOfMemoryError:
        raise DataError(
            f"the device ran out of memory with a batch size of {settings.batch_size}; checkpoints are kept.",
            where=str(run.path),
            advice="Start again with a smaller batch, say --set batch_size=512.",
        ) from None
    return _finish(run, model, settings, end)


def learning_model(settings: RunSettings, data: TrainingData, device: torch.device) -> nn.Module:
    """The model that is trained: with spread tables where the settings say so."""
    return (new_sharded_model if settings.tables == "spread" else new_model)(settings, data, device)


def _cut_metrics(run: RunFolder, progress: TrainingState) -> None:
    """Takes off the lines of work that was lost: it is done, and written down, again."""
    with run.metrics.open("ab") as file:
        if file.tell() > progress.metrics_bytes:
            file.truncate(progress.metrics_bytes)


def _finish(run: RunFolder, model: nn.Module, settings: RunSettings, end: TrainingState) -> RunFolder:
    """Chooses the weights that the run answers with."""
    summary: dict[str, Any] = {"seconds": round(end.seconds, 3)}
    saved = checkpoints(run.checkpoints)
    if end.best is not None:
        summary["best"] = {"epoch": end.best.epoch, "metric": settings.validation.metric, "value": end.best.value}
    if not saved:  # a model that learns nothing by steps
        folder = save_checkpoint(run.checkpoints, end, weights_of(model), {})
    elif end.best is not None and settings.validation.keep_best:
        folder = run.checkpoints / best_name(end.best)
    else:
        folder = saved[-1]
    progress = read_progress(folder)
    summary["weights_of_epoch"] = progress.epoch
    return run.finish(folder / WEIGHTS, summary)
