"""A saved model is built only as large as the weights that lie beside its settings.

The settings of someone else's run may ask for a width of a billion or for a hundred thousand layers. What they may
take follows from the file of weights: so many tensors of so many bytes, read from its header before anything is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

from hynt.errors import DataError
from hynt.limits import MODEL_MEMORY

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
            where=str(weights.parent / "config.toml"),
            advice="Get the run again from where it came, or ask whoever made it.",
        ) from None
    finally:
        hook.remove()


class _Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Looks at the size of each tensor before it is made."""

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
        where=str(weights.parent / "config.toml"),
        advice="Get the run again from where it came, or ask whoever made it.",
    )
