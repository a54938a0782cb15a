"""A model's phases, and how their steps are run on each device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import nn

from hynt.models.contract import Model
from hynt.objectives.streams import Phase
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData
from hynt.training.captured_step import CapturedStep
from hynt.training.muon import layer_matrices
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep, StepRunner


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
