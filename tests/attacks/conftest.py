"""One process with bounded memory for all attacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.limited_hynt import LimitedHynt


@pytest.fixture(scope="session")
def hynt() -> Iterator[LimitedHynt]:
    with LimitedHynt() as process:
        yield process


@pytest.fixture(scope="session")
def given_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tiny graph as `hynt push` lays it out; nobody writes to it."""
    import torch

    from hynt.sharing.push_and_pull import push
    from hynt.training.run import start, train
    from tests.training.small_graph import small_graph, tiny_settings

    torch.set_num_threads(1)
    cpu, folder = torch.device("cpu"), tmp_path_factory.mktemp("given")
    run = train(start(small_graph(), tiny_settings(), folder / "run", cpu), cpu)
    push(run.path, str(folder / "away"))
    return folder / "away"


@pytest.fixture
def away(given_away: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(given_away, tmp_path / "away"))
