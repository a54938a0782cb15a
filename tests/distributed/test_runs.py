"""Whole runs in two processes: the same weights as in one, resumed on another number, and ended with a clear word."""

from __future__ import annotations

import json
import weakref

import pyarrow.parquet as parquet
import pytest
import torch
import torch.distributed as distributed
from safetensors.torch import load_file

from hynt.distributed.worker_group import JobEnded, SingleProcess
from hynt.errors import DataError
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import write_questions
from hynt.graph.content_hash import graph_fingerprints
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, TrainingState, Watcher
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.training.process import Start, follow
from hynt.training.resolve_settings import check_shareable
from hynt.training.run import start, train
from tests.distributed.processes import CPU, together
from tests.training.small_graph import NO_DROPOUT, TINY, small_graph, tiny_settings

GRAPH = small_graph(people=40)


def settings(**changes):
    given = {
        "model": {**TINY["model"], "dropout": 0.0},
        "schedule": {"epochs": 5, "period": 5},
        "batch_size": 32,
        "validation": {"every": 2},
        **changes,
    }
    return tiny_settings(**given)


def train_along(workers, path, watcher=None) -> None:
    if workers.rank:
        follow(workers, GRAPH, CPU)
    else:
        train(RunFolder.open(path), CPU, watcher or Watcher(), workers.stopper, clock=workers.clock, workers=workers)


def in_one_process(path, chosen):
    return train(start(GRAPH, chosen, path, CPU), CPU)


def in_processes(path, chosen, world=2):
    start(GRAPH, chosen, path, CPU)
    assert together(world, train_along, path) == [0] * world
    return RunFolder.open(path)


def weights(run):
    return load_file(run.path / "weights.safetensors")


def same_weights(one, other, tolerance=1e-5) -> bool:
    """But for the biases of attention keys: softmax does not see them, so their gradient is nothing but rounding, and
    Adam makes steps of it.
    """
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for kept in (first, second):
        for name in [name for name in kept if name.endswith("projection.bias")]:
            queries, _, values = kept[name].chunk(3)
            kept[name] = torch.cat([queries, values])
    return all(torch.allclose(first[name], second[name], rtol=0, atol=tolerance) for name in first)


def records(run):
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def test_five_epochs_of_two_half_batches_are_five_epochs_of_a_full_one(tmp_path):
    chosen = settings()
    one, two = in_one_process(tmp_path / "one", chosen), in_processes(tmp_path / "two", chosen)
    assert two.is_finished
    assert same_weights(one, two)
    for first, second in zip(records(one), records(two), strict=True):
        if "loss" in first:
            assert first["questions"] == second["questions"]  # the same facts, none twice
            assert first["loss"] == pytest.approx(second["loss"], rel=1e-4)
        else:
            ranks = first["validation"]["link"]["all"], second["validation"]["link"]["all"]
            assert ranks[0]["count"] == ranks[1]["count"]
            assert ranks[0]["mrr"] == pytest.approx(ranks[1]["mrr"], abs=1e-3)


@pytest.mark.parametrize("model_name", NO_DROPOUT)
def test_the_other_models_that_can_be_shared_learn_the_same_in_two_processes(model_name, tmp_path):
    chosen = tiny_settings(
        model_name,
        model=NO_DROPOUT[model_name],
        batch_size=32,
        schedule={"epochs": 3, "period": 3},
        validation={"every": 3, "metric": "link.all.mrr"},
        optimiser={"learning_rate": 1e-3},
    )
    check_shareable(chosen)
    one, two = in_one_process(tmp_path / "one", chosen), in_processes(tmp_path / "two", chosen)
    assert same_weights(one, two, 1e-4)
    for first, second in zip(records(one), records(two), strict=True):
        assert first.get("questions") == second.get("questions")  # the same ones, none twice
        assert first.get("loss", {}) == pytest.approx(second.get("loss", {}), rel=1e-4)
    ranks = [records(run)[-1]["validation"]["link"]["all"]["mrr"] for run in (one, two)]
    assert ranks[0] == pytest.approx(ranks[1], abs=1e-3)


def test_three_processes_with_a_sampled_softmax_and_dropout_come_to_an_end_and_agree_on_what_was_asked(tmp_path):
    chosen = settings(
        losses={"softmax": "sampled", "negatives": 30}, model=TINY["model"], schedule={"epochs": 2, "period": 2}
    )
    one, three = in_one_process(tmp_path / "one", chosen), in_processes(tmp_path / "three", chosen, 3)
    pairs = [pair for pair in zip(records(one), records(three), strict=True) if "questions" in pair[0]]
    assert [first["questions"] for first, _ in pairs] == [second["questions"] for _, second in pairs]
    first, second = pairs[-1]
    assert first["loss"]["link"] == pytest.approx(second["loss"]["link"], rel=0.1)


class _StopsAfter(Watcher):
    """Asks to stop once so many epochs are done."""

    def __init__(self, stopper: Stopper, epochs: int) -> None:
        self.stopper, self.epochs = stopper, epochs

    def epoch_done(self, record) -> None:
        self.stopper.asked = self.stopper.asked or record.epoch >= self.epochs


OWN = Stopper()


def stopped_along(workers, path) -> None:
    with pytest.raises(Interrupted, match="was stopped in epoch 3, step 1, and saved"):
        train_along(workers, path, _StopsAfter(OWN, 2))


def test_a_run_of_two_processes_goes_on_in_one_and_the_other_way_round(tmp_path):
    chosen = settings(saving={"minutes": 1000})
    whole = in_one_process(tmp_path / "whole", chosen)
    first = tmp_path / "first"
    start(GRAPH, chosen, first, CPU)
    OWN.asked = False
    assert together(2, stopped_along, first, stopper_of=lambda rank: OWN) == [0, 0]
    assert not RunFolder.open(first).is_finished
    assert same_weights(whole, train(RunFolder.open(first), CPU))
    second = tmp_path / "second"
    start(GRAPH, chosen, second, CPU)
    stopper = Stopper()
    with pytest.raises(Interrupted):
        train(RunFolder.open(second), CPU, _StopsAfter(stopper, 2), stopper)
    assert together(2, train_along, second) == [0, 0]
    assert same_weights(whole, RunFolder.open(second))
    questions = [record["questions"] for record in records(RunFolder.open(second)) if "questions" in record]
    assert questions == [record["questions"] for record in records(whole) if "questions" in record]


def one_leaves(workers, path) -> None:
    if workers.rank:
        raise SystemExit(7)
    word = r"another process of this job ended.* what was saved is kept"
    with pytest.raises(JobEnded, match=word), workers.words():
        train(RunFolder.open(path), CPU, Watcher(), workers.stopper, clock=workers.clock, workers=workers)
    raise SystemExit(3)


def test_a_process_that_is_left_alone_says_so_and_keeps_its_checkpoint(tmp_path):
    path = tmp_path / "run"
    start(GRAPH, settings(), path, CPU)
    assert together(2, one_leaves, path) == [3, 7]
    assert RunFolder.open(path).path == path


class Held:
    """In place of a captured step."""


def fails_with_something_in_hand(workers, path) -> None:
    in_hand = Held()
    alive, leave = weakref.ref(in_hand), distributed.destroy_process_group

    def noted() -> None:
        path.write_text("alive" if alive() is not None else "gone")
        leave()

    distributed.destroy_process_group = noted  # in this process alone
    try:
        raise RuntimeError("gloo: connection closed by peer")
    finally:
        in_hand.workers = workers


def test_what_failed_is_let_go_of_before_the_processes_part(tmp_path, capfd):
    """NCCL waits for ever for the end of a CUDA graph that somebody still holds."""
    assert together(1, fails_with_something_in_hand, tmp_path / "note") == [1]
    assert (tmp_path / "note").read_text() == "gone"
    assert "another process of this job ended" in capfd.readouterr().err


def hears_of_another_graph(workers) -> None:
    if workers.rank == 0:
        Start(settings(), TrainingState(), resumed=False).tell(workers, graph_fingerprints(GRAPH))
        return
    with pytest.raises(DataError, match="the graph of process 2 is not that of the first one"):
        Start.received(workers, small_graph(people=39))


def test_a_machine_with_another_graph_refuses_to_train_along():
    assert together(2, hears_of_another_graph) == [0, 0]


def evaluated(workers, run, kept) -> None:
    loaded = load_run(run, CPU)
    evaluator = Evaluator(loaded.graph, loaded.scaling, "test", rows=4, type_constrained=True, workers=workers)
    found = evaluator.evaluate(loaded.model)
    write_questions(found, kept.with_suffix(f".{workers.rank}.parquet"))


def test_an_evaluation_in_several_processes_gives_identical_ranks_in_all_of_them(tmp_path):
    run = in_one_process(tmp_path / "run", settings())
    evaluated(SingleProcess(), run.path, tmp_path / "alone")
    assert together(3, evaluated, run.path, tmp_path / "shared") == [0, 0, 0]
    alone = parquet.read_table(tmp_path / "alone.0.parquet")
    assert len(alone) > 20
    for rank in range(3):
        assert parquet.read_table(tmp_path / f"shared.{rank}.parquet").equals(alone)
