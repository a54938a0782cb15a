"""A sweep from start to end: a folder, its trials, and the best of them as a preset.

OUT/graph/         the graph without its test split
    sweep.db       the trials, unless they are kept elsewhere
    trials/        the settings and metrics of each trial that was run here
    best.toml      the best trial as a preset: hynt train GRAPH --model M --preset OUT/best.toml
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

from hynt.config import from_mapping, to_toml, with_overrides
from hynt.errors import DataError, HyntError, UsageError
from hynt.files import MANIFEST_NAME, new_folder, write_whole, writing
from hynt.graph.knowledge_graph import KnowledgeGraph, Manifest, read_manifest
from hynt.graph.storage import graph_folder, load_graph, save_graph
from hynt.interruption import Stopper, end_with_parent
from hynt.runs.checkpoint import Interrupted
from hynt.runs.journal import graph_as_of
from hynt.runs.model_choice import settings_class_for
from hynt.runs.place import is_run
from hynt.runs.settings import RunSettings
from hynt.sweeping.study import (
    BEST,
    DATABASE,
    PROBLEM,
    TRIALS,
    Plan,
    counting,
    load_optuna,
    opened,
    standing,
    try_again,
)
from hynt.sweeping.trial import Surplus, TrialListener, TrialNews, TrialRunner, Waiting

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from optuna import Study
    from optuna.trial import FrozenTrial


def prepare(out: Path, *, resume: bool) -> None:
    """The folder of a sweep. One that holds anything is used again only when asked to go on."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file.", where="--out", advice="Name a folder.")
    if out.is_dir() and any(out.iterdir()):
        if not resume:
            raise UsageError(f"{out} exists already.", where="--out", advice="Go on with --resume, or name another.")
        if not (out / TRIALS).is_dir():
            raise UsageError(f"{out} is not the folder of a sweep.", where="--out", advice="Name another folder.")
    (out / TRIALS).mkdir(parents=True, exist_ok=True)


def database(out: Path) -> Path:
    """Where trials are kept by default."""
    return out / DATABASE


def sweep(
    plan: Plan, listener: TrialListener, stopper: Stopper, *, workers: int = 1, resume: bool = False
) -> dict[str, Any]:
    """Runs the trials that are left, and says how all of them went. The best one so far is written either way."""
    with opened(plan, join=resume):
        pass  # refuses what cannot work before any worker is started
    try:
        if workers == 1:
            work(plan, listener, stopper)
        else:
            work_in_processes(plan, workers, listener, stopper)
    finally:
        result = report(plan)
    return result


def report(plan: Plan) -> dict[str, Any]:
    """What the storage knows of a sweep; writes the preset of the best trial."""
    with opened(plan) as study:
        trials = study.get_trials(deepcopy=False)
    found, best = standing(trials), best_of(trials, plan)
    result: dict[str, Any] = {
        "sweep": plan.name,
        "out": str(plan.out),
        "model": plan.model,
        "metric": plan.metric,
        "split": "valid",
        "storage": str(plan.storage),
        "trials": {
            "complete": found.complete,
            "pruned": found.pruned,
            "failed": found.failed,
            "unfinished": found.running + found.waiting,
        },
        "problems": sorted({trial.user_attrs[PROBLEM] for trial in trials if PROBLEM in trial.user_attrs}),
        "best": None,
        "preset": None,
    }
    if best is not None and best.value is not None:
        preset = plan.out / BEST
        write_whole(preset, preset_text(plan, best, found.ended))
        settings = plan.space.values(best.params)
        result["best"] = {
            "trial": best.number,
            "value": best.value,
            "epoch": best.user_attrs.get("epoch"),
            "settings": settings,
        }
        result["preset"] = str(preset)
    return result


def best_of(trials: Sequence[FrozenTrial], plan: Plan) -> FrozenTrial | None:
    """The trial with the best value; of equals the first."""
    ended = [trial for trial in counting(trials) if trial.state.name == "COMPLETE" and trial.value is not None]
    sign = 1.0 if plan.lower_is_better else -1.0
    return min(ended, key=lambda trial: (sign * float(trial.value or 0.0), trial.number), default=None)


def preset_text(plan: Plan, best: FrozenTrial, ended: int) -> str:
    """All settings of the best trial, as `hynt train --preset FILE` reads them."""
    base: RunSettings = from_mapping(settings_class_for(plan.model), plan.base)
    settings = with_overrides(base, plan.space.changes(best.params))
    head = (
        f"# The best of {ended} trials of the sweep {plan.name!r}: trial {best.number},\n"
        f"# {plan.metric} {best.value:.4f} on the validation split, filtered by train and valid.\n"
    )
    return head + to_toml(settings)


# A copy of a saved graph without its test split: what a sweep works on, so that it cannot look.
#
# The test file is not even opened. The copy is a graph like any other, whose manifest knows of train and valid alone.

HIDDEN = "test"


def blind_copy(source: KnowledgeGraph | str | os.PathLike[str], target: Path) -> KnowledgeGraph:
    """The graph at `source` without its test split, kept at `target`, or the one that is kept there already."""
    if isinstance(source, KnowledgeGraph):
        return _blind_save(source, target)
    if is_run(source):
        return _blind_save(graph_as_of(source), target)
    folder = graph_folder(source)
    manifest = without_test(read_manifest(folder))
    if "valid.parquet" not in manifest.files:
        raise _without_valid(str(source))
    if not target.exists():
        with new_folder(target) as staging:
            for name in manifest.files:
                with writing(staging / name, f"a copy of {folder / name}"):
                    shutil.copyfile(folder / name, staging / name)
            (staging / MANIFEST_NAME).write_text(manifest.to_json(), encoding="utf-8")
    elif read_manifest(target) != manifest:
        raise _another_graph(target)
    return load_graph(target.resolve())


def _blind_save(graph: KnowledgeGraph, target: Path) -> KnowledgeGraph:
    """The same of a graph in memory."""
    if "valid" not in graph.splits:
        raise _without_valid(graph.name or "graph")
    splits = {name: table for name, table in graph.splits.items() if name != HIDDEN}
    blind = replace(graph, splits=splits, manifest=without_test(graph.manifest))
    if not target.exists():
        save_graph(blind, target)
    elif load_graph(target.resolve()) != blind:
        raise _another_graph(target)
    return load_graph(target.resolve())


def _without_valid(where: str) -> UsageError:
    return UsageError(
        "the graph has no validation split, which a sweep judges by.",
        where=where,
        advice="Import it with one: hynt data import … --split 8:1:1.",
    )


def _another_graph(target: Path) -> UsageError:
    return UsageError(
        "the folder holds a sweep of another graph.",
        where=str(target.parent),
        advice="Give the graph it was begun with, or another --out.",
    )


def without_test(manifest: Manifest) -> Manifest:
    """What the manifest says once the test split is gone."""
    files = {name: record for name, record in manifest.files.items() if name != f"{HIDDEN}.parquet"}
    counts = {name: count for name, count in manifest.counts.items() if name != HIDDEN}
    return replace(manifest, files=files, counts=counts)


# A worker takes trials until there are enough, here or in a process of its own.
#
# Nobody hands trials out: the storage numbers them, so workers on one machine or on many need only the same storage.

SECONDS_BETWEEN_LOOKS = 0.5


def work(plan: Plan, listener: TrialListener, stopper: Stopper, worker: int = 0) -> None:
    """Runs trials until as many as planned have ended. Waits for those of other workers, which may be lost."""
    optuna = load_optuna()
    graph = load_graph(plan.graph.resolve())
    with opened(plan, worker) as study:
        runner = TrialRunner(plan, graph, listener, stopper, lambda: study.get_trials(deepcopy=False))
        is_told = False
        while not stopper.asked:
            optuna.storages.fail_stale_trials(study)
            found = standing(study.get_trials(deepcopy=False))
            if found.waiting or found.begun < plan.trials:
                _take_one(study, runner)
            elif found.running:
                if not is_told:
                    listener(Waiting(found.running, plan.grace))
                    is_told = True
                time.sleep(SECONDS_BETWEEN_LOOKS)
            else:
                return
        raise Interrupted("the sweep was stopped, and what was begun is saved.")


def _take_one(study: Study, runner: TrialRunner) -> None:
    optuna = load_optuna()
    number: list[int] = []

    def remembered(trial: Any) -> float:
        number.append(trial.number)
        return runner(trial)

    try:
        study.optimize(remembered, n_trials=1, catch=(Surplus,))
    except (Interrupted, KeyboardInterrupt):
        if number:
            try_again(study, number[0])
        raise
    except HyntError:
        return  # the trial is marked with its problem; another may do better
    except optuna.exceptions.UpdateFinishedTrialError:
        return  # this process slept so long that another took the trial over


def work_in_processes(plan: Plan, workers: int, listener: TrialListener, stopper: Stopper) -> None:
    """Several workers on this machine. One that is lost leaves its trial to the others."""
    context = get_context("spawn")
    news: Queue[TrialNews | tuple[str, str, str]] = context.Queue()
    processes = [context.Process(target=_in_process, args=(plan, index, news)) for index in range(workers)]
    for process in processes:
        process.start()
    asked = False
    try:
        while any(process.is_alive() for process in processes):
            _tell(news, listener, seconds=SECONDS_BETWEEN_LOOKS)
            if stopper.asked and not asked:
                asked = True
                for process in processes:
                    process.terminate()
        while _tell(news, listener, seconds=0.1):
            pass
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    if stopper.asked:
        raise Interrupted("the sweep was stopped, and what was begun is saved.")
    if all(process.exitcode for process in processes):
        raise DataError("every worker of the sweep was lost.", where=str(plan.out), advice="Go on with --resume.")


def _tell(news: Queue[TrialNews | tuple[str, str, str]], listener: TrialListener, seconds: float) -> bool:
    try:
        found = news.get(timeout=seconds)
    except Empty:
        return False
    if isinstance(found, tuple):
        raise DataError(found[0], where=found[1], advice=found[2])
    listener(found)
    return True


# Of several workers, the early ones always wait for the last: that is not sent.


def _in_process(plan: Plan, worker: int, news: Queue[TrialNews | tuple[str, str, str]]) -> None:
    stopper = Stopper()

    def ask(number: int, frame: Any) -> None:  # noqa: ARG001 - the signal module's signature
        stopper.asked = True

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; one of them decides
    signal.signal(signal.SIGTERM, ask)
    end_with_parent()  # its trial is then tried again by another
    if plan.threads is not None:
        import torch

        torch.set_num_threads(plan.threads)
    try:
        work(plan, lambda one: None if isinstance(one, Waiting) else news.put(one), stopper, worker)
    except Interrupted:
        return
    except HyntError as problem:
        news.put((problem.what, problem.where, problem.advice))
        raise SystemExit(1) from None
