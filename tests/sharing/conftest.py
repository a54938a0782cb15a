"""A small finished run to give away."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hynt.front.run import load
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="package")
def original(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    run = train(start(small_graph(), tiny_settings(), tmp_path_factory.mktemp("runs") / "run", CPU), CPU).path
    _ = load(run, "cpu").calibration  # makes calibration.json, which goes with the run
    return run
