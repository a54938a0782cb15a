"""From a graph to a run in one call: new or resumed, in one process or several, told to a person and to trackers. And
from several runs to one.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.files import check_new_folder, new_folder, writing
from hynt.front.jobs import TemporaryFolder, Watching, in_processes, options, watched
from hynt.front.run import Run
from hynt.graph.knowledge_graph import KnowledgeGraph

if TYPE_CHECKING:
    import torch

    from hynt.progress import Progress
    from hynt.runs.run_folder import RunFolder
    from hynt.runs.settings import RunSettings
    from hynt.training.estimate import Estimate
    from hynt.training.resolve_settings import SettingsRequest

NAMED = 5
"""How many relations a note names."""
COMPILED_FROM = 240.0
"""The shortest training on a GPU, in seconds, in which compiling the steps, which takes a minute, pays off."""

AnyGraph = KnowledgeGraph | str | os.PathLike[str]
"""A graph in memory, the folder of a saved one, or the name of a built-in one."""


def train(
    graph: AnyGraph,
    model: str | None = None,
    preset: str | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    device: str = "auto",
    train_on: str | None = None,
    scale_on: str | None = None,
    resume: bool = False,
    start_from: str | os.PathLike[str] | None = None,
    track: Sequence[str] = (),
    track_to: str | os.PathLike[str] | None = None,
    processes: int = 1,
    changes: Sequence[str] = (),
    progress: Watching = None,
    note: Callable[[str], None] | None = None,
    **settings: Any,
) -> Run:
    """Trains a model on a graph and returns the run, which answers, evaluates and explains.

    Without `epochs`, `minutes` or a preset, training ends when validation stops improving; with `minutes` everything is
    planned to be done by then, validation and weighing of statistics too.

    The default model is `hynt`; with `minutes` and no other settings it is the one that did best in that time on the
    most similar graph that was measured. Without `preset` the settings suit the model and the size of the graph. Any
    setting can be given by its name: `batch_size=512`, `schedule={"epochs": 5}`, `**{"model.dimension": 64}`; or in
    `changes`, as "key=value". The run is kept in the folder `out`, or else in a temporary folder that is removed with
    it unless `Run.save` copies it. `resume` continues the run in `out`, whatever its model; Ctrl-C saves it before it
    stops. `start_from` is a run whose settings and weights training starts from; for hynt-inductive it may be a run on
    another graph.

    `track` names trackers (tensorboard, mlflow, wandb). `progress` says whether to show progress: by default in a
    terminal and in a notebook.

    >>> hynt.train(graph, epochs=1, batch_size=4096, **{"model.dimension": 16})
    <run of hynt on world: 1 epoch, finished, in a temporary folder>
    >>> hynt.train(graph, "frequency", out="runs/frequency").path.name
    'frequency'
    """
    began = time.monotonic()
    from hynt.config.overrides import overrides_of
    from hynt.distributed.launch import is_launched
    from hynt.training.resolve_settings import SettingsRequest

    if resume and start_from is not None:
        what = "a run that is resumed starts from its own weights."
        raise UsageError(what, where="--from", advice="Leave out --resume, or --from.")
    said = (*changes, *overrides_of(settings))
    if (processes > 1 or is_launched()) and not resume and start_from is None:
        # Every process must take the same, and not every model can be shared.
        model = SettingsRequest(model, preset).model_name
    if processes > 1 and not is_launched():
        words = options(
            model=model,
            preset=preset,
            epochs=epochs,
            minutes=minutes,
            seed=seed,
            device=device,
            train_on=train_on,
            scale_on=scale_on,
            resume=resume,
            **{"from": start_from},
            track=track,
            track_to=track_to,
            set=said,
            processes=processes,
        )
        folder, kept = _folder(out, resume)
        _train_in_processes(graph, folder, words, processes)
        return Run(folder, device, kept=kept)
    from hynt.distributed.worker_group import current_workers
    from hynt.interruption import stopping_on_signals
    from hynt.kernels.device import chosen_device

    target = chosen_device(device)
    loaded, source = opened_graph(graph)
    request = SettingsRequest(model, preset, epochs, seed, train_on, scale_on, said, minutes, until_done=True)
    folder, kept = _folder(out, resume)
    trackers = _trackers(track)
    with current_workers(target) as workers, stopping_on_signals() as stopper:
        workers.watch(stopper)
        if workers.rank:
            from hynt.training.process import follow

            follow(workers, loaded, target)
            return Run(folder, device, note or _nobody)
        with watched(progress) as shown:
            stopper.say = shown.say
            if not resume:
                say_hint(loaded, note or shown.note)
            run = _made(folder, request, loaded, source, target, start_from, resume=resume)
            chosen = run.settings().model_name
            if not resume and model is None and preset is None and start_from is None and chosen != "hynt":
                shown.note(f"training {chosen}, the best on graphs like this in so short a time; or say --model hynt")
            found = None
            if not resume and not run.is_finished:
                found = _planned(loaded, run, target, shown, time.monotonic() - began)
            if not resume:
                say_scales(loaded, run.settings().log_relations, note or shown.note)
            if run.is_finished:
                shown.note("this run is finished already; nothing is left to train.")
            place = Path(track_to or folder.absolute().parent / "tracking")
            _trained(run, target, shown, trackers, place, workers, found)
    return Run(folder, device, note or _nobody, kept)


def estimate(
    graph: AnyGraph,
    model: str | None = None,
    preset: str | None = None,
    *,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    device: str = "auto",
    train_on: str | None = None,
    scale_on: str | None = None,
    changes: Sequence[str] = (),
    **settings: Any,
) -> Estimate:
    """What training would take: parameters, memory and time, from a few real steps that are thrown away.

    >>> found = hynt.estimate(graph, "transea", epochs=10)
    >>> found.epochs, found.parameters > 0, found.seconds > 0
    (10, True, True)
    """
    from hynt.config.overrides import overrides_of
    from hynt.kernels.device import chosen_device
    from hynt.training.estimate import estimate as measured
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings

    target = chosen_device(device)
    loaded, _ = opened_graph(graph)
    said = (*changes, *overrides_of(settings))
    request = SettingsRequest(model, preset, epochs, seed, train_on, scale_on, said, minutes, until_done=True)
    return measured(loaded, resolve_settings(request, loaded, on_gpu=target.type == "cuda"), target)


def is_first_process() -> bool:
    """Whether this process speaks for the job: the only one, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def opened_graph(graph: AnyGraph) -> tuple[KnowledgeGraph, Path | None]:
    """The graph in memory, and the folder where it lies, for a run that does not take it in."""
    from hynt.graph.storage import BUILT_IN, graph_folder
    from hynt.runs.journal import graph_as_of
    from hynt.runs.place import is_run

    if isinstance(graph, KnowledgeGraph):
        return graph, None
    return graph_as_of(graph), None if str(graph) in BUILT_IN or is_run(graph) else graph_folder(graph)


def _folder(out: str | os.PathLike[str] | None, resume: bool) -> tuple[Path, TemporaryFolder | None]:
    """Where the run goes, and the temporary folder around it if it is not to be kept."""
    if out is not None:
        if not resume:
            check_new_folder(Path(out), "--out")
        return Path(out), None
    if resume:
        raise UsageError("there is no run to go on with.", where="--out", advice="Say where it lies.")
    kept = TemporaryFolder("hynt-run-")
    return kept.path / "run", kept


def _made(
    folder: Path,
    request: SettingsRequest,
    graph: KnowledgeGraph,
    source: Path | None,
    device: torch.device,
    start_from: str | os.PathLike[str] | None,
    *,
    resume: bool,
) -> RunFolder:
    """The run: a new one, or the one that is there; a job that torchrun starts again goes on."""
    from hynt.distributed.launch import is_launched, restarts
    from hynt.training.resolve_settings import check_shareable, resolve_settings
    from hynt.training.run import start

    on_gpu = device.type == "cuda"
    if resume or (restarts() and folder.exists()):
        return _reopened(folder, request, graph, on_gpu=on_gpu)
    weights = None
    if start_from is None:
        settings = resolve_settings(request, graph, on_gpu=on_gpu)
    else:
        settings, weights = _settings_and_weights(Path(start_from), request, graph, on_gpu=on_gpu)
    if is_launched():
        check_shareable(settings)
    return start(graph, settings, folder, device, source, weights)


def _settings_and_weights(
    path: Path, request: SettingsRequest, graph: KnowledgeGraph, *, on_gpu: bool
) -> tuple[RunSettings, Path]:
    """What a run has that training is to start from; relations that the graph lacks lose their log scale with it."""
    from hynt.runs import WEIGHTS
    from hynt.runs.place import whole_run
    from hynt.runs.run_folder import RunFolder
    from hynt.training.resolve_settings import resumed_settings

    with whole_run():
        run = RunFolder.open(path)
        before = run.settings()
        if not run.is_finished:
            raise UsageError("training of that run is not over.", where="--from", advice="Finish it first: --resume.")
        weights = run.checked(WEIGHTS)
    settings = resumed_settings(request, before, graph, on_gpu=on_gpu)
    name, wanted = before.model_name, settings.model_name
    if name != wanted:
        raise UsageError(
            f"{path} is a run of {name}, and {wanted} was asked for.",
            where="--from",
            advice=f"Leave out what says {wanted}, or start from a run of it.",
        )
    known = tuple(name for name in settings.log_relations if name in graph.vocabulary.relation_ids)
    return replace(settings, log_relations=known), weights


def _reopened(folder: Path, request: SettingsRequest, graph: KnowledgeGraph, *, on_gpu: bool) -> RunFolder:
    from hynt.runs import WEIGHTS
    from hynt.runs.place import check_is_run, whole_run
    from hynt.runs.run_folder import RunFolder, refuse_changes
    from hynt.training.resolve_settings import resumed_settings

    with whole_run():
        check_is_run(folder)  # and not the one that comes with hynt
        run = RunFolder.open(folder)
        if run.is_finished:
            run.checked(WEIGHTS)
        settings = run.settings()
    refuse_changes(run, resumed_settings(request, settings, graph, on_gpu=on_gpu), graph)
    return run


def _trained(
    run: RunFolder,
    device: torch.device,
    shown: Progress,
    trackers: dict[str, Any],
    track_to: Path,
    workers: Any,
    planned: Estimate | None,
) -> None:
    from hynt.runs.checkpoint import TrainingProgress
    from hynt.tracking import Tracked, tracking
    from hynt.training.run import train as train_run

    seconds = run.settings().schedule.seconds
    compiled = seconds is None or seconds >= COMPILED_FROM or workers.world > 1
    afterwards = planned.weighing_seconds if planned else 0.0
    with tracking(TrainingProgress(shown, afterwards), trackers, lambda: Tracked.of(run, track_to)) as told:
        train_run(
            run,
            device,
            told,
            workers.stopper,
            compiled=compiled,
            clock=workers.clock,
            workers=workers,
            weighs_when_stopped=True,
            reserved=planned.reserved if planned else 0.0,
        )


def _trackers(names: Sequence[str]) -> dict[str, Any]:
    """What `track` names, or a clear word about what is missing, before any work is done."""
    if not names:
        return {}
    from hynt.tracking import trackers_named

    return dict(trackers_named(names))


def _planned(
    graph: KnowledgeGraph, run: RunFolder, device: torch.device, shown: Progress, spent: float
) -> Estimate | None:
    """How long training will take, from a few steps, told to whoever watches; None where nobody does and the time is
    not planned, or nothing is trained. `spent`: seconds of the command that are over.
    """
    from hynt.models.registry import MODELS
    from hynt.progress import SILENT
    from hynt.training.estimate import estimate as measured

    settings = run.settings()
    on_cpu = device.type == "cpu"
    is_planned = settings.schedule.whole and (on_cpu or settings.tables == "whole")
    if not (is_planned or (on_cpu and shown is not SILENT)) or not MODELS.get(settings.model_name).learns:
        return None
    found = measured(graph, settings, device, spent, steps=on_cpu)
    shown.note(time_text(found))
    return found


def time_text(found: Estimate) -> str:
    """How long a run takes, and for what, in words."""
    from hynt.progress import duration

    def told(seconds: float) -> str:
        return duration(max(seconds, 1.0))

    rest = "validation and weighing statistics" if found.weighing_seconds else "validation"
    if found.reserved:
        whole = told(found.spent + found.seconds + found.beside)
        return f"this takes about {whole}: {told(found.seconds)} of training, the rest for {rest}"
    more = f"{rest} about {told(found.beside)} more"
    if found.first_epochs < found.epochs:
        first = f"training takes about {told(found.first_seconds)}, then on while validation improves"
        return f"{first}, {told(found.seconds)} at most; {more}; --minutes N plans all of it to end there"
    return f"training takes about {told(found.seconds)}; {more}"


def say_hint(graph: KnowledgeGraph, note: Callable[[str], None]) -> None:
    """A graph without numbers whose values look like numbers was probably read wrongly; and one number may hide all
    others of its relation.
    """
    from hynt.formats.outcome import hint_at_numbers, hints_at_extremes

    hint = hint_at_numbers(graph)
    for one in ([hint] if hint else []) + hints_at_extremes(graph.vocabulary, graph.splits.values()):
        note(one)


def say_scales(graph: KnowledgeGraph, names: Sequence[str], note: Callable[[str], None]) -> None:
    """Which relations are learned on a log scale, and how to have it otherwise."""
    if names:
        ids, labels = graph.vocabulary.relation_ids, graph.relation_labels
        few = [labels[ids[name]] for name in names[:NAMED]]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        note(f"on a log scale: {', '.join(few)}{more}; --set log_relations=[] keeps all numbers linear")


def _nobody(text: str) -> None:
    """Ignores the notes of a run."""


def _train_in_processes(graph: AnyGraph, folder: Path, words: Sequence[str], processes: int) -> None:
    """The same by as many processes of the command, which need the graph as a folder."""
    with tempfile.TemporaryDirectory(prefix="hynt-graph-") as place:
        where = Path(place) / "graph" if isinstance(graph, KnowledgeGraph) else graph
        if isinstance(graph, KnowledgeGraph):
            graph.save(where)
        command = ["train", str(where), "--out", str(folder), *words]
        in_processes(command, processes, "training stopped; the last checkpoint is kept.", "Go on with resume=True.")


def ensemble(
    runs: Sequence[Run | str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    device: str = "auto",
    note: Callable[[str], None] = lambda text: None,
) -> Run:
    """Several runs on one graph as one run, which answers, evaluates and explains like any other.

    How much each run counts for links, relations and numbers, beside statistics of the training facts, is fitted on the
    validation split; `evaluate` also shows each run alone, and so what the others add. The new run keeps all that it
    needs in the folder `out`, or else in a temporary folder; `Run.save` keeps that.

    >>> small = {"epochs": 1, "batch_size": 4096, "model.dimension": 16}
    >>> runs = [hynt.train(graph, seed=seed, **small) for seed in (0, 1)]
    >>> hynt.ensemble(runs, out="runs/both").described()["model"]
    'ensemble'
    """
    from hynt.evaluation.combining import MANY_QUESTIONS, combined, fitted
    from hynt.kernels.device import chosen_device
    from hynt.runs.ensemble import Ensemble, Member, refuse_members
    from hynt.runs.journal import Journal
    from hynt.runs.place import refuse_filled, whole_run
    from hynt.runs.run_folder import RunFolder, describe_environment
    from hynt.training.validating import evaluator_of, fitted_means

    paths = [run.path if isinstance(run, Run) else Path(run) for run in runs]
    target = chosen_device(device)
    if out is not None:
        check_new_folder(Path(out), "--out")
        refuse_filled(Path(out))
    kept = None if out is not None else TemporaryFolder("hynt-run-")
    folder = Path(out or "") if kept is None else kept.path / "run"
    with whole_run():
        refuse_members(paths, [RunFolder.open(path) for path in paths])
        for path in paths:
            if Journal(path).latest():
                note(
                    f"{path} was updated: the new run answers of the graph that it was trained on, without the updates"
                )
        loaded = [Run(path, device, version=0).loaded for path in paths]
        members = [Member(one.settings, one.trained, one.literals) for one in loaded]
        made = Ensemble(loaded[0].graph, replace(loaded[0].scaling, expectation=None), members, target)
        evaluator = evaluator_of(made.settings, made.graph, made.scaling, made.literals, target)
        facts = made.facts()
        weights, means = fitted(made.names, made.models(), facts, evaluator, questions=MANY_QUESTIONS), None
        if made.scaling.is_log.any():
            numbers = replace(evaluator, tasks=("number",))
            means = fitted_means(made.settings, numbers, combined(made.models(), facts, weights))
        place = loaded[0].run
        source = (place.path / place.manifest["graph"]["path"]).resolve()
        if folder.is_dir():
            folder.rmdir()  # it is empty
        with new_folder(folder) as staging, writing(folder, "the run"):  # half of it could not be resumed
            told = describe_environment(target)
            new = RunFolder.create(staging, made.settings, made.graph, made.scaling, told, source)
            made.save(new, weights, means)
    return Run(folder, device, note, kept)
