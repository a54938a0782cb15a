"""What a job of `benchmarks/device.py` came to, as raw files hold it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from benchmarks.result_file import Metrics, Row, Run, kept_breakdowns, kept_metrics, kept_relations, this_commit


class NamedJob(Protocol):
    """The words of a job."""

    name: str
    text: str
    model: str
    preset: str | None
    split: str
    graph_folder: str | None
    changes: list[str]


def rows_of(job: NamedJob, found: Mapping[str, Any], device: str, plain: bool) -> list[Row]:
    """What a job came to, as raw files hold it: a row of its training, one of its ensemble, one of the rest."""
    words = f"python benchmarks/device.py {'--plain ' if plain else ''}--out FILE {shlex.quote(job.text)}"
    commands, commit, rows = [words], this_commit(), []
    graph = job.graph_folder and Path(job.graph_folder).name  # as tables call it; a graph's own name may say less
    trained, together = found.get("train", {}), found.get("ensemble", {})
    rest = {name: one for name, one in found.items() if (one and name not in ("train", "ensemble")) or "skipped" in one}
    if runs := trained.get("seeds"):
        first = next(iter(runs.values()))
        rows.append(
            Row(
                job.name,
                commands,
                device,
                commit,
                job.model,
                graph,
                first["fingerprint"],
                job.split,
                job.preset,
                job.changes,
                first["settings"],
                first["answers"],
                runs=[run_of(int(seed), one, job.split) for seed, one in runs.items()],
            )
        )
    if job.split in together:
        name = f"{job.name}, as one" if rows else job.name
        told = {"members": together["members"], "weights": together["weights"]}
        run, fingerprint = run_of(None, together, job.split), together["fingerprint"]
        rows.append(
            Row(name, commands, device, commit, "ensemble", graph, fingerprint, job.split, runs=[run], measured=told)
        )
    if rest:
        name = f"{job.name}, measured" if rows else job.name
        rows.append(Row(name, commands, device, commit, job.model, graph, measured=rest))
    return rows


def run_of(seed: int | None, told: Mapping[str, Any], split: str) -> Run:
    """One seed; the published tie rule only where it differs in the fourth digit."""
    realistic, published = (kept_metrics(told[split].get(ties, {})) for ties in ("realistic", "hynt"))
    training = told.get("training", {})
    cost = {name: training[name] for name in ("weights_of_epoch",) if name in training}
    cost |= {"epochs": told["settings"]["schedule"]["epochs"]} if "settings" in told else {}
    cost |= {"memory_bytes": told["peak_memory_bytes"]} if told.get("peak_memory_bytes") else {}
    if "best_of_tasks" in training:
        cost["epochs_of_tasks"] = {task: one["epoch"] for task, one in training["best_of_tasks"].items()}
    seconds = {"train": training.get("seconds"), "test": told.get("test_seconds"), "whole": told.get("wall_seconds")}
    return Run(
        seed,
        {split: realistic} | ({f"{split}, published ties": published} if differ(realistic, published) else {}),
        {name: value for name, value in seconds.items() if value is not None},
        cost,
        [[one["epoch"], one["trained_seconds"], one["value"]] for one in told.get("curve", [])],
        kept_relations(told.get("per_relation")),
        kept_breakdowns(told.get("breakdowns", {})),
    )


def differ(one: Metrics, other: Metrics) -> bool:
    """Whether a figure would be printed otherwise."""
    pairs = [
        (value, other[task][scope][name])
        for task, scopes in one.items()
        for scope, metrics in scopes.items()
        for name, value in metrics.items()
        if other
    ]
    return any(abs(mine - theirs) >= 5e-5 for mine, theirs in pairs)
