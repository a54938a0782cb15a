"""Small sweeps: a graph on disk, a space of tiny models, and a listener that remembers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hynt.config import to_mapping
from hynt.graph.storage import save_graph
from hynt.sweeping.space import space_from
from hynt.sweeping.study import GRAPH, Plan, StudyStorage, settled
from hynt.sweeping.sweep import blind_copy, database, prepare
from hynt.sweeping.trial import Waiting
from tests.one_thread import one_thread  # noqa: F401 - a fixture of this package
from tests.training.small_graph import small_graph, tiny_settings

SPACE = {
    "space": {
        "optimiser": {"learning_rate": {"log_range": [1e-4, 1e-1]}},
        "model": {
            "dropout": {"range": [0.0, 0.4], "step": 0.1},
            "context_heads": {"choices": [1, 2, 4], "also": ["model.prediction_heads"]},
        },
    }
}


@pytest.fixture(scope="session")
def people(tmp_path_factory) -> Path:
    """A saved graph; nobody writes to it."""
    folder = tmp_path_factory.mktemp("graphs") / "people"
    save_graph(small_graph(), folder)
    return folder


def make_plan(graph: Path, out: Path, storage: str | None = None, **changes: Any) -> Plan:
    """A sweep of tiny models, four epochs each, validated after every one."""
    prepare(out, resume=out.exists())
    loaded = blind_copy(str(graph), out / GRAPH)
    settings = tiny_settings(validation={"every": 1}, schedule={"epochs": 4, "period": 4})
    settings, space = settled(settings, changes.pop("metric", "link.all.mrr"), space_from(SPACE, "SPACE"), loaded)
    plan = Plan(
        out,
        "sweep",
        "hynt",
        to_mapping(settings),
        space,
        changes.pop("trials", 3),
        StudyStorage.of(storage, database(out)),
        threads=1,
        heartbeat=1,
        grace=3,
    )
    return replace(plan, **changes)


class Heard:
    """A listener that remembers, and can be made to do something at a validation."""

    def __init__(self, at_validation=lambda number, epoch: None) -> None:
        self.began: dict[int, dict[str, Any]] = {}
        self.epochs: dict[int, list[tuple[int, int]]] = {}
        self.values: dict[int, list[tuple[int, float]]] = {}
        self.outcomes: dict[int, tuple[str, float | None, str]] = {}
        self._at_validation = at_validation

    def __call__(self, news):
        if isinstance(news, Waiting):
            self.waited = (news.trials, news.seconds)
        elif news.what == "begun":
            self.began[news.number] = news.values
        elif news.what == "trained":
            self.epochs.setdefault(news.number, []).append((news.epoch, news.epochs))
        elif news.what == "validated":
            self.values.setdefault(news.number, []).append((news.epoch, news.value))
            self._at_validation(news.number, news.epoch)
        else:
            self.outcomes[news.number] = (news.outcome, news.value, news.problem)
