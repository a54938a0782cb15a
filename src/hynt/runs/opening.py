"""A run as something that answers: its model with trained weights, its graph and its scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from hynt import __version__
from hynt.batches.epoch_plan import derived_seed
from hynt.batches.masked_batch import Task
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, UsageError
from hynt.evaluation.combining import combined
from hynt.graph.entity_kinds import EntityKinds
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.possible_numbers import PossibleNumbers
from hynt.graph.seen_values import UsualQualifiers
from hynt.models.combination import Combination, TaskWeights
from hynt.models.contract import Model, Part
from hynt.runs import WEIGHTS
from hynt.runs.checkpoint import (
    BestValidation,
    TrainingState,
    checkpoint_name,
    checkpoints,
    fill_tensors,
    read_progress,
    task_weights,
    weights_of,
)
from hynt.runs.kept_states import keep_states
from hynt.runs.model_choice import ENSEMBLE, build_model, no_larger_than
from hynt.runs.observing import ObservedFacts
from hynt.runs.place import SavedRun
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData, training_data, training_splits


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run, ready to be asked."""

    run: RunFolder
    settings: RunSettings
    graph: KnowledgeGraph
    scaling: NumberScaling
    model: Model
    literals: Any  # pa.StringArray where the model takes literals for entities, else None
    epoch: int  # the epoch its weights are of
    is_finished: bool  # false: training goes on, or was stopped
    observed: ObservedFacts | None  # what open questions are asked of; None for a model that reads no observed facts
    home: LoadedRun | None = None  # the run over its own graph, where this one is over another
    asked_of: tuple[str, ...] = ()  # the splits of the other graph that are observed
    changed: float = 0.0  # how much of its own graph has changed since training, as a share of its facts

    @property
    def known_splits(self) -> tuple[str, ...]:
        """The splits whose facts it knows: it was trained on them, or observes them in a graph that is not its own."""
        return training_splits(self.settings) if self.home is None else self.asked_of

    def known_facts(self) -> FactTable:
        """The facts of those splits, as one table."""
        return self.graph.columns(self.known_splits)

    def refuse_known(self, split: str, where: str) -> None:
        """Refuses a split whose facts it knows."""
        if split in self.known_splits:
            verb = "was trained on" if self.home is None else "observes"
            what = f"the run {verb} {split}, so its answers there say nothing."
            raise UsageError(what, where=where, advice="Choose another split.")

    @cached_property
    def possible_numbers(self) -> PossibleNumbers:
        """What answers are brought back to before they are shown."""
        return PossibleNumbers.of(self.graph.vocabulary, [self.graph.columns(training_splits(self.settings))])

    @cached_property
    def training_ranges(self) -> dict[int, tuple[float, float]]:
        """The least and greatest known number of each relation."""
        numbers = sorted_numbers(self.known_facts(), self.graph.vocabulary.relation_is_number)
        least, most = numbers.value[numbers.start], numbers.value[numbers.start + numbers.size - 1]
        return dict(zip(numbers.present.tolist(), zip(least.tolist(), most.tolist(), strict=True), strict=True))

    @property
    def trained(self) -> Model:
        """The model itself, without the statistics it answers with; an ensemble as it is."""
        is_one = isinstance(self.model, Combination) and self.model.trained == 1
        return cast(Combination, self.model).first if is_one else self.model

    @cached_property
    def usual_qualifiers(self) -> UsualQualifiers:
        """What the facts it has learned from nearly always say, and a question should."""
        return UsualQualifiers.of([self.known_facts()], self.graph.vocabulary)

    @cached_property
    def entity_kinds(self) -> EntityKinds:
        """What stands where in the facts it has learned from, and what else is known of it."""
        return EntityKinds.of([self.known_facts()], self.graph.vocabulary, self.graph.entities)

    def described(self) -> dict[str, Any]:
        """What a number of this run needs beside it to be compared with another."""
        model = self.model
        others = model.weights.members[model.trained :] if isinstance(model, Combination) else ()
        return (
            {
                "model": self.settings.model_name,
                "version": __version__,
                "seed": self.settings.seed,
                "epoch": self.epoch,
                "trained_on": "+".join(training_splits(self.settings)),
                "scaled_on": self.settings.scale_on,
                "log_relations": list(self.settings.log_relations),
                "finished": self.is_finished,
            }
            | self._epochs_of_tasks()
            | ({"combined_with": list(others)} if others else {})
        )

    def _epochs_of_tasks(self) -> dict[str, Any]:
        """Where tasks have weights of their own: of which epoch each task's are."""
        bests = self.run.manifest.get("training", {}).get("best_of_tasks", {})
        return {"epochs_of_tasks": {task: one["epoch"] for task, one in bests.items()}} if bests else {}


def load_run(
    place: Path | SavedRun, device: torch.device | str = "cpu", *, shuffle_literals: bool = False
) -> LoadedRun:
    """Loads a run and checks every file before it is used. An unfinished run answers with its best weights so far.

    The graph of a run that was opened already is not read again. With `shuffle_literals` the model reads training facts
    whose numbers were shuffled.
    """
    opened = place if isinstance(place, SavedRun) else SavedRun.open(place)
    run, path, device = RunFolder(opened.path, opened.manifest), opened.path, torch.device(device)
    settings, graph = run.settings(), opened.graph()
    if shuffle_literals:
        settings = replace(settings, literals="shuffled")
    scaling = run.scaling(graph)
    together = run.combination(graph)
    if settings.model_name == ENSEMBLE and together is not None:
        from hynt.runs.ensemble import opened_ensemble

        made, literals = opened_ensemble(run, graph, device, together)
        observed = _observed(made, graph, scaling, device)
        return LoadedRun(run, settings, graph, scaling, keep_states(made), literals, 0, True, observed)
    data = training_data(graph, settings, scaling, device)
    if run.is_finished:
        weights = run.checked(WEIGHTS)
        epoch = int(run.manifest.get("training", {}).get("weights_of_epoch", 0))
        named = {task: task_weights(task.name.lower()) for task in Task}
        of_tasks = {task: run.checked(name) for task, name in named.items() if name in run.manifest["files"]}
    else:
        progress, folder = last_good(run)
        if folder is None:
            raise DataError(
                "this run has no weights yet.",
                where=str(path),
                advice=f"Go on: hynt train GRAPH --out {path} --resume.",
            )
        epoch = progress.epoch
        of_tasks = {}
        if progress.best is not None and settings.validation.keep_best:
            folder, epoch = run.checkpoints / best_name(progress.best), progress.best.epoch
            bests = {Task[task.upper()]: best_name(one) for task, one in progress.best_of_tasks.items()}
            of_tasks = {task: run.checkpoints / name / WEIGHTS for task, name in bests.items() if name != folder.name}
        weights = folder / WEIGHTS
    model = restored(settings, data, device, weights, of_tasks)
    if together is not None:
        model = combined([model], data.facts, together)
    observed = _observed(model, graph, scaling, device)
    return LoadedRun(run, settings, graph, scaling, keep_states(model), data.literals, epoch, run.is_finished, observed)


def restored(
    settings: RunSettings, data: TrainingData, device: torch.device, weights: Path, of_tasks: Mapping[Task, Path]
) -> Model:
    """The model with the weights of a file, and of others for tasks that have their own."""

    def filled(path: Path) -> Model:
        with no_larger_than(path):
            model = new_model(settings, data, device)
        fill_tensors(path, weights_of(model))
        return cast(Model, model.eval())

    made = filled(weights)
    if not of_tasks:
        return made
    return TaskWeights(made, {task: filled(path) for task, path in of_tasks.items()}).eval()


def _observed(
    model: Model, graph: KnowledgeGraph, scaling: NumberScaling, device: torch.device
) -> ObservedFacts | None:
    """What open questions are asked of: every fact of the graph."""
    if Part.OBSERVED_FACTS not in model.reads:
        return None
    return ObservedFacts.of(graph.columns(), graph.vocabulary, scaling, device)


def new_model(settings: RunSettings, data: TrainingData, device: torch.device) -> nn.Module:
    """The model before its first step: a function of the settings, the data and the seed."""
    torch.default_generator.manual_seed(derived_seed(settings.seed, "weights"))
    return build_model(settings, data.facts).to(device)


def best_name(best: BestValidation) -> str:
    """The checkpoint of the best validation."""
    return checkpoint_name(TrainingState(best.phase, best.epoch))


def last_good(run: RunFolder, note: Callable[[str], None] | None = None) -> tuple[TrainingState, Path | None]:
    """The latest checkpoint that is whole, and what it says; the very start where there is none."""
    for folder in reversed(checkpoints(run.checkpoints)):
        try:
            return read_progress(folder), folder
        except DataError as problem:
            if note is not None:
                note(f"the checkpoint {folder.name} is passed over: {problem}")
    return TrainingState(), None
