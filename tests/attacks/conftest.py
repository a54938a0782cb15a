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


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, hynt: LimitedHynt) -> Path:
    """What the commands of `writers.py` are given: a graph, a run, what was pushed, sources and questions."""
    import torch

    from hynt.formats.jsonl import write_graph
    from hynt.graph.storage import save_graph
    from hynt.sharing.push_and_pull import push
    from hynt.training.run import start, train
    from tests.attacks.writers import QUICK
    from tests.town_graph import town_graph
    from tests.training.small_graph import tiny_settings

    torch.set_num_threads(1)
    folder, graph, cpu = tmp_path_factory.mktemp("disk"), town_graph(), torch.device("cpu")
    save_graph(graph, folder / "graph")
    train(start(graph, tiny_settings(schedule={"epochs": 2, "period": 2}), folder / "run", cpu), cpu)
    push(folder / "run", str(folder / "away"))
    write_graph(graph, folder / "source")
    hynt.fair("train", folder / "graph", "--out", folder / "loaded", *QUICK)  # torch, while there is room
    (folder / "news.jsonl").write_text('{"head": "p0", "relation": "P19", "tail": "t3"}\n')
    (folder / "questions.jsonl").write_text('{"head": "p0", "relation": "P19", "tail": "?"}\n' * 50)
    return folder
