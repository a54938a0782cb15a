"""From a model's name to its settings and to the model itself, by the registry and nothing else.

The settings of someone else's run may ask for a width of a billion or for a hundred thousand layers. So a saved model
is built only as large as the weights that lie beside its settings: so many tensors of so many bytes, read from the
header of their file before anything is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

from hynt.batches.fact_tensors import FactTensors
from hynt.errors import DataError, UsageError
from hynt.limits import MODEL_MEMORY
from hynt.models.registry import MODELS, build, offered_models
from hynt.runs import CONFIG
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


_SPARE_TENSORS = 64


@contextmanager
def no_larger_than(weights: Path) -> Iterator[None]:
    """Within the block, a model that needs far more than these weights is a `DataError` before memory is taken."""
    size = weights.stat().st_size
    try:
        with safe_open(weights, framework="pt") as file:
            tensors = len(file.keys())
    except (SafetensorError, OSError, ValueError) as problem:
        raise DataError(f"the tensors cannot be read: {problem}.", where=str(weights)) from None
    most, seen = 2 * tensors + _SPARE_TENSORS, 0

    def count(module: nn.Module, name: str, parameter: Tensor) -> None:
        nonlocal seen
        del module, name, parameter
        seen += 1
        if seen > most:
            raise _out_of_proportion(weights, f"more than {most:,} tensors", f"{tensors:,}")

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Allocations(weights, MODEL_MEMORY + 8 * size):
            yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, OverflowError) as problem:
        raise DataError(
            f"no model can be made by these settings: {problem}.",
            where=str(weights.parent / CONFIG),
            advice="Get the run again from where it came, or ask whoever made it.",
        ) from None
    finally:
        hook.remove()


class _Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Looks at the size of each tensor before it is made."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and PyTorch would load its compiler, a second's work, only to leave it out."""
        return False

    def __init__(self, weights: Path, most: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._weights, self._most = weights, most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        for shape in args[:2]:
            if isinstance(shape, list | tuple) and all(type(length) is int for length in shape):
                needed = 4 * math.prod(shape)
                if needed > self._most:
                    size = f"{self._weights.stat().st_size:,} bytes"
                    raise _out_of_proportion(self._weights, f"a tensor of {needed:,} bytes", size)
        return func(*args, **(kwargs or {}))


def _out_of_proportion(weights: Path, asked: str, there: str) -> DataError:
    return DataError(
        f"the settings ask for {asked}, and the weights have {there}: they are not of this run.",
        where=str(weights.parent / CONFIG),
        advice="Get the run again from where it came, or ask whoever made it.",
    )
