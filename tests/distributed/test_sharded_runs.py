"""Whole runs with sharded tables: they learn, are saved as a plain HyNT, and go on in another number of processes."""

from __future__ import annotations

import json

import pytest

from hynt.errors import UsageError
from hynt.evaluation.evaluator import Evaluator
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.training.process import follow
from hynt.training.resolve_settings import check_tables
from hynt.training.run import start, train
from tests.distributed.processes import CPU, together
from tests.distributed.test_runs import _StopsAfter, records, same_weights
from tests.training.small_graph import TINY, small_graph, tiny_settings

GRAPH = small_graph(people=40)
OWN = Stopper()


def settings(**changes):
    given = {
        "model": {**TINY["model"], "dropout": 0.0},
        "schedule": {"epochs": 6, "period": 6},
        "tables": "spread",
        "losses": {"smoothing": 0.1, "negatives": 24},
        "validation": {"every": 3},
        **changes,
    }
    return tiny_settings(**given)


def begun(workers, path, watcher=None) -> None:
    if workers.rank:
        follow(workers, GRAPH, CPU)
        return
    run = start(GRAPH, settings(), path, CPU) if not path.exists() else RunFolder.open(path)
    train(run, CPU, watcher or Watcher(), workers.stopper, clock=workers.clock, workers=workers)


def stopped(workers, path) -> None:
    with pytest.raises(Interrupted, match="was stopped in epoch 3"):
        begun(workers, path, _StopsAfter(OWN, 2))


def losses(run: RunFolder) -> list[float]:
    return [record["loss"]["link"] for record in records(run) if "loss" in record]


@pytest.mark.slow
def test_a_run_learns_is_a_plain_hynt_when_done_and_goes_on_in_another_number_of_processes(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert together(2, begun, whole) == [0, 0]
    run = RunFolder.open(whole)
    assert run.is_finished
    assert losses(run)[-1] < 0.9 * losses(run)[0]
    loaded = load_run(whole, CPU)
    assert type(loaded.model).__name__ == "Hynt"
    found = Evaluator(loaded.graph, loaded.scaling, "valid").evaluate(loaded.model).to_mapping()
    best = json.loads((whole / "manifest.json").read_text())["training"]["best"]
    assert found["link"]["all"]["mrr"] == pytest.approx(best["value"], abs=1e-6)

    OWN.asked = False
    assert together(2, stopped, cut, stopper_of=lambda rank: OWN) == [0, 0]
    assert together(3, begun, cut) == [0, 0, 0]
    assert len(losses(RunFolder.open(cut))) == 6
    assert losses(RunFolder.open(cut))[:2] == pytest.approx(losses(run)[:2], rel=1e-5)
    assert losses(RunFolder.open(cut))[-1] == pytest.approx(losses(run)[-1], rel=0.2)  # other draws from there on


def test_going_on_in_one_process_is_refused_with_a_word(tmp_path):
    path = tmp_path / "run"
    OWN.asked = False
    assert together(2, stopped, path, stopper_of=lambda rank: OWN) == [0, 0]
    with pytest.raises(UsageError, match="sharded tables need several processes") as problem:
        train(RunFolder.open(path), CPU)
    assert "--processes 2" in problem.value.advice


@pytest.mark.slow
def test_what_is_saved_is_what_goes_on(tmp_path):
    """Stopped and resumed in as many processes, the run ends with the weights of one that was never stopped."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert together(2, begun, whole) == [0, 0]
    OWN.asked = False
    assert together(2, stopped, cut, stopper_of=lambda rank: OWN) == [0, 0]
    assert together(2, begun, cut) == [0, 0]
    assert same_weights(RunFolder.open(whole), RunFolder.open(cut))


def test_spread_tables_are_refused_where_they_cannot_be(monkeypatch):
    with pytest.raises(UsageError, match="sharded tables need several processes") as problem:
        check_tables(settings())
    assert problem.value.where == "tables"
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    check_tables(settings())
    with pytest.raises(UsageError, match="trained with a sampled softmax"):
        check_tables(settings(losses={"softmax": "full"}))
    with pytest.raises(UsageError, match="only hynt, with untied outputs"):
        check_tables(settings(model={**TINY["model"], "tied_output": True}))
