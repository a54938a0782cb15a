"""The trials of a sweep as the storage has them: which there are, which count, and which is best.

Trials are kept in a SQLite file for one machine, on a PostgreSQL server for many. A password in a URL stays in memory:
it is in no file, no argument of a process and no message.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from hynt.batches.epoch_plan import derived_seed
from hynt.config import from_mapping, to_mapping, with_overrides
from hynt.errors import DataError, UsageError, needing, not_installed
from hynt.evaluation.metrics import LOWER_IS_BETTER
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import RunSettings, differences
from hynt.sweeping.space import Space
from hynt.training.validating import check_metric

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import RDBStorage
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
                advice="Resume it with --resume, or choose another name.",
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
class TrialCounts:
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


def standing(trials: Sequence[FrozenTrial]) -> TrialCounts:
    """The state of a sweep."""
    names = [trial.state.name for trial in counting(trials)]
    return TrialCounts(*(names.count(state) for state in ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")))


def is_surplus(trials: Sequence[FrozenTrial], number: int, wanted: int) -> bool:
    """Whether there are enough trials without this one. Numbers are given out one at a time, so workers agree."""
    return sum(trial.number < number for trial in counting(trials)) >= wanted


def try_again(study: Study, number: int) -> None:
    """Puts a trial that was stopped on purpose back in the line, as often as that happens."""
    optuna = load_optuna()
    with quiet():
        trial = next(trial for trial in study.get_trials() if trial.number == number)
        optuna.storages.RetryHeartbeatStaleTrialCallback(None, inherit_intermediate_values=True)(study, trial)


# All that a worker must know to take part in a sweep: plain data, so that it can be sent to another process.

Pruning = Literal["hyperband", "none"]
Sampling = Literal["tpe", "random", "grid"]

GRAPH, TRIALS, DATABASE, BEST = "graph", "trials", "sweep.db", "best.toml"
"""What a sweep's folder holds."""


@dataclass(frozen=True)
class Plan:
    """A sweep, before its first trial."""

    out: Path
    name: str
    model: str
    base: dict[str, Any]  # the settings that the space varies
    space: Space
    trials: int
    storage: StudyStorage
    pruning: Pruning = "hyperband"
    sampling: Sampling = "tpe"
    seed: int = 0  # of the sampler; the seed of training is a setting
    device: str = "cpu"
    threads: int | None = None  # of each worker; None: as torch likes
    heartbeat: int = 15  # seconds
    grace: int = 60

    @property
    def metric(self) -> str:
        return str(self.base["validation"]["metric"])

    @property
    def lower_is_better(self) -> bool:
        return self.metric.rpartition(".")[2] in LOWER_IS_BETTER

    @property
    def graph(self) -> Path:
        """The copy without its test split."""
        return self.out / GRAPH

    def describe(self) -> dict[str, Any]:
        """What all workers of a sweep must agree on, for the storage to hold."""
        return {
            "model": self.model,
            "metric": self.metric,
            "base": self.base,
            "sampling": self.sampling,
            "pruning": self.pruning,
            "space": {one.path: one.to_mapping() for one in self.space.varied},
        }

    def epochs(self) -> tuple[int, int]:
        """The first epoch that is validated and the last there can be, over the whole space: what pruning goes by."""
        schedule, every = self.base["schedule"], self.base["validation"].get("every")
        periods, lengths, everies = [schedule["period"]], [schedule["epochs"]], [every] if every else []
        for one in self.space.varied:
            for path in (one.path, *one.also):
                if path == "schedule.epochs":
                    lengths = list(one.samples())
                elif path == "schedule.period":
                    periods = list(one.samples())
                elif path == "validation.every":
                    everies = list(one.samples())
        last = int(max(lengths))
        return min(int(min(everies or periods)), last), last


def settled(settings: RunSettings, metric: str, space: Space, graph: KnowledgeGraph) -> tuple[RunSettings, Space]:
    """The settings that every trial starts from, and the space fitted to them; what a sweep cannot do is refused."""
    settings = with_overrides(settings, [f"validation.metric={metric}"])
    for path, wrong, why in (
        ("train_on", "train+valid", "a sweep judges by the validation split, so it cannot be trained on."),
        ("scale_on", "all-splits", "scaling on all splits would look at the test split."),
    ):
        varied = [one for one in space.varied if path in (one.path, *one.also) and wrong in one.choices]
        if to_mapping(settings)[path] == wrong or varied:
            raise UsageError(why, where=path, advice="Leave it at train.")
    if any("validation.metric" in (one.path, *one.also) for one in space.varied):
        what = "the metric is what trials are compared by, so it cannot vary."
        raise UsageError(what, where="validation.metric", advice="Take it out of the space.")
    check_metric(settings, graph)
    return settings, space.fitted(settings)


RETRIES = 3
"""How often a trial is tried again after the worker at it was lost."""

_TRIES_TO_OPEN = 5


@dataclass(frozen=True)
class StudyStorage:
    """A place for trials. `str()` of it has no password."""

    url: str = field(repr=False)
    file: str = ""  # as it was given, of a SQLite file

    @classmethod
    def of(cls, given: str | None, default: Path) -> StudyStorage:
        """From what was said: nothing, the path of a SQLite file, or the URL of a PostgreSQL server."""
        if given is None:
            return cls(f"sqlite:///{default.resolve()}", str(default))
        scheme = given.partition("://")[0] if "://" in given else ""
        if scheme == "sqlite":
            return cls(given, given.removeprefix("sqlite:///"))
        if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
            try:
                _ = urlsplit(given).port
            except ValueError:
                advice = "Write it as postgresql://USER@HOST:5432/NAME."
                raise UsageError("the URL has no valid port.", where="--storage", advice=advice) from None
            return cls(f"postgresql+psycopg{given.removeprefix(scheme)}")
        if scheme:
            raise UsageError(
                f"a sweep cannot be kept in {scheme!r}.",
                where="--storage",
                advice="Give the path of a SQLite file or a postgresql:// URL.",
            )
        return cls(f"sqlite:///{Path(given).resolve()}", given)

    @property
    def is_server(self) -> bool:
        return not self.url.startswith("sqlite")

    def __str__(self) -> str:
        if not self.is_server:
            return self.file
        parts = urlsplit(self.url)
        place = parts.hostname or ""
        place += f":{parts.port}" if parts.port else ""
        name = f"{parts.username}@" if parts.username else ""
        # A query may hold a password too, so it is not shown at all.
        return urlunsplit((parts.scheme.partition("+")[0], f"{name}{place}", parts.path, "", ""))

    def without_secrets(self, text: str) -> str:
        """A message of another library, with the URL and the password taken out."""
        parts = urlsplit(self.url)
        secrets = {self.url, parts.query, *((parts.password, unquote(parts.password)) if parts.password else ())}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***") if secret else text
        return text

    def open(self, heartbeat: int, grace: int) -> RDBStorage:
        """The storage, with tables made where there are none. A worker shows every `heartbeat` seconds that it is
        alive; one that was not heard of for `grace` seconds is lost, and its trial is tried again.
        """
        optuna = load_optuna()
        from sqlalchemy import exc

        options: dict[str, Any] = {} if self.is_server else {"connect_args": {"timeout": 60}}
        for attempt in range(_TRIES_TO_OPEN):
            try:
                return optuna.storages.RDBStorage(  # type: ignore[no-any-return]
                    self.url,
                    engine_kwargs=options,
                    heartbeat_interval=heartbeat,
                    grace_period=grace,
                    heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(
                        RETRIES, inherit_intermediate_values=True
                    ),
                )
            except ImportError as problem:
                raise not_installed(problem.name or "a driver", "sweep", what="this storage") from None
            except (exc.ProgrammingError, exc.IntegrityError, exc.OperationalError) as problem:
                # Two workers that both find an empty server both make the tables; the slower one finds them there.
                if attempt + 1 == _TRIES_TO_OPEN or "connection" in str(problem).lower():
                    raise self.refused(problem) from None
                time.sleep(0.5 * (attempt + 1))
            except (exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as problem:
                raise self.refused(problem) from None
        raise AssertionError("the loop returns or raises")

    def refused(self, problem: Exception) -> DataError:
        """What the database said, without secrets."""
        said = self.without_secrets(str(getattr(problem, "orig", None) or problem)).strip().splitlines()
        return DataError(
            f"the storage of the sweep cannot be used: {said[0] if said else type(problem).__name__}.",
            where=str(self),
            advice="Check the address, the name, the password and that the server runs."
            if self.is_server
            else "Check that there is room, and the right to write there.",
        )


def load_optuna() -> Any:
    """The library without its own logging: hynt reports what matters."""
    with needing("Optuna", "sweep", what="a sweep"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
