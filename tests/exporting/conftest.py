"""A run of `world` that has hardly learned anything, and its ONNX file, made once: tracing takes seconds."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from hynt.runs.opening import LoadedRun, load_run
from tests.one_thread import one_thread  # noqa: F401 - a fixture of this package

CPU = torch.device("cpu")


class Exported(NamedTuple):
    loaded: LoadedRun
    file: Path
    report: dict


@pytest.fixture(scope="session")
def exported(world_run, tmp_path_factory) -> Exported:
    """In one folder, as docs/how-to/sharing-runs.md has them: runs/first and model.onnx."""
    from hynt.exporting import export_onnx

    folder = tmp_path_factory.mktemp("onnx")
    run = shutil.copytree(world_run, folder / "runs" / "first")
    loaded, file = load_run(run), folder / "model.onnx"
    return Exported(loaded, file, export_onnx(loaded, file))
