"""Several runs as one, weighed on validation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hynt.files import check_new_folder, new_folder, writing
from hynt.front.jobs import TemporaryFolder
from hynt.front.run import Run


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
    from hynt.evaluation.combining import combined, fitted
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
        weights, means = fitted(made.names, made.models(), facts, evaluator), None
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
