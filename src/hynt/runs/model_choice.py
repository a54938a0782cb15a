"""From a model's name to its settings and to the model itself, by the registry and nothing else.

The settings of someone else's run may ask for a width of a billion or for a hundred thousand layers. So a saved model
is built only as large as the weights that lie beside its settings: so many tensors of so many bytes, read from the
header of their file before anything is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, HyntError, UsageError
from hynt.files import RESTORE
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Vocabulary
from hynt.limits import MODEL_MEMORY, MOST_TENSORS, memory_here
from hynt.models.registry import MODELS, build, offered_models
from hynt.runs import CONFIG
from hynt.runs.settings import RunSettings, furthest_above, settings_class

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
_AGAIN = "Get the run again from where it came, or ask whoever made it."


@contextmanager
def no_larger_than(weights: Path) -> Iterator[None]:
    """Within the block, a model that needs far more than these weights is a `DataError` before memory is taken."""
    size = weights.stat().st_size
    try:
        with safe_open(weights, framework="pt") as file:
            tensors = len(file.keys())
    except (SafetensorError, OSError, ValueError) as problem:
        raise DataError(f"the tensors cannot be read: {problem}.", where=str(weights), advice=RESTORE) from None

    def refusal(asked: str, *, of_tensors: bool) -> HyntError:
        there = f"{tensors:,}" if of_tensors else f"{size:,} bytes"
        return DataError(
            f"the settings ask for {asked}, and the weights have {there}: they are not of this run.",
            where=str(weights.parent / CONFIG),
            advice=_AGAIN,
        )

    try:
        with _Bounded(2 * tensors + _SPARE_TENSORS, MODEL_MEMORY + 8 * size, refusal):
            yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, OverflowError) as problem:
        raise DataError(
            f"no model can be made by these settings: {problem}.", where=str(weights.parent / CONFIG), advice=_AGAIN
        ) from None


_COPIES = {"adam": 4, "muon": 3, "sgd": 2}
"""How often training holds a weight at least: itself, its gradient, and what the optimiser knows of it."""
_SMALL = 2**18
"""Bytes of a tensor that is made even where nobody wants what it holds: models look into such while they are made."""


def check_memory(
    settings: RunSettings, table: FactTable, vocabulary: Vocabulary, scaling: NumberScaling, device: torch.device
) -> None:
    """Refuses settings whose model cannot be trained in the memory there is: it is made almost without any.

    How large it is follows from its settings and the sizes of the graph, so it is made of one fact.
    """
    if settings.tables == "spread":
        return
    literals = distinct_literals(table) if needs_literals(settings) else None
    facts = FactTensors.from_table(table.take(np.arange(1)), vocabulary, scaling, literals=literals)
    where, much, usual = furthest_above(settings, int, ("model.",), times=0) or ("model", 0, 0)

    def refusal(asked: str, *, of_tensors: bool) -> HyntError:
        del of_tensors
        less = f"Give less than {much:,}; {usual:,} is usual." if much else "Train it where there is more memory."
        return UsageError(f"the model needs {asked}, more than there is room for here.", where=where, advice=less)

    copies = 1 if device.type == "cuda" else _COPIES[settings.optimiser.method]
    try:
        with _Unmade(MOST_TENSORS, memory_here() // copies, refusal):
            MODELS.get(settings.model_name).build(facts.sizes, facts, settings.model)
    except HyntError:
        raise
    except Exception:  # noqa: BLE001 - a model that asks what its tensors hold is held to what it asked for until then
        return


class _Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Looks at each tensor before it is made, and at how many and how large the parameters of a model are together."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and PyTorch would load its compiler, a second's work, only to leave it out."""
        return False

    def __init__(self, most_tensors: int, most: int, refusal: Callable[..., HyntError]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most_tensors, self._most, self._refusal = most_tensors, most, refusal
        self._tensors = self._bytes = 0

    def __enter__(self) -> Self:
        self._hook = register_module_parameter_registration_hook(self._count)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)  # type: ignore[no-untyped-call]
        self._hook.remove()

    def _count(self, module: nn.Module, name: str, parameter: Tensor | None) -> None:
        del module, name
        self._tensors += 1
        self._bytes += 0 if parameter is None else parameter.nbytes
        if self._tensors > self._most_tensors:
            raise self._refusal(f"more than {self._most_tensors:,} tensors", of_tensors=True)
        if self._bytes > self._most:
            raise self._refusal(f"more than {self._most:,} bytes", of_tensors=False)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        for shape in args[:2]:
            if isinstance(shape, list | tuple) and all(type(length) is int for length in shape):
                needed = 4 * math.prod(shape)
                if needed > self._most:
                    raise self._refusal(f"a tensor of {needed:,} bytes", of_tensors=False)
        return func(*args, **(kwargs or {}))


class _Unmade(_Bounded):  # type: ignore[no-untyped-call]
    """Makes tensors of any size without what they hold, and fills none of these."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.endswith("_") and args[0].is_meta:
            return args[0]
        shape = args[0] if args and isinstance(args[0], list | tuple) else ()
        if "device" in (kwargs or {}) and 4 * math.prod(shape) > _SMALL:
            kwargs = {**kwargs, "device": torch.device("meta")}
        return super().__torch_dispatch__(func, types, args, kwargs)
