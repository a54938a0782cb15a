"""The trials of a sweep as the storage has them: which there are, which count, and which is best."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hynt.batches.seeds import derived_seed
from hynt.config import from_mapping
from hynt.errors import UsageError
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import differences
from hynt.sweeping.plan import Plan
from hynt.sweeping.study_storage import load_optuna

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

ABOUT = "hynt"
"""The name under which a study keeps what its workers must agree on."""

PROBLEM, SURPLUS = "problem", "surplus"
"""Marks on a failed trial: its settings cannot be trained, or there were enough trials without it."""


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna warns of features that may change; those used here are pinned by tests."""
    optuna = load_optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def opened(plan: Plan, worker: int = 0, *, join: bool = True) -> Iterator[Study]:
    """The study of a sweep, made where there is none. Without `join`, one that is there already is refused."""
    optuna = load_optuna()
    from sqlalchemy.exc import SQLAlchemyError

    with quiet():
        try:
            storage = plan.storage.open(plan.heartbeat, plan.grace)
            study = optuna.create_study(
                storage=storage,
                study_name=plan.name,
                load_if_exists=join,
                pruner=_pruner(plan),
                direction="minimize" if plan.lower_is_better else "maximize",
            )
            _agree(study, plan)
            study.sampler = _sampler(plan, worker, len(study.get_trials(deepcopy=False)))
            try:
                yield study
            finally:
                storage.remove_session()
                storage.engine.dispose()
        except optuna.exceptions.DuplicatedStudyError:
            raise UsageError(
                f"there is a sweep named {plan.name!r} already.",
                where="--name",
                advice="Go on with it by --resume, or choose another name.",
            ) from None
        except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as problem:
            raise plan.storage.refused(problem) from None


def _agree(study: Study, plan: Plan) -> None:
    """All workers of a sweep sweep the same: the first one says what."""
    mine, theirs = plan.describe(), study.user_attrs.get(ABOUT)
    if theirs is None:
        study.set_user_attr(ABOUT, mine)
        return
    again = "Say the same as before, or begin a sweep under another name."
    changed = [part for part in mine if part != "base" and theirs.get(part) != mine[part]]
    if changed:
        what = f"the sweep {plan.name!r} was begun with another {', another '.join(changed)}."
        raise UsageError(what, where="--name", advice=again)
    # Compared as settings, so that one that did not exist then, and has its default now, makes no difference.
    kind = settings_class_for(plan.model)
    lines = differences(from_mapping(kind, theirs["base"]), from_mapping(kind, mine["base"]))
    if lines:
        what = f"the sweep {plan.name!r} was begun with other settings: {'; '.join(lines)}."
        raise UsageError(what, where="--name", advice=again)


def _pruner(plan: Plan) -> Any:
    optuna = load_optuna()
    if plan.pruning == "none":
        return optuna.pruners.NopPruner()
    first, last = plan.epochs()
    return optuna.pruners.HyperbandPruner(min_resource=first, max_resource=max(first, last))


def _sampler(plan: Plan, worker: int, trials_so_far: int) -> Any:
    """Seeded by what was sampled before, so that a resumed sweep does not draw its first trials again."""
    optuna = load_optuna()
    seed = derived_seed(plan.seed, "sweep", worker, trials_so_far) % 2**32
    if plan.sampling == "grid":
        return optuna.samplers.GridSampler(plan.space.grid(), seed=plan.seed)
    if plan.sampling == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


@dataclass(frozen=True)
class Standing:
    """How many trials there are, of those that count."""

    complete: int
    pruned: int
    failed: int  # settings that cannot be trained, or workers lost too often
    running: int
    waiting: int  # to be tried again

    @property
    def begun(self) -> int:
        return self.complete + self.pruned + self.failed + self.running + self.waiting

    @property
    def ended(self) -> int:
        return self.complete + self.pruned + self.failed


def counting(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that count: not those that were tried again, nor those of a worker that came too late."""
    replaced = {number for trial in trials for number in history(trial)}
    return [trial for trial in trials if trial.number not in replaced and SURPLUS not in trial.user_attrs]


def history(trial: FrozenTrial) -> list[int]:
    """The trials that this one is another try of, first to last."""
    return list(trial.system_attrs.get("retry_history", []))


def standing(trials: Sequence[FrozenTrial]) -> Standing:
    """The state of a sweep."""
    names = [trial.state.name for trial in counting(trials)]
    return Standing(*(names.count(state) for state in ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")))


def is_surplus(trials: Sequence[FrozenTrial], number: int, wanted: int) -> bool:
    """Whether there are enough trials without this one. Numbers are given out one at a time, so workers agree."""
    return sum(trial.number < number for trial in counting(trials)) >= wanted


def try_again(study: Study, number: int) -> None:
    """Puts a trial that was stopped on purpose back in the line, as often as that happens."""
    optuna = load_optuna()
    with quiet():
        trial = next(trial for trial in study.get_trials() if trial.number == number)
        optuna.storages.RetryHeartbeatStaleTrialCallback(None, inherit_intermediate_values=True)(study, trial)
