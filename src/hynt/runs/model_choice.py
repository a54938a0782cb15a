"""From a model's name to its settings and to the model itself, by the registry and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import nn

from hynt.batches.fact_tensors import FactTensors
from hynt.errors import UsageError
from hynt.models.registry import MODELS, build, offered_models
from hynt.runs.settings import RunSettings, settings_class

ENSEMBLE = "ensemble"
"""The model of a run that is made of runs: no entry of the registry, since it is not trained."""


@dataclass(frozen=True)
class EnsembleSettings:
    """Nothing but what it is made of."""

    members: tuple[str, ...] = ()  # their models, in the order of members.json


def settings_class_for(model_name: str) -> type[RunSettings]:
    """The dataclass of a run of this model; an unknown name is a `UsageError` that lists the models."""
    return settings_class(model_name, MODELS.get(model_name).settings)


def package_of(model_name: str) -> str | None:
    """`NAME==VERSION` of the package that offers a model; None for hynt's own and for one that was not installed."""
    points = [] if model_name in (*MODELS, ENSEMBLE) else offered_models().get(model_name, [])
    found = points[0].dist if points else None
    return None if found is None else f"{found.name}=={found.version}"


def settings_class_of_run(model_name: str, package: object, where: str) -> type[RunSettings]:
    """As `settings_class_for`, for a run that is there: where its model is missing, it says which package had it."""
    if model_name == ENSEMBLE:
        return settings_class(ENSEMBLE, EnsembleSettings)
    if model_name in MODELS or model_name in offered_models():
        return settings_class_for(model_name)
    if isinstance(package, str) and re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+", package):
        raise UsageError(
            f"the model {model_name!r} of this run is of the package {package.replace('==', ' ')}, which is not "
            "installed here.",
            where=where,
            advice=f"Install it where you trust it: pip install {package}",
        )
    raise UsageError(
        f"the model {model_name!r} of this run is none of hynt's own, and no package that is installed here offers it.",
        where=where,
        advice="Install the package that it was trained with; hynt models lists what there is.",
    )


def build_model(settings: RunSettings, facts: FactTensors) -> nn.Module:
    """A new model; its weights come from torch's generator, which the caller has seeded."""
    return build(settings.model_name, facts.sizes, facts, settings.model)


def needs_literals(settings: RunSettings) -> bool:
    """Whether the model takes each number's literal for an entity of its own."""
    return MODELS.get(settings.model_name).needs_literals(settings.model)
