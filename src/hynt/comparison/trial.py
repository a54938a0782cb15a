"""One row of a comparison: a model trained within a budget of time, judged once on the test split, and described.

What is compared is what anybody could have with that budget: validation chooses the weights, and the test split is read
once. A row says how many epochs there was time for, and whether they are fewer than the model's own schedule has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, cast

import torch
from torch import nn

from hynt.batches.fact_tensors import FactTensors
from hynt.config import to_mapping, with_overrides
from hynt.evaluation.evaluator import REFERENCES, Evaluator
from hynt.evaluation.metrics import TASKS, TIES, checked_tasks
from hynt.evaluation.results import Evaluation, by_scope
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.models.contract import Model
from hynt.models.registry import build
from hynt.runs.checkpoint import Watcher
from hynt.runs.opening import LoadedRun, last_good, load_run
from hynt.runs.place import read_record
from hynt.runs.run_folder import RunFolder, refuse_changes
from hynt.runs.scoring import evaluator_of_run
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import fit_scaling, training_table
from hynt.training.estimate import peak_memory as process_memory
from hynt.training.optimisation import lasting
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train
from hynt.training.step import CapturedStep
from hynt.training.validating import SampledEvaluator

Asked = Callable[[int, int], None]
"""Hears how many questions are done, of how many."""


def training_clock() -> float:
    """Seconds, without those in which steps were compiled: a budget of a minute would be spent before the first step,
    and a rate that falls with time would have fallen already.
    """
    return time.monotonic() - CapturedStep.preparing_seconds


@dataclass(frozen=True)
class Trial:
    """What to train, and for how long."""

    model: str
    preset: str | None = None
    seed: int = 0
    seconds: float | None = None  # of training, at most; None: the whole schedule
    validations: int = 6  # spread over those seconds
    validation_facts: int | None = None  # how many facts a validation asks about; None: all
    test_facts: int | None = None  # how many facts of the test split are asked about, drawn once; None: all
    changes: tuple[str, ...] = ()  # of settings, `key=value`
    fills_time: bool = False  # the schedule is stretched or cut, so that it lasts just these seconds

    def settings(self, graph: KnowledgeGraph, device: torch.device) -> RunSettings:
        """The preset's settings, with the budget in place of its validations."""
        chosen = self._planned(graph, device)
        if self.validation_facts is not None:
            chosen = with_overrides(chosen, [f"validation.facts={self.validation_facts}"])
        if self.seconds is None:
            return chosen
        schedule = replace(chosen.schedule, seconds=self.seconds)
        if self.fills_time:
            schedule = lasting(schedule, self.seconds)
        validation = replace(chosen.validation, seconds=self.seconds / self.validations, every=schedule.epochs)
        return replace(chosen, schedule=schedule, validation=validation)

    def planned_epochs(self, graph: KnowledgeGraph, device: torch.device) -> int:
        """How many epochs the model's own schedule has, whatever the time."""
        return self._planned(graph, device).schedule.epochs

    def _planned(self, graph: KnowledgeGraph, device: torch.device) -> RunSettings:
        request = SettingsRequest(self.model, self.preset, seed=self.seed, changes=self.changes)
        return resolve_settings(request, graph, on_gpu=device.type == "cuda")


@dataclass(frozen=True, eq=False)
class TrialPlace:
    """What all trials of a comparison share: the graph, the device, and the clock."""

    graph: KnowledgeGraph
    device: torch.device
    graph_source: Path | None = None  # the saved graph's folder, for one too large to keep in a run
    tasks: Iterable[str] = TASKS
    compiled: bool = True  # on a GPU: whether steps are compiled before they are captured
    clock: Callable[[], float] = training_clock  # what training time is told by


def run_trial(
    place: TrialPlace,
    trial: Trial,
    folder: Path,
    watcher: Watcher | None = None,
    stopper: Stopper | None = None,
    asked: Asked | None = None,
    further: Callable[[LoadedRun, Evaluation], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Trains in `folder`, or goes on there with what was begun, and judges. The row is plain JSON; `further` adds to it
    what else the answers on the test split tell.
    """
    settings, begun = trial.settings(place.graph, place.device), place.clock()
    if place.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    if (folder / "manifest.json").exists():
        run = RunFolder.open(folder)
        refuse_changes(run, settings, place.graph)
    else:
        run = start(place.graph, settings, folder, place.device, place.graph_source)
    before = last_good(run)[0].seconds
    run = train(run, place.device, watcher, stopper, compiled=place.compiled, clock=place.clock)
    beside = place.clock() - begun - (run.manifest["training"]["seconds"] - before)
    loaded = load_run(run.path, place.device)
    valid = _questions(place, trial.validation_facts, loaded, "valid").evaluate(loaded.model)
    began = time.perf_counter()
    run.count_read("test")
    found = _questions(place, trial.test_facts, loaded, "test").evaluate(loaded.model, asked)
    return {
        "model": trial.model,
        "preset": trial.preset,
        "seed": settings.seed,
        "changes": list(trial.changes),
        **described(loaded.trained),
        **trained(loaded, trial.planned_epochs(place.graph, place.device)),
        "beside_seconds": round(beside, 3),
        **judged(found),
        "valid": {task: by_scope(questions, "realistic") for task, questions in valid.per_question.items()},
        "test_seconds": time.perf_counter() - began,
        **({} if further is None else further(loaded, found)),
        "peak_memory_bytes": peak_memory(place.device),
        "settings": to_mapping(settings),
    }


def _questions(place: TrialPlace, facts: int | None, loaded: LoadedRun, split: str) -> Evaluator:
    described = loaded.described() | {"test_facts": facts or "all"}
    tasks = checked_tasks(place.tasks)
    evaluator = evaluator_of_run(loaded, split, place.device, tasks=tasks, described=described)
    return evaluator if facts is None else SampledEvaluator.of(evaluator, facts)


def described(model: Model) -> dict[str, Any]:
    """What a model reads and answers, and how large it is."""
    parameters = sum(p.numel() for p in cast(nn.Module, model).parameters())
    answers = sorted(f"{task.name.lower()}, {position.value}" for task, position in model.answers)
    return {"reads": sorted(part.value for part in model.reads), "answers": answers, "parameters": parameters}


def trained(loaded: LoadedRun, planned: int) -> dict[str, Any]:
    """How the training went, from the run's own records; `planned` is how many epochs the model's schedule has."""
    run, schedule = loaded.run, loaded.settings.schedule
    lines = read_record(run.metrics)
    first = [line for line in lines if lines and line["phase"] == lines[0]["phase"]]
    epochs = [line for line in first if "loss" in line]
    curve = [line for line in lines if "validation" in line]
    reached = max((line["epoch"] for line in epochs), default=0)
    patience, since_best = loaded.settings.validation.patience, _since_best(first)
    gave_up = patience is not None and since_best >= patience
    was_cut = bool(epochs) and reached < schedule.epochs and not gave_up
    whole = epochs[:-1] if was_cut else epochs  # the last epoch of a run that was out of time is cut short
    seconds = median([line["seconds"] for line in whole[1:] or whole]) if whole else None
    facts = len(training_table(loaded.graph, loaded.settings))
    return {
        "facts": facts,
        "epochs": reached,
        "schedule_epochs": planned if epochs else 0,
        "budget_limited": was_cut and reached < planned,
        "train_seconds": run.manifest["training"]["seconds"],
        "epoch_seconds": seconds,
        "facts_per_second": facts / seconds if seconds else None,
        "batch_size": loaded.settings.batch_size,
        "weights_of_epoch": loaded.epoch,
        "best": run.manifest["training"].get("best"),
        "last_loss": epochs[-1]["loss"] if epochs else None,
        "curve": curve,
    }


def _since_best(lines: Sequence[Mapping[str, Any]]) -> int:
    found = [bool(line["best"]) for line in lines if "validation" in line]
    return found[::-1].index(True) if True in found else len(found)


def judged(found: Evaluation) -> dict[str, Any]:
    """All metrics under both tie rules, numbers also by relation in their own units, and the protocol."""
    test = {ties: {task: by_scope(questions, ties) for task, questions in found.per_question.items()} for ties in TIES}
    mapping = found.to_mapping()
    return {
        "test": test,
        "per_relation": mapping.get("number", {}).get("per_relation", []),
        "protocol": mapping["protocol"],
    }


def trivial_rows(place: TrialPlace, settings: RunSettings) -> dict[str, dict[str, Any]]:
    """The trivial models on the same questions, by name: without them a number says little."""
    scaling = fit_scaling(place.graph, settings).plain()  # a mean of logarithms is no mean
    table = training_table(place.graph, settings)
    facts = FactTensors.from_table(table, place.graph.vocabulary, scaling, place.device)
    evaluator = Evaluator(place.graph, scaling, "test", checked_tasks(place.tasks), device=place.device)
    rows = {}
    for name in REFERENCES:
        model = cast(Model, build(name, facts.sizes, facts))
        alone = replace(evaluator, described={"model": name})
        rows[name] = {"model": name, **described(model), **judged(alone.evaluate(model))}
    return rows


def peak_memory(device: torch.device) -> int | None:
    """In bytes: the peak of tensors on the GPU, or of the whole process; None where it cannot be measured."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else process_memory()
