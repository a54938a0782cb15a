"""A search for good settings on the validation split, whose best becomes a preset."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.errors import DataError
from hynt.files import check_new_folder
from hynt.front.jobs import Watching, watched
from hynt.front.run import Run
from hynt.front.training import AnyGraph, train
from hynt.results import FoundValues, box, pairs, quiet

if TYPE_CHECKING:
    from hynt.sweeping.space import Space
    from hynt.sweeping.study import Plan


@dataclass(frozen=True, eq=False, repr=False)
class SweepReport(FoundValues):
    """How the trials went (`trials`, `problems`), and the best of them (`best`, `preset`)."""

    graph: AnyGraph

    @property
    def best(self) -> Mapping[str, Any]:
        """The best trial: its number, value and settings."""
        best: Mapping[str, Any] = self.found["best"]
        return best

    @property
    def preset(self) -> str:
        """The file with the best settings, for `hynt.train(graph, model, preset=…)`."""
        return str(self.found["preset"])

    def train(self, out: str | os.PathLike[str] | None = None, **more: Any) -> Run:
        """A run with the best settings, on the whole graph."""
        return train(self.graph, str(self.found["model"]), self.preset, out, **more)

    def __repr__(self) -> str:
        best = self.best
        return f"<sweep of {self.found['model']}: {self.found['metric']} {best['value']:.4f} in trial {best['trial']}>"

    def _repr_html_(self) -> str:
        best = self.best
        named = [(path, str(value)) for path, value in best["settings"].items()]
        title = f"best on validation: {self.found['metric']} {best['value']:.4f}, trial {best['trial']}"
        return box(title, pairs(named), quiet(f"preset {self.preset}"))


def sweep(
    graph: AnyGraph,
    model: str = "hynt",
    *,
    trials: int,
    out: str | os.PathLike[str],
    space: str | None = None,
    metric: str = "link.all.mrr",
    preset: str | None = None,
    epochs: int | None = None,
    changes: Sequence[str] = (),
    storage: str | None = None,
    name: str = "sweep",
    workers: int = 1,
    pruner: Literal["hyperband", "none"] = "hyperband",
    sampler: Literal["tpe", "random", "grid"] = "tpe",
    seed: int = 0,
    resume: bool = False,
    device: str = "auto",
    progress: Watching = None,
    **settings: Any,
) -> SweepReport:
    """Searches for good settings of a model on a graph, judged on its validation split; the test split is never read.
    The best settings become a preset in the folder `out`.

    `space` is a TOML file or the name of a space that comes with hynt; by default the one of the model. `storage` is a
    SQLite file or a postgresql:// address that workers on several machines share. `changes` and `settings` hold
    settings fixed, as in `hynt.train`. `resume` continues the sweep of this name, or joins it.

    >>> found = hynt.sweep(graph, "transea", trials=1, epochs=1, metric="link.all.mrr", out="sweep")
    >>> found.found["trials"]["complete"], found.preset
    (1, 'sweep/best.toml')
    """
    from hynt.config.overrides import overrides_of
    from hynt.kernels.device import chosen_device
    from hynt.sweeping.space import load_space
    from hynt.sweeping.study import GRAPH, Plan, StudyStorage, load_optuna, settled
    from hynt.sweeping.sweep import blind_copy, database, prepare
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings

    folder = Path(out)
    load_optuna()
    target = chosen_device(device).type
    wanted, place = load_space(space or model), StudyStorage.of(storage, database(folder))
    held = (*changes, *overrides_of(settings))
    said = [*held, *([f"schedule.epochs={epochs}"] if epochs else ())]

    def base(space: Space) -> Any:
        request = SettingsRequest(model, preset, epochs, seed, changes=(*space.fixed, *said))
        return resolve_settings(request, loaded, on_gpu=target == "cuda")

    check_new_folder(folder / GRAPH, "--out")
    with _not_left_if_refused(folder):
        prepare(folder, resume=resume)
        loaded = blind_copy(graph, folder / GRAPH)
        wanted, moved = wanted.for_epochs(base(wanted).schedule.epochs)
        chosen, wanted = settled(base(wanted), metric, wanted, loaded)
    from hynt.config import to_mapping

    plan = Plan(
        folder,
        name,
        model,
        to_mapping(chosen),
        wanted,
        trials if sampler != "grid" else min(trials, math.prod(map(len, wanted.grid().values()))),  # it has an end
        place,
        pruner,
        sampler,
        seed,
        target,
        max(1, (os.cpu_count() or 1) // workers) if target == "cpu" else None,
    )
    spoken = {one.partition("=")[0] for one in said}
    fitted = {path: to for path, to in moved.items() if path not in spoken}
    result = _swept(plan, graph, workers, resume, fitted, progress)
    if result["best"] is None:
        reasons = "; ".join(result["problems"])
        raise DataError(
            f"no trial came to an end, so there is no best one: {reasons or 'all were pruned'}.",
            where=name,
            advice="Change the space or the settings that fail, or give trials more time.",
        )
    return SweepReport(result, graph)


@contextmanager
def _not_left_if_refused(out: Path) -> Iterator[None]:
    """A folder that was made for a sweep which cannot begin would be in the way of a better one."""
    from hynt.sweeping.study import GRAPH, TRIALS

    was_there = out.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            shutil.rmtree(out / GRAPH, ignore_errors=True)
            with suppress(OSError):  # not empty: somebody else has joined the sweep
                (out / TRIALS).rmdir()
                out.rmdir()
        raise


def _swept(
    plan: Plan, graph: AnyGraph, workers: int, resume: bool, moved: Mapping[str, tuple[int, ...]], progress: Watching
) -> dict[str, Any]:
    from hynt.interruption import stopping_on_signals
    from hynt.runs.checkpoint import Interrupted
    from hynt.sweeping.sweep import sweep as run_sweep
    from hynt.sweeping.trial import SweepProgress

    with watched(progress, pause=10.0) as shown, stopping_on_signals() as stopper:
        stopper.say = shown.say
        first, last = plan.epochs()
        if moved:
            told = ", ".join(f"{path} is {' or '.join(map(str, values))}" for path, values in moved.items())
            shown.note(f"the space is for another number of epochs; for {last} of them {told}.")
        if plan.pruning == "hyperband" and first >= last:
            shown.note("each trial is validated once, at its end, so none can be pruned: set validation.every.")
        try:
            return run_sweep(plan, SweepProgress(plan, shown), stopper, workers=workers, resume=resume)
        except Interrupted as stopped:
            advice = f"Go on with the same command and --resume (sweep {plan.name!r} of {graph} in {plan.out})."
            raise Interrupted(stopped.what, advice=advice) from None
