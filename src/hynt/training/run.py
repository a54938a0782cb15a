"""From a graph and settings to a finished run folder, at one go or after any interruption.

run = start(graph, settings, Path("RUN"), device)     # or resume(Path("RUN"), …)
outcome = train(run, device, watcher)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hynt.batches.masked_batch import Task
from hynt.batches.number_scaling import NumberScaling
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import DataError, UsageError
from hynt.evaluation.combining import combined, fitted
from hynt.files import Unwritable, index_text, remove_partial, writing
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.leftovers import only_writer
from hynt.runs import WEIGHTS
from hynt.runs.checkpoint import (
    EpochRecord,
    Interrupted,
    TrainingState,
    ValidationRecord,
    Watcher,
    checkpoints,
    fill_tensors,
    prune,
    read_progress,
    save_checkpoint,
    weights_of,
)
from hynt.runs.model_choice import check_memory
from hynt.runs.opening import best_name, last_good, new_model, restored
from hynt.runs.run_folder import COMBINATION, MEANS, START, RunFolder, describe_environment, means_text
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import fit_scaling, training_data, training_table
from hynt.training.optimisation import Optimisation
from hynt.training.process import Start, WholeTables, tell_finished, trained, within_memory
from hynt.training.resolve_settings import check_moments, check_schedule, check_softmax, check_tables
from hynt.training.validating import check_metric, evaluator_of, fitted_means, validates


def start(
    graph: KnowledgeGraph,
    settings: RunSettings,
    out: Path,
    device: torch.device,
    graph_source: Path | None = None,
    weights: Path | None = None,
) -> RunFolder:
    """A new run folder, with everything but the training, which starts from `weights` where they are given."""
    # What cannot work is refused before a folder is made, not after hours of training.
    table = training_table(graph, settings)
    check_metric(settings, graph)
    check_softmax(settings)
    check_schedule(settings)
    check_moments(settings)
    check_tables(settings)
    scaling = fit_scaling(graph, settings)
    check_memory(settings, table, graph.vocabulary, scaling, device)
    if weights is not None:
        _check_fit(weights, settings, graph, scaling)
    return RunFolder.create(out, settings, graph, scaling, describe_environment(device), graph_source, weights)


def _check_fit(weights: Path, settings: RunSettings, graph: KnowledgeGraph, scaling: NumberScaling) -> None:
    """Refuses weights that are not those of such a model on such a graph."""
    model = new_model(settings, training_data(graph, settings, scaling, torch.device("cpu")), torch.device("cpu"))
    try:
        fill_tensors(weights, weights_of(model))
    except DataError as problem:
        raise UsageError(
            f"the weights do not fit: {problem.what}",
            where="--from",
            advice="A model with vectors of its own starts from a run on the same graph; hynt-inductive from any.",
        ) from None


@dataclass
class _FolderKeeper:
    """Writes metrics and checkpoints into a run folder, and passes news on."""

    run: RunFolder
    watcher: Watcher
    keep_best: bool
    tables: WholeTables

    def epoch_done(self, record: EpochRecord) -> None:
        self._append(record.to_mapping())
        self.watcher.epoch_done(record)

    def validated(self, record: ValidationRecord) -> None:
        self._append(record.to_mapping())
        self.watcher.validated(record)

    def save(self, progress: TrainingState, optimisation: Optimisation, *, best: bool) -> None:  # noqa: ARG002
        """What is best follows from the progress itself: its checkpoint's name."""
        progress = replace(progress, metrics_bytes=self.run.metrics.stat().st_size)
        weights, state = self.tables.weights(), self.tables.state(optimisation)
        saved = save_checkpoint(self.run.checkpoints, progress, weights, state)
        kept = {saved.name} | ({best_name(one) for one in progress.kept()} if self.keep_best else set())
        prune(self.run.checkpoints, kept)

    def take_best(self, progress: TrainingState) -> None:
        """Goes on from the best weights, where they are kept."""
        is_kept = progress.best is not None and self.keep_best
        path = self.run.checkpoints / best_name(progress.best) / WEIGHTS if progress.best and is_kept else None
        self.tables.fill_weights(path)

    def _append(self, mapping: Mapping[str, Any]) -> None:
        path = self.run.metrics
        with writing(path, "the training record"), path.open("a", encoding="utf-8", newline="\n") as file:
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
    weighs_when_stopped: bool = False,
    reserved: float = 0.0,
) -> RunFolder:
    """Trains a run to its end, from where its last good checkpoint left it. `clock` tells training time; the other
    processes of a `workers` call `follow`. With `weighs_when_stopped` a run that is stopped answers with statistics
    beside its best weights so far, as a finished one does. Of the time that a new run may last, so much is `reserved`
    for what is not training.
    """
    watcher, workers = watcher or Watcher(), workers or SingleProcess()
    with only_writer(run.path, "Wait until it is done, or stop it: Ctrl-C saves."), _telling_what_is_kept(run):
        try:
            return _trained(RunFolder.open(run.path), device, watcher, stopper, compiled, clock, workers, reserved)
        except Interrupted:
            if weighs_when_stopped and workers.world == 1:
                _weigh_so_far(RunFolder.open(run.path), device, watcher)
            raise


@contextmanager
def _telling_what_is_kept(run: RunFolder) -> Iterator[None]:
    """A disk that is full, or may only be read, ends training; what was saved before stays."""
    try:
        yield
    except Unwritable as problem:
        progress, folder = last_good(run)
        where = f"after epoch {progress.epoch}" if not progress.step else f"within epoch {progress.epoch + 1}"
        kept = "No checkpoint was made yet." if folder is None else f"The checkpoint {where} is kept."
        advice = "Make room, then go on with the same command and --resume."
        raise DataError(f"{problem.what} {kept}", where=problem.where, advice=advice) from None


def _trained(
    run: RunFolder,
    device: torch.device,
    watcher: Watcher,
    stopper: Stopper | None,
    compiled: bool,
    clock: Callable[[], float],
    workers: SingleProcess,
    reserved: float,
) -> RunFolder:
    if run.is_finished:
        tell_finished(workers)
        run.tidy()
        return run
    run = run.beside({})  # what was weighed where it was stopped is weighed anew
    settings, graph = run.settings(), run.graph()
    check_tables(settings)  # a run that several processes began may be resumed in one
    remove_partial(run.path)
    progress, checkpoint = last_good(run, watcher.note)
    if checkpoint is None:
        progress = replace(progress, reserved=reserved)
    _cut_metrics(run, progress)
    begin = Start(settings, progress, resumed=checkpoint is not None)
    if workers.world > 1:
        begin.tell(workers, run.manifest["graph"]["fingerprints"])
    with within_memory(settings, str(run.path)):
        model, end = trained(
            begin,
            graph,
            run.scaling(graph),
            device,
            partial(_FolderKeeper, run, watcher, settings.validation.keep_best),
            checkpoint=checkpoint,
            weights=run.checked(START) if START in run.manifest["files"] else None,
            workers=workers,
            stopper=stopper or Stopper(),
            clock=clock,
            note=watcher.note,
            compiled=compiled,
        )
    return _finish(run, model, settings, end, graph, device, watcher)


def _cut_metrics(run: RunFolder, progress: TrainingState) -> None:
    """Takes off the lines of work that was lost: it is done, and written down, again."""
    with writing(run.metrics, "the training record"), run.metrics.open("ab") as file:
        if file.tell() > progress.metrics_bytes:
            file.truncate(progress.metrics_bytes)


def _finish(
    run: RunFolder,
    model: nn.Module,
    settings: RunSettings,
    end: TrainingState,
    graph: KnowledgeGraph,
    device: torch.device,
    watcher: Watcher,
) -> RunFolder:
    """Chooses the weights that the run answers with, and fits what stands beside them."""
    if not checkpoints(run.checkpoints):  # a model that learns nothing by steps
        save_checkpoint(run.checkpoints, end, weights_of(model), {})
    weights, of_tasks, chosen = _chosen(run, settings, end)
    beside = _fitted_beside(run, settings, graph, device, weights, of_tasks, watcher)
    return run.finish(weights, {"seconds": round(end.seconds, 3), **chosen}, of_tasks, beside)


def _weigh_so_far(run: RunFolder, device: torch.device, watcher: Watcher) -> None:
    """Fits what stands beside the weights that a run that was stopped answers with, if it has any."""
    progress, folder = last_good(run)
    if folder is not None:
        settings = run.settings()
        weights, of_tasks, _ = _chosen(run, settings, progress)
        run.beside(_fitted_beside(run, settings, run.graph(), device, weights, of_tasks, watcher))


def _chosen(run: RunFolder, settings: RunSettings, end: TrainingState) -> tuple[Path, dict[str, Path], dict[str, Any]]:
    """The file of weights that validation chose, or of the last ones; those of tasks that have others; and what the
    manifest says of them.
    """
    validation, folder = settings.validation, checkpoints(run.checkpoints)[-1]
    told: dict[str, Any] = {}
    if end.best is not None:
        told["best"] = {"epoch": end.best.epoch, "metric": validation.metric, "value": end.best.value}
        if validation.keep_best:
            folder = run.checkpoints / best_name(end.best)
    told["weights_of_epoch"] = read_progress(folder).epoch
    places: dict[str, Path] = {}
    if validation.keep_best and end.best_of_tasks:
        metrics = validation.metrics_of_tasks()
        told["best_of_tasks"] = {
            task: {"epoch": one.epoch} | ({} if one.value is None else {"metric": metrics[task], "value": one.value})
            for task, one in end.best_of_tasks.items()
        }
        places = {task: run.checkpoints / best_name(one) for task, one in end.best_of_tasks.items()}
    return folder / WEIGHTS, {task: place / WEIGHTS for task, place in places.items() if place != folder}, told


def _fitted_beside(
    run: RunFolder,
    settings: RunSettings,
    graph: KnowledgeGraph,
    device: torch.device,
    weights: Path,
    of_tasks: Mapping[str, Path],
    watcher: Watcher,
) -> dict[str, str]:
    """Files of the run that validation decides: how much statistics count beside the model, and the means of numbers on
    log scales.
    """
    if settings.tables != "whole" or not validates(settings, graph):
        return {}
    scaling = run.scaling(graph)
    texts: dict[str, str] = {}
    data = training_data(graph, settings, scaling, device)
    answering = restored(settings, data, device, weights, {Task[task.upper()]: one for task, one in of_tasks.items()})
    everything = replace(settings, validation=replace(settings.validation, facts=None))
    evaluator = evaluator_of(everything, graph, scaling, data.literals, device)
    if settings.with_statistics:
        counts = fitted([settings.model_name], [answering], data.facts, evaluator, settings.seed, watcher.weighing)
        if counts.groups:
            texts[COMBINATION] = index_text(counts.to_mapping(graph.vocabulary))
        if counts.groups and scaling.is_log.any():
            answering = combined([answering], data.facts, counts)
    if scaling.is_log.any():
        texts[MEANS] = means_text(fitted_means(settings, replace(evaluator, tasks=("number",)), answering), graph)
    return texts
