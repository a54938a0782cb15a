"""A run of `world` that has hardly learned anything, and its ONNX file, made once: tracing takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from hynt.graph.storage import load_graph
from hynt.training.loading import LoadedRun, load_run
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


class Exported(NamedTuple):
    loaded: LoadedRun
    file: Path
    report: dict


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Exported:
    """In one folder, as docs/sharing-runs.md has them: runs/first and model.onnx."""
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from hynt.exporting.onnx_file import export_onnx

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("onnx")
    settings = tiny_settings(batch_size=512, schedule={"epochs": 1, "period": 1})
    run = train(start(load_graph("world"), settings, folder / "runs" / "first", CPU), CPU)
    loaded, file = load_run(run.path), folder / "model.onnx"
    return Exported(loaded, file, export_onnx(loaded, file))
