"""What must hold on a GPU, as plain functions: the tests marked `gpu` call them, and so does benchmarks/device.py on a
machine without pytest.
"""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path
from typing import Any, cast

import torch

from hynt.distributed.worker_group import join_job
from hynt.evaluation.evaluator import evaluate
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import load_run, new_model
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import LARGE, Optimisation
from hynt.training.process import phases_for
from hynt.training.run import start, train
from hynt.training.step import CapturedStep, EagerStep, tell_of_waiting
from tests.training.small_graph import TINY, small_graph, tiny_settings

GPU = torch.device("cuda")


class Bench:
    """A model on the GPU with its stream, ready for steps."""

    def __init__(self, settings: RunSettings) -> None:
        graph = small_graph(people=200)
        self.settings = settings
        self.data = training_data(graph, settings, fit_scaling(graph, settings), GPU)
        self.model = new_model(settings, self.data, GPU).train()

    def runner(self, kind: str, *, bf16: bool, note: Any = None) -> Any:
        model = copy.deepcopy(self.model)
        phase = phases_for(model, self.data, self.settings)[0]
        optimisation = Optimisation(phase.parameters, self.settings.optimiser, GPU, matrices=phase.matrices)
        if kind == "eager":
            return EagerStep(model, phase.stream, optimisation, GPU, bf16=bf16)
        compiled = kind == "compiled"
        return CapturedStep(
            model, phase.stream, optimisation, GPU, bf16=bf16, compiled=compiled, note=note or (lambda text: None)
        )


def settings(dropout: float, **changes: Any) -> RunSettings:
    return tiny_settings(model={**TINY["model"], "dropout": dropout}, **changes)


def steps(runner: Any, count: int, seed: int = 0) -> None:
    """Some steps of the first epochs, over all shapes."""
    done, epoch = 0, 0
    while done < count:
        items = runner.stream.epoch(seed, epoch)
        for index in range(len(items)):
            runner.run(items.items(index), 1000 * seed + done)
            done += 1
            if done == count:
                break
        epoch += 1
    torch.cuda.synchronize()


def mean_difference(one: Any, other: Any) -> float:
    pairs = [(a - b).detach().abs().flatten() for a, b in zip(one, other, strict=True)]
    return float(torch.cat(pairs).mean())


def captured_equals_eager(kind: str = "captured") -> None:
    bench = Bench(settings(0.0))
    eager, captured = bench.runner("eager", bf16=False), bench.runner(kind, bf16=False)
    start_weights = [parameter.detach().clone() for parameter in captured.model.parameters()]
    steps(eager, 40)
    steps(captured, 40)
    moved = max(
        float((a - b.detach()).abs().max()) for a, b in zip(start_weights, captured.model.parameters(), strict=True)
    )
    # The mean, not the most: where a gradient is nearly 0, Adam turns rounding into whole steps of single weights.
    apart = mean_difference(eager.model.parameters(), captured.model.parameters())
    usual = mean_difference(start_weights, captured.model.parameters())
    assert moved > 0.01, f"the weights hardly moved: {moved}"
    assert apart < 0.01 * usual, f"captured and eager steps drift apart: {apart} of {usual}"
    torch.testing.assert_close(eager.tally, captured.tally, rtol=1e-3, atol=1e-3)


def muon_and_an_average_are_captured_and_agree() -> None:
    by_muon = {"method": "muon", "learning_rate": 0.005, "clip": 1.0, "weight_decay": 0.1, "average": 0.9}
    bench = Bench(settings(0.0, optimiser=by_muon))
    said: list[str] = []
    eager, captured = bench.runner("eager", bf16=False), bench.runner("captured", bf16=False, note=said.append)
    begun = [parameter.detach().clone() for parameter in captured.model.parameters()]
    for runner in (eager, captured):
        steps(runner, 30)
    assert not said, f"the step is not captured: {said}"
    with eager.optimisation.answering(), captured.optimisation.answering():
        apart = mean_difference(eager.model.parameters(), captured.model.parameters())
        usual = mean_difference(begun, captured.model.parameters())
    assert apart < 0.05 * usual, f"captured and eager steps drift apart: {apart} of {usual}"


def compiled_equals_eager() -> None:
    captured_equals_eager("compiled")


def randomness_follows_the_seed() -> None:
    bench = Bench(settings(0.4))
    runs = [bench.runner("captured", bf16=False) for _ in range(3)]
    for runner, seed in zip(runs, (1, 1, 2), strict=True):
        items = runner.stream.epoch(0, 0)
        for step in range(10):
            runner.run(items.items(step % len(items)), 100 * seed + step)
    torch.cuda.synchronize()
    first, again, another = (list(one.model.parameters()) for one in runs)
    same, other = mean_difference(first, again), mean_difference(first, another)  # the mean: see captured_equals_eager
    assert same < 0.1 * other, f"same seed {same}, other seed {other}"


def steps_never_wait() -> None:
    runner = Bench(settings(0.1)).runner("captured", bf16=True)
    steps(runner, 10)
    items = runner.stream.epoch(0, 0)
    tell_of_waiting("error")
    try:
        for step in range(len(items)):
            runner.run(items.items(step), step)
            runner.has_failed()
    finally:
        tell_of_waiting("default")


def bad_steps_move_nothing() -> None:
    bench = Bench(settings(0.0))
    runner = bench.runner("captured", bf16=False)
    steps(runner, 10)
    with torch.no_grad():
        # A weight that every fact is read with: a table's row would spoil only the steps that look it up.
        runner.model.encode_triplet.weight[0, 0] = float("nan")
        good = [parameter.clone() for parameter in runner.model.parameters()]
    steps(runner, 10)
    torch.cuda.synchronize()
    assert runner.has_failed()
    for before, after in zip(good, runner.model.parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=0, equal_nan=True)


def large_tables_move_as_small_ones() -> None:
    chosen, size = settings(0.0).optimiser, LARGE + 5
    generator = torch.Generator(GPU).manual_seed(0)
    begin = torch.randn(size, device=GPU, generator=generator)
    found = []
    for swept in (True, False):
        table = torch.nn.Parameter(begin.clone())
        optimisation = Optimisation([table], chosen, GPU, sweeps=swept)
        for step in range(20):
            table.grad = torch.randn(size, device=GPU, generator=generator.manual_seed(step)) * (step + 1)
            optimisation.update(torch.zeros((), device=GPU))
        assert float(optimisation.steps[0]) == 20
        table.grad = torch.full_like(table, float("nan"))
        optimisation.update(torch.zeros((), device=GPU))
        assert bool(optimisation.failed)
        assert float(optimisation.steps[0]) == 20, "a bad step moved the table"
        found.append((table.detach(), optimisation.means[0], optimisation.squares[0]))
    assert float((found[0][0] - begin).abs().mean()) > 1e-3, "the table hardly moved"
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def falls_back_without_a_compiler() -> None:
    bench, notes = Bench(settings(0.0)), []
    runner = bench.runner("compiled", bf16=False, note=notes.append)
    real = torch.compile

    def broken(*arguments: Any, **options: Any) -> Any:
        def fail(*inner: Any) -> Any:
            raise RuntimeError("no compiler was found")

        return fail

    torch.compile = broken  # type: ignore[assignment]
    try:
        steps(runner, 5)
    finally:
        torch.compile = real
    assert "no compiler was found" in notes[0], notes


def trained(chosen: RunSettings, folder: Path) -> Any:
    run = train(start(small_graph(people=100), chosen, folder, GPU), GPU, compiled=False)
    loaded = load_run(run.path, GPU)
    return evaluate(loaded.model, loaded.graph, loaded.scaling, "valid", device=GPU)


def precisions_agree() -> None:
    longer = {"schedule": {"epochs": 60, "period": 60}, "batch_size": 64}
    with tempfile.TemporaryDirectory() as place:
        half = trained(settings(0.1, precision="bf16", **longer), Path(place) / "half")
        full = trained(settings(0.1, precision="fp32", **longer), Path(place) / "full")
    for metric, noise in (("link.all.mrr", 0.1), ("relation.all.mrr", 0.1), ("number.all.rmse", 0.1)):
        assert abs(half.metric(metric) - full.metric(metric)) < noise, metric


def a_run_resumes() -> None:
    chosen = settings(0.1, precision="fp32", schedule={"epochs": 8, "period": 8})
    stopper = Stopper()

    class Stop(Watcher):
        def epoch_done(self, record: Any) -> None:
            stopper.asked = record.epoch == 4

    with tempfile.TemporaryDirectory() as place:
        whole = train(start(small_graph(), chosen, Path(place) / "whole", GPU), GPU, compiled=False)
        stopped = start(small_graph(), chosen, Path(place) / "stopped", GPU)
        try:
            train(stopped, GPU, Stop(), stopper, compiled=False)
        except Interrupted:
            pass
        else:
            raise AssertionError("training was not stopped")
        again = train(RunFolder.open(stopped.path), GPU, compiled=False)
        one, other = load_run(whole.path).model, load_run(again.path).model
    for (name, before), after in zip(one.named_parameters(), other.parameters(), strict=True):  # type: ignore[attr-defined]
        torch.testing.assert_close(before, after, rtol=1e-3, atol=1e-3, msg=lambda text, name=name: f"{name}: {text}")


def sampled_steps_are_captured_and_agree() -> None:
    """Drawing, too, happens inside the captured step; what it learns is what plain steps learn."""
    bench = Bench(settings(0.0, losses={"softmax": "sampled", "negatives": 96}))
    said: list[str] = []
    eager, compiled = bench.runner("eager", bf16=False), bench.runner("compiled", bf16=True, note=said.append)
    steps(eager, 60)
    steps(compiled, 60)
    assert not said, f"the sampled step is not captured or not compiled: {said}"
    means = [runner.tally[0, 0] / runner.tally[1, 0] for runner in (eager, compiled)]
    torch.testing.assert_close(means[0], means[1], rtol=0.03, atol=0.0)


def a_job_of_one_process_trains_over_nccl() -> None:
    """Everything that a job of several processes has, but for the others: gradients are exchanged inside the graph."""
    graph, chosen = small_graph(people=60), settings(0.0, precision="fp32")
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    with tempfile.TemporaryDirectory() as folder:
        plain = train(start(graph, chosen, Path(folder) / "plain", GPU), GPU)
        os.environ.update(place)
        try:
            with join_job(GPU) as workers:
                run = start(graph, chosen, Path(folder) / "team", GPU)
                shared = train(run, GPU, Watcher(), workers.stopper, clock=workers.clock, workers=workers)
        finally:
            for name in place:
                del os.environ[name]
        models = [load_run(run.path, GPU).model for run in (plain, shared)]
        first, second = ([*cast(torch.nn.Module, model).parameters()] for model in models)
        apart = mean_difference(first, second)
    assert apart < 1e-4, f"a job of one process drifts from training alone: {apart}"


CHECKS = (
    captured_equals_eager,
    muon_and_an_average_are_captured_and_agree,
    compiled_equals_eager,
    randomness_follows_the_seed,
    steps_never_wait,
    bad_steps_move_nothing,
    large_tables_move_as_small_ones,
    falls_back_without_a_compiler,
    precisions_agree,
    a_run_resumes,
    sampled_steps_are_captured_and_agree,
    a_job_of_one_process_trains_over_nccl,
)
