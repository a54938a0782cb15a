"""One run on a small graph, trained in a second, and copies of it for tests that change something."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from hynt.asking.predictor import Predictor
from hynt.front.run import load
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def towns() -> KnowledgeGraph:
    return town_graph()


@pytest.fixture(scope="session")
def trained(towns, tmp_path_factory) -> Path:
    """A finished run; nobody writes to it."""
    torch.set_num_threads(1)
    settings = tiny_settings(schedule={"epochs": 20, "period": 20})
    return train(start(towns, settings, tmp_path_factory.mktemp("towns") / "run", CPU), CPU).path


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A copy of the run, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture(scope="session")
def predictor(trained, tmp_path_factory) -> Predictor:
    return load(shutil.copytree(trained, tmp_path_factory.mktemp("asked") / "run"), "cpu")
