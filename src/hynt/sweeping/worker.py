"""A worker takes trials until there are enough, here or in a process of its own.

Nobody hands trials out: the storage numbers them, so workers on one machine or on many need only the same storage.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import get_context, parent_process
from queue import Empty
from typing import TYPE_CHECKING, Any

from hynt.errors import DataError, HyntError
from hynt.graph.storage import load_graph
from hynt.interruption import Stopper
from hynt.runs.progress import Interrupted
from hynt.sweeping.plan import Plan
from hynt.sweeping.study import opened, standing, try_again
from hynt.sweeping.study_storage import load_optuna
from hynt.sweeping.trial import Listener, Surplus, TrialRunner

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from optuna import Study

SECONDS_BETWEEN_LOOKS = 0.5


def work(plan: Plan, listener: Listener, stopper: Stopper, worker: int = 0) -> None:
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
                    listener.waiting(found.running, plan.grace)
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


def work_in_processes(plan: Plan, workers: int, listener: Listener, stopper: Stopper) -> None:
    """Several workers on this machine. One that is lost leaves its trial to the others."""
    context = get_context("spawn")
    news: Queue[tuple[str, tuple[Any, ...]]] = context.Queue()
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


def _tell(news: Queue[tuple[str, tuple[Any, ...]]], listener: Listener, seconds: float) -> bool:
    try:
        what, about = news.get(timeout=seconds)
    except Empty:
        return False
    if what == "error":
        text, where, advice = about
        raise DataError(text, where=where, advice=advice)
    getattr(listener, what)(*about)
    return True


class _Reporting:
    """A listener that sends what it hears to the process that asked for the sweep."""

    def __init__(self, news: Queue[tuple[str, tuple[Any, ...]]]) -> None:
        self._news = news

    def begun(self, number: int, values: dict[str, Any]) -> None:
        self._news.put(("begun", (number, values)))

    def trained(self, number: int, epoch: int, epochs: int) -> None:
        self._news.put(("trained", (number, epoch, epochs)))

    def validated(self, number: int, epoch: int, value: float) -> None:
        self._news.put(("validated", (number, epoch, value)))

    def ended(self, number: int, outcome: str, value: float | None, problem: str) -> None:
        self._news.put(("ended", (number, outcome, value, problem)))

    def waiting(self, trials: int, seconds: float) -> None:
        """Not sent: of several workers, the early ones always wait for the last."""


def _in_process(plan: Plan, worker: int, news: Queue[tuple[str, tuple[Any, ...]]]) -> None:
    stopper = Stopper()

    def ask(number: int, frame: Any) -> None:  # noqa: ARG001 - the signal module's signature
        stopper.asked = True

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; one of them decides
    signal.signal(signal.SIGTERM, ask)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if plan.threads is not None:
        import torch

        torch.set_num_threads(plan.threads)
    try:
        work(plan, _Reporting(news), stopper, worker)
    except Interrupted:
        return
    except HyntError as problem:
        news.put(("error", (problem.what, problem.where, problem.advice)))
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    """A worker whose sweep was killed must not go on in the dark: its trial is then tried again by another."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
