"""What a run was made with, as far as it bears on the numbers. Never a path, a user or a host."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from hynt import __version__

_PACKAGES = ("torch", "numpy", "pyarrow", "safetensors", "triton")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Versions and the kind of machine, for environment.json."""
    found: dict[str, Any] = {
        "hynt": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "device": device.type,
        "threads": torch.get_num_threads(),
    }
    found |= {name: installed for name in _PACKAGES if (installed := _version(name))}
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["cuda"] = torch.version.cuda
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
