"""A sweep from start to end: a folder, its trials, and the best of them as a preset.

OUT/graph/         the graph without its test split
    sweep.db       the trials, unless they are kept elsewhere
    trials/        the settings and metrics of each trial that was run here
    best.toml      the best trial as a preset: hynt train GRAPH --model M --preset OUT/best.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.config import from_mapping, to_toml, with_overrides
from hynt.errors import UsageError
from hynt.interruption import Stopper
from hynt.runs.hashed_files import write_atomically
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import RunSettings
from hynt.sweeping.plan import BEST, DATABASE, TRIALS, Plan
from hynt.sweeping.study import PROBLEM, counting, opened, standing
from hynt.sweeping.trial import Listener
from hynt.sweeping.worker import work, work_in_processes

if TYPE_CHECKING:
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
    """Where trials are kept unless told otherwise."""
    return out / DATABASE


def sweep(
    plan: Plan, listener: Listener, stopper: Stopper, *, workers: int = 1, resume: bool = False
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
        write_atomically(preset, preset_text(plan, best, found.ended))
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
