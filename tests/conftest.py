"""What every test may use: the rule for missing system parts, and the benchmark graphs beside the checkout."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Without a GPU the Triton kernels are run by Triton's interpreter. It must be chosen before anything imports them.
if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

ROOT = Path(__file__).resolve().parent.parent

# What runs keep between processes is kept for these tests alone, and for all their workers.
_OWN_CACHE = "HYNT_CACHE" not in os.environ
if _OWN_CACHE:
    os.environ["HYNT_CACHE"] = tempfile.mkdtemp(prefix="hynt-tests-")


def pytest_unconfigure() -> None:
    if _OWN_CACHE:
        shutil.rmtree(os.environ["HYNT_CACHE"], ignore_errors=True)


# Machines differ in speed: a property test fails for a wrong answer, never for a slow one.
# Examples are the same on every run, so a red test stays red until it is mended.
settings.register_profile(
    "hynt", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hynt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A slow test that asks for a fixture which is there no longer is seen by whoever runs the quick ones."""
    for item in items:
        known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
        lacking = {*getattr(item, "fixturenames", ())} - {*known, "request"}
        if lacking:
            raise pytest.UsageError(f"{item.nodeid} asks for what is no fixture: {', '.join(sorted(lacking))}")


def require(what: str, present: bool, how: str) -> None:
    """Goes on when a system part is present; else skips with a clear word, or fails in CI, where it must be there.

    `what` names the part ("Java 17"), `how` says how to get it ("apt install openjdk-17-jre-headless").
    """
    if present:
        return
    if os.environ.get("CI", "") not in ("", "0", "false"):
        pytest.fail(f"{what} is missing, and in CI it must be there: {how}")
    pytest.skip(f"{what} is missing: {how}")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The published benchmark graphs beside the checkout. They are not part of hynt, so CI may lack them too."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("benchmark graphs are not beside this checkout: expected ../shared/data")
    return folder


@pytest.fixture(scope="session")
def world_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `world` that has hardly learned anything; nobody writes to it."""
    import torch

    from hynt.graph.storage import load_graph
    from hynt.training.run import start, train
    from tests.training.small_graph import tiny_settings

    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    settings = tiny_settings(batch_size=512, schedule={"epochs": 1, "period": 1})
    return train(start(load_graph("world"), settings, tmp_path_factory.mktemp("world") / "run", cpu), cpu).path


@pytest.fixture(scope="session")
def inductive_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of hynt-inductive that has hardly learned anything, but whose answers depend on what it observes; nobody
    writes to it.
    """
    import torch

    from hynt.training.run import start, train
    from tests.training.small_graph import small_graph, tiny_settings

    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    model = {"dimension": 16, "layers": 2, "heads": 2, "feedforward": 32, "bins": 21}
    settings = tiny_settings("hynt-inductive", model=model, batch_size=16, schedule={"epochs": 3})
    return train(start(small_graph(), settings, tmp_path_factory.mktemp("inductive") / "run", cpu), cpu).path
