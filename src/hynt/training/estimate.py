"""What a run will take, before it is started: parameters, memory, time.

Counting operations would need a formula for each model. Instead a few real steps are run, on the device that is
meant, and thrown away; what autograd keeps for the way back is counted while they run.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import asdict, dataclass, fields, replace
from statistics import median
from typing import Any, cast

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.combining import weighing_bytes, weighing_seconds
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.kernels.device import give_back_freed_memory
from hynt.models.contract import Model
from hynt.models.registry import MODELS
from hynt.objectives.streams import Phase
from hynt.runs.model_choice import check_memory
from hynt.runs.opening import new_model
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData, fit_scaling, training_data, training_table
from hynt.training.optimisation import Optimisation, training_seconds
from hynt.training.process import phases_for, threads_for, uses_bf16, within_memory
from hynt.training.step import CapturedStep, EagerStep, StepRunner
from hynt.training.trainer import LATER
from hynt.training.validating import evaluator_of, validates

TIMED_STEPS, TIMED_SECONDS, SLOW_SECONDS = 3, 0.5, 3.0
"""Timed at least, and for how long further ones are: a step of milliseconds is told by many, one of seconds by itself:
no more are run once they took so long.
"""


@dataclass(frozen=True)
class Estimate:
    """What training would take, in bytes and seconds."""

    parameters: int
    weights: int
    training_state: int  # weights, gradients and Adam's two moments
    activations: int  # kept for the way back, at the largest of the steps tried
    facts: int  # the training facts as tensors
    process: int  # what the whole process took at most, the libraries and the graph included; 0: nobody can tell
    weighing: int  # what weighing statistics takes on top, once training is over
    epochs: int  # at most
    first_epochs: int  # after which validation may end it; all of them where it does not
    steps_per_epoch: int
    seconds_per_step: float
    seconds: float  # of training in all, at most
    validating: float  # seconds that validation takes besides, up to the first that may end it
    weighing_seconds: float  # of what is fitted once training is over: how much statistics count, and means
    spent: float  # seconds of the command until training begins
    reserved: float  # of the seconds that a whole command may last: all but the first phase of training
    on_device: bool  # whether tensors lie on a GPU, and the process beside them

    @property
    def memory(self) -> int:
        """What training needs at once, roughly: on a GPU there, else of the whole process."""
        whole = self.process + self.weighing if self.process and not self.on_device else 0
        return max(self.training_state + self.activations + self.facts, whole)

    @property
    def first_seconds(self) -> float:
        """Of training until validation may end it for the first time."""
        return self.seconds * self.first_epochs / max(1, self.epochs)

    @property
    def beside(self) -> float:
        """Seconds that come on top of training."""
        return self.validating + self.weighing_seconds

    def to_mapping(self) -> dict[str, Any]:
        """The estimate as plain values that JSON can hold."""
        return {**asdict(self), "memory": self.memory, "first_seconds": self.first_seconds}


def estimate(
    graph: KnowledgeGraph, settings: RunSettings, device: torch.device, spent: float = 0.0, *, steps: bool = True
) -> Estimate:
    """Builds the model and runs a few steps of each phase, a small validation, and a small fit of what stands beside.

    `spent`: seconds of the command that are over; without `steps` phases take all the time that they may.
    """
    began = time.perf_counter() - spent
    scaling = fit_scaling(graph, settings)
    check_memory(settings, training_table(graph, settings), graph.vocabulary, scaling, device)
    with within_memory(settings):
        return _estimated(graph, settings, scaling, device, began, is_timed=steps)


def _estimated(
    graph: KnowledgeGraph,
    settings: RunSettings,
    scaling: NumberScaling,
    device: torch.device,
    began: float,
    *,
    is_timed: bool,
) -> Estimate:
    data = training_data(graph, settings, scaling, device)
    model = new_model(settings, data, device).train()
    phases = phases_for(model, data, settings)
    parameters = list(model.parameters())
    weights = sum(p.numel() * p.element_size() for p in parameters) + sum(
        b.numel() * b.element_size() for b in model.buffers()
    )
    learnt = sum(p.numel() * p.element_size() for p in parameters if p.requires_grad)
    kept, per_step, steps, needed = 0, 0.0, 0, list[float]()
    for phase in phases:
        if not is_timed:
            needed.append(math.inf)
            continue
        optimisation = Optimisation(phase.parameters, settings.optimiser, device, phase.second, matrices=phase.matrices)
        bf16 = uses_bf16(settings, device)
        kept = max(kept, _kept(EagerStep(model, phase.stream, optimisation, device, bf16=bf16), phase, settings.seed))
        runner: StepRunner = EagerStep(model, phase.stream, optimisation, device, bf16=bf16)
        if device.type == "cuda":
            runner = CapturedStep(model, phase.stream, optimisation, device, bf16=bf16, compiled=False)
        with threads_for(phases, device):
            per_step = _seconds(runner, phase, settings.seed, device)
        steps = len(phase.stream.epoch(settings.seed, 0))
        needed.append(per_step * steps * phase.epochs)
    process = peak_memory() or 0
    check, fitting = beside_training(settings, data, cast(Model, model), device) if needed else (0.0, 0.0)
    limit, reserved, spent = settings.schedule.seconds or math.inf, 0.0, time.perf_counter() - began
    is_planned = settings.schedule.whole and settings.schedule.seconds is not None
    validations = checks(settings, limit) + len(needed[1:]) if is_planned else 0
    if is_planned:
        reserved = spent + validations * check + fitting
        left = training_seconds(settings.schedule, reserved) or 0.0
        reserved += min(sum(needed[1:]), left * LATER / (1 + LATER))
        limit = training_seconds(settings.schedule, reserved) or 0.0
    mosts = [limit if place == 0 else LATER * limit for place in range(len(needed))]
    total, epochs = sum(map(min, needed, mosts)), 0
    for phase, seconds, most in zip(phases, needed, mosts, strict=True):
        epochs += phase.epochs if seconds <= most else max(1, round(phase.epochs * most / seconds))
    first = epochs
    if settings.validation.patience is not None:
        first = min(epochs, settings.validation_epochs()[0])
    weighs = settings.with_statistics and validates(settings, graph)
    validations = validations or checks(settings, total * first / max(1, epochs), first)
    return Estimate(
        sum(p.numel() for p in parameters),
        weights,
        weights + 3 * learnt,
        kept,
        _size(data.facts),
        process,
        weighing_bytes(MODELS.get(settings.model_name).answers, graph, "valid", data.facts) if weighs else 0,
        epochs,
        first,
        steps,
        per_step,
        total,
        validations * check,
        fitting,
        spent,
        reserved,
        device.type == "cuda",
    )


def checks(settings: RunSettings, seconds: float, epochs: int = 0) -> int:
    """How often a run is validated within so many seconds of training and so many epochs, its end included."""
    by_epochs = sum(one <= epochs for one in settings.validation_epochs())
    return max(1, by_epochs, round(seconds / (settings.validation.seconds or math.inf)))


TRIED = 100
"""Facts that a validation is timed by."""


def beside_training(
    settings: RunSettings, data: TrainingData, model: Model, device: torch.device
) -> tuple[float, float]:
    """About how many seconds a validation takes, and what is fitted once training is over."""
    if settings.tables != "whole" or not validates(settings, data.graph):
        return 0.0, 0.0
    validation, facts = settings.validation, len(data.graph.split("valid"))
    asked = min(facts, validation.facts or facts)
    few = replace(settings, validation=replace(validation, facts=min(TRIED, asked)))
    evaluator = evaluator_of(few, data.graph, data.scaling, data.literals, device)
    evaluator.evaluate(model)  # what all questions share is made once
    began = time.perf_counter()
    evaluator.evaluate(model)
    check, fitting = (time.perf_counter() - began) * asked / min(TRIED, asked), 0.0
    if settings.with_statistics:
        whole = replace(settings, validation=replace(validation, facts=None))
        evaluator = evaluator_of(whole, data.graph, data.scaling, data.literals, device)
        made, weighed = weighing_seconds(settings.model_name, model, data.facts, evaluator, time.perf_counter)
        give_back_freed_memory()  # training needs it
        fitting = made * (1 + bool(data.scaling.is_log.any())) + weighed  # means on log scales: made once more
    return check, fitting


def peak_memory() -> int | None:
    """In bytes: what the whole process took at most; None where nobody can tell."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS counts bytes


def _kept(runner: StepRunner, phase: Phase, seed: int) -> int:
    """Bytes that autograd keeps in one step; a tensor kept twice counts once."""
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    own = {parameter.untyped_storage().data_ptr() for parameter in phase.parameters}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        runner.run(phase.stream.epoch(seed, 0).items(0), seed)
    return sum(size for place, size in found.items() if place not in own)


def _seconds(runner: StepRunner, phase: Phase, seed: int, device: torch.device) -> float:
    """The median time of some steps, after two that warm up; of the last one alone where steps are slow."""
    items, times = phase.stream.epoch(seed, 0), list[float]()
    while (len(times) < TIMED_STEPS + 2 or sum(times[2:]) < TIMED_SECONDS) and sum(times) < SLOW_SECONDS:
        started = time.perf_counter()
        runner.run(items.items(len(items) - 1 - len(times) % len(items)), seed)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return median(times[2:] or times[-1:])


def _size(facts: FactTensors) -> int:
    columns = [getattr(facts, field.name) for field in fields(facts)]
    return sum(column.numel() * column.element_size() for column in columns if isinstance(column, Tensor))
