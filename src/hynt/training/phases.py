"""Which stream each model trains on, and how its steps are run on each device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import nn

from hynt.batches.components import Masking
from hynt.batches.question_groups import Grouping
from hynt.errors import UsageError
from hynt.models.contract import Model, StreamKind, Task
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.masked_components import MaskedComponents
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.negatives import FactScorer, NegativeFacts
from hynt.objectives.streams import Phase, trainable
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData
from hynt.training.captured_step import CapturedStep
from hynt.training.literal_phases import literal_phases
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep, StepRunner


def phases_for(model: nn.Module, data: TrainingData, settings: RunSettings) -> list[Phase]:
    """The stages of training this model; none for a model that is made from the training facts at once."""
    kind = cast(Model, model).item_stream
    if kind is StreamKind.NONE:
        return []
    literal = literal_phases(model, data, settings)
    if literal is not None:
        return literal
    if kind is StreamKind.MASKED_FACTS:
        stream = MaskedFacts(data.facts, settings.batch_size, settings.masking, settings.losses)
        return [Phase(kind.value, stream, trainable(model), settings.schedule.epochs)]
    if kind is StreamKind.MASKED_COMPONENTS:
        most = cast(int, getattr(model, "instances", 64))  # of one fact, in an epoch
        masking = _what_it_answers(cast(Model, model), settings.masking)
        components = MaskedComponents(data.facts, settings.batch_size, most, masking, settings.losses)
        return [Phase(kind.value, components, trainable(model), settings.schedule.epochs)]
    if kind is StreamKind.GROUPED_QUESTIONS:
        grouping = cast(Grouping, getattr(model, "grouping", Grouping()))  # a model may say which questions it needs
        grouped = GroupedQuestions(data.facts, settings.batch_size, grouping, settings.losses.smoothing)
        return [Phase(kind.value, grouped, trainable(model), settings.schedule.epochs)]
    if kind is StreamKind.FACTS_WITH_NEGATIVES:
        negatives = NegativeFacts(data.facts, settings.batch_size, cast(FactScorer, model).corruption)
        return [Phase(kind.value, negatives, trainable(model), settings.schedule.epochs)]
    raise UsageError(f"there is no trainer for {kind.value} yet.", advice="Choose another model.")


def _what_it_answers(model: Model, masking: Masking) -> Masking:
    """Hides no relations from a model that cannot be asked for them."""
    return replace(masking, relations=masking.relations and any(task is Task.RELATION for task, _ in model.answers))


def uses_bf16(settings: RunSettings, device: torch.device) -> bool:
    """Half precision by choice, and by default on a GPU that has it."""
    if settings.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return settings.precision == "bf16"


def runner_for(
    model: nn.Module, device: torch.device, settings: RunSettings, note: Callable[[str], None], compiled: bool = True
) -> Callable[[Phase, Optimisation], StepRunner]:
    """Captured steps on CUDA, plain ones elsewhere, and where rows of spread tables are fetched: how many there are is
    known only in the step.
    """
    bf16 = uses_bf16(settings, device)

    def made(phase: Phase, optimisation: Optimisation) -> StepRunner:
        if device.type == "cuda" and settings.tables == "whole":
            return CapturedStep(model, phase.stream, optimisation, device, bf16=bf16, compiled=compiled, note=note)
        return EagerStep(model, phase.stream, optimisation, device, bf16=bf16)

    return made
