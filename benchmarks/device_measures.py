"""The measurements of `benchmarks/device.py`: epochs, schedules, evaluations, kernels, and the GPU tests."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import Any, Protocol

import torch

from benchmarks.result_file import graph_fingerprint
from hynt.comparison.trial import described
from hynt.config import to_mapping
from hynt.evaluation.combining import combined
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.metrics import SCOPES, TASKS, TIES
from hynt.evaluation.results import Evaluation, by_scope
from hynt.front.run import Run as OpenedRun
from hynt.front.training import ensemble as ensemble_of
from hynt.graph.storage import load_graph
from hynt.interruption import Stopper
from hynt.models.combination import GroupWeights, Weights
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.ensemble import Ensemble, Member
from hynt.runs.opening import load_run, new_model
from hynt.runs.run_folder import RunFolder, refuse_changes
from hynt.runs.scoring import evaluator_of_run
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import Optimisation
from hynt.training.process import phases_for, runner_for
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start
from hynt.training.run import train as train_run
from hynt.training.trainer import EpochSource

TIMED_EPOCHS = 20


class Job(Protocol):
    """What to measure on."""

    graph_folder: str | None
    model: str
    preset: str | None
    epochs: int | None
    split: str
    keep: str | None
    members: list[str]
    equal_weights: bool
    like: list[str]
    pause: int | None
    breakdown: list[str]
    asked: str | None
    seeds: list[int]
    changes: list[str]
    name: str
    text: str


class Bench:
    """A job's graph, settings and device."""

    def __init__(self, job: Job, device: Any, compiled: bool) -> None:
        self.job, self.device, self.compiled = job, device, compiled
        assert job.graph_folder is not None, "this measure needs graph=FOLDER"
        self.graph = load_graph(job.graph_folder)

    def settings(self, seed: int = 0) -> Any:
        job = self.job
        request = SettingsRequest(job.model, job.preset, job.epochs, seed, changes=tuple(job.changes))
        return resolve_settings(request, self.graph, on_gpu=self.device.type == "cuda")

    def waited(self) -> float:
        """The clock, once the device has done all it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def trainer(self) -> tuple[Any, Any, Any, Any]:
        """A model, its phase, a step runner and the settings."""
        settings = self.settings()
        data = training_data(self.graph, settings, fit_scaling(self.graph, settings), self.device)
        model = new_model(settings, data, self.device).train()
        phase = phases_for(model, data, settings)[0]
        optimisation = Optimisation(phase.parameters, settings.optimiser, self.device, matrices=phase.matrices)
        runner = runner_for(model, self.device, settings, say, self.compiled)(phase, optimisation)
        return model, phase, runner, settings


def epoch(bench: Bench) -> dict[str, Any]:
    """Time of a training epoch after warm-up, as the trainer runs it: plans are made while steps run."""
    if bench.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    _, phase, runner, settings = bench.trainer()
    source = EpochSource(phase.stream, settings.seed, 3 + TIMED_EPOCHS, bench.device)

    def run(number: int) -> None:
        items = source.epoch(number)
        for index in range(len(items)):
            runner.run(items.items(index), 1000 * number + index)
            runner.has_failed()
        source.queued(number)

    started = bench.waited()
    run(0)
    first = bench.waited() - started
    for number in (1, 2):
        run(number)
    started = bench.waited()
    marks = []
    for number in range(3, 3 + TIMED_EPOCHS):
        run(number)
        marks.append(time.perf_counter())
    total = bench.waited() - started
    lone = []
    for number in range(100, 105):
        begin = bench.waited()
        phase.stream.epoch(settings.seed, number)
        lone.append(bench.waited() - begin)
    items = phase.stream.epoch(settings.seed, 0)
    shapes: dict[str, int] = defaultdict(int)
    for index in range(len(items)):
        shapes[str(items.items(index).shape)] += 1
    on_gpu = bench.device.type == "cuda"
    return {
        "facts": phase.stream.item_count,
        "steps": len(items),
        "shapes": dict(shapes),
        "first_epoch_seconds": first,
        "epoch_seconds": total / TIMED_EPOCHS,
        "plan_seconds": median(lone),
        "step_milliseconds": 1000 * total / TIMED_EPOCHS / len(items),
        "facts_per_second": phase.stream.item_count * TIMED_EPOCHS / total,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "failed": bool(runner.optimisation.failed),
    }


def profile(bench: Bench) -> dict[str, Any]:
    """Where the time of a step goes: regular steps, and the rare ones with the longest facts, each with its kernels."""
    _, phase, runner, settings = bench.trainer()
    plan = phase.stream.epoch(settings.seed, 0)
    items = [plan.items(index) for index in range(len(plan))]
    found = {}
    for kind, is_common in (("regular", True), ("rare", False)):
        steps = [one for one in items if phase.stream.is_common(one.shape) is is_common]
        if steps:
            found[kind] = _profiled(bench, runner, steps)
    return found


def _profiled(bench: Bench, runner: Any, steps: list[Any]) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    def run(count: int) -> float:
        begin = bench.waited()
        for index in range(count):
            runner.run(steps[index % len(steps)], index)
        return 1000 * (bench.waited() - begin) / count

    on_gpu = bench.device.type == "cuda"
    profiled = 20 if on_gpu else 2
    run(profiled)
    milliseconds = run(10 * profiled)
    with torch_profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as seen:
        run(profiled)
    key = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    rows = sorted(seen.key_averages(), key=lambda row: -getattr(row, key))
    return {
        "steps": len(steps),
        "milliseconds": milliseconds,
        "kernels_a_step": sum(row.count for row in rows) / profiled,
        "kernels": [
            {"name": row.key[:120], "microseconds_a_step": getattr(row, key) / profiled, "calls": row.count / profiled}
            for row in rows[:40]
        ],
    }


def evaluate(bench: Bench) -> dict[str, Any]:
    """Time to ask a model every question of the test split; its weights do not matter for the time."""
    model, _, _, settings = bench.trainer()
    scaling = fit_scaling(bench.graph, settings)
    times = []
    for _ in range(3):  # everything anew each time, the filter's index too: what a user waits for
        begin = bench.waited()
        found = Evaluator(bench.graph, scaling, "test", device=bench.device).evaluate(model)
        times.append(bench.waited() - begin)
    kept = Evaluator(bench.graph, scaling, "test", device=bench.device)
    kept.evaluate(model)
    begin = bench.waited()
    kept.evaluate(model)
    again = bench.waited() - begin
    questions = {task: len(one) for task, one in found.per_question.items()}
    return {
        "first_seconds": times[0],
        "seconds": min(times[1:]),
        "again_seconds": again,
        "questions": questions,
        "back_off": found.protocol.get("memory_back_off"),
    }


class Curve(Watcher):
    """Remembers validations and speaks of them."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []

    def epoch_done(self, record: Any) -> None:
        """Only the last epoch is spoken of."""
        if record.epoch == record.epochs:
            say(f"    epoch {record.epoch}: {record.losses}")

    def validated(self, record: Any) -> None:
        """A point of the curve."""
        self.points.append(
            {
                "epoch": record.epoch,
                "trained_seconds": record.trained_seconds,
                "seconds": record.seconds,
                "value": record.value,
                "results": record.results,
            }
        )
        say(f"    epoch {record.epoch}: {record.metric} {record.value:.4f} after {record.trained_seconds:.1f} s")

    def note(self, text: str) -> None:
        """Passed on."""
        say(f"    {text}")


def train(bench: Bench, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Whole schedules, one per seed, and what they reach on the job's split under both tie rules."""
    result: dict[str, Any] = {"seeds": {}}
    for seed in bench.job.seeds:
        result["seeds"][str(seed)] = _one_seed(bench, seed)
        keep(result)
    return result


def _one_seed(bench: Bench, seed: int) -> dict[str, Any]:
    settings, curve = bench.settings(seed), Curve()
    if bench.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as place:
        begin = bench.waited()
        folder = Path(place) / "run" if bench.job.keep is None else Path(bench.job.keep) / f"seed-{seed}"
        if folder.exists():  # trained before, for another split say
            run = RunFolder.open(folder)
            refuse_changes(run, settings, bench.graph)
        else:
            run = start(bench.graph, settings, folder, bench.device, Path(str(bench.job.graph_folder)))
        if bench.job.pause is not None:
            run = _paused(run, bench, bench.job.pause)
        run = train_run(run, bench.device, curve, compiled=bench.compiled)
        wall = bench.waited() - begin
        begin = bench.waited()
        found = _of_run(bench, run.path)
        evaluating = bench.waited() - begin
        answers = described(load_run(run.path, bench.device).trained)["answers"]
    return {
        "settings": to_mapping(settings),
        "fingerprint": graph_fingerprint(bench.graph),
        "answers": answers,
        "wall_seconds": wall,
        "training": run.manifest["training"],
        "test_seconds": evaluating,
        **found,
        "curve": curve.points,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if bench.device.type == "cuda" else None,
    }


def _paused(run: RunFolder, bench: Bench, epoch: int) -> RunFolder:
    """Trains until an epoch is over, leaves a copy beside the run, and opens the run again."""
    stopper = Stopper()

    class Pause(Watcher):
        def epoch_done(self, record: Any) -> None:
            stopper.asked = record.epoch >= epoch

    with suppress(Interrupted):
        train_run(run, bench.device, Pause(), stopper, compiled=bench.compiled)
    copytree(run.path, run.path.with_name(f"{run.path.name}-paused"))
    return RunFolder.open(run.path)


def _of_run(bench: Bench, folder: Path) -> dict[str, Any]:
    """What a finished run answers on the job's split, or on that of the graph it is asked of."""
    job = bench.job
    if job.asked is not None:
        said = OpenedRun(folder, bench.device.type).evaluate(
            job.split, asked=job.asked, breakdown=job.breakdown, references=job.split != "test"
        )
        found = said.to_dict()
        scopes = {task: {scope: found[task][scope] for scope in SCOPES} for task in TASKS if task in found}
        kept: dict[str, Any] = {key: found[key] for key in ("breakdowns", "references", "protocol") if key in found}
        return {"split": job.split, job.split: {"realistic": scopes}, **kept}
    loaded = load_run(folder, bench.device)
    asked = _asked(bench, loaded, loaded.model)
    told = {
        "split": job.split,
        job.split: _by_ties(asked),
        "protocol": dict(asked.protocol),
        "per_relation": asked.to_mapping().get("number", {}).get("per_relation"),
    }
    if job.breakdown:
        told["breakdowns"] = (
            OpenedRun(folder, bench.device.type)
            .evaluate(job.split, breakdown=job.breakdown, references=False)
            .to_dict()["breakdowns"]
        )
    return told


def ensemble(bench: Bench) -> dict[str, Any]:
    """The kept runs of all seeds and the job's other members asked as one, on the job's split."""
    job = bench.job
    folders = [Path(one) for one in job.members]
    if job.keep is not None:
        folders = [*(Path(job.keep) / f"seed-{seed}" for seed in job.seeds), *folders]
    if job.equal_weights or job.like:
        runs = [load_run(folder, bench.device) for folder in folders]
        fitted: Any = (
            ensemble_of([Path(one) for one in job.like], device=bench.device.type).loaded.model if job.like else None
        )
        loaded, model = runs[0], _together(runs, bench.device, None if fitted is None else fitted.weights)
    else:
        loaded = ensemble_of(folders, device=bench.device.type).loaded
        model = loaded.model
    found = _asked(bench, loaded, model)
    told: dict[str, Any] = {"members": ["/".join(one.parts[-2:]) for one in folders]}
    told |= {"weights": model.weights.to_mapping(loaded.graph.vocabulary)}
    told |= {"fingerprint": graph_fingerprint(bench.graph)}
    told |= {"per_relation": found.to_mapping().get("number", {}).get("per_relation")}
    return {"split": job.split, job.split: _by_ties(found), "protocol": dict(found.protocol), **told}


def _together(runs: list[Any], device: torch.device, weights: Weights | None) -> Any:
    """Runs of one model as one, by these weights or, without any, each like another."""
    members = [Member(one.settings, one.trained, one.literals) for one in runs]
    made = Ensemble(runs[0].graph, runs[0].scaling, members, device)
    if weights is None:
        each = GroupWeights(tuple([1 / len(runs)] * len(runs)), {})
        groups = {capability: each for one in made.models() for capability in one.answers}
        weights = Weights(made.names, groups)
    return combined(made.models(), made.facts(), weights)


def _asked(bench: Bench, loaded: Any, model: Any) -> Evaluation:
    """Every question of the job's split."""
    return evaluator_of_run(loaded, bench.job.split, bench.device).evaluate(model)


def _by_ties(found: Evaluation) -> dict[str, Any]:
    """By tie rule, task and scope."""
    return {ties: {task: by_scope(questions, ties) for task, questions in found.per_question.items()} for ties in TIES}


def checks() -> dict[str, Any]:
    """The GPU tests, for machines without pytest."""
    found: dict[str, Any] = {}
    modules = [import_module(name) for name in ("tests.training.gpu_checks", "tests.models.inductive_gpu_checks")]
    for check in [check for module in modules for check in module.CHECKS]:
        begin = time.perf_counter()
        try:
            check()
            word = "passed"
        except Exception as problem:  # noqa: BLE001 - a failed check is a result, whatever it raised
            word = f"{type(problem).__name__}: {problem}"[:600]
        found[check.__name__] = {"outcome": word, "seconds": time.perf_counter() - begin}
        say(f"    {check.__name__}: {word.splitlines()[0]}")
    return found


def say(text: str) -> None:
    """Prints at once: a call that is cut short must not swallow it."""
    print(text, flush=True)
