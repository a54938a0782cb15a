"""From a model's name to its settings and to the model itself, by the registry and nothing else."""

from __future__ import annotations

from typing import Any

from torch import nn

from hynt.batches.fact_tensors import FactTensors
from hynt.models.registry import MODELS, build
from hynt.training.settings import RunSettings, settings_class


def settings_class_for(model_name: str) -> type[RunSettings]:
    """The dataclass of a run of this model; an unknown name is a `UsageError` that lists the models."""
    return settings_class(model_name, MODELS.get(model_name).settings)


def build_model(settings: RunSettings, facts: FactTensors) -> nn.Module:
    """A new model; its weights come from torch's generator, which the caller has seeded."""
    return build(settings.model_name, facts.sizes, facts, settings.model)


def needs_literals(settings: RunSettings) -> bool:
    """Whether the model takes each number's literal for an entity of its own."""
    return MODELS.get(settings.model_name).needs_literals(settings.model)


def for_model(model_name: str, mapping: dict[str, Any]) -> dict[str, Any]:
    """Default settings made for HyNT, without the part that is HyNT's own where another model is meant."""
    return mapping if model_name == "hynt" else {name: value for name, value in mapping.items() if name != "model"}
