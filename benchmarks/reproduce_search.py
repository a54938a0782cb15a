"""Choosing among settings, such as those that the HyNT paper searched for a model: on validation, before the row is
made.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.training.resolve_settings import GRIDS

if TYPE_CHECKING:
    from hynt.comparison.trial import Trial, TrialPlace
    from hynt.runs.checkpoint import Watcher


def grid_changes(model: str, count: int) -> list[tuple[str, ...]]:
    """So many settings of a model's grid, the same ones each time, as changes of the first, which is among them."""
    first, *others = GRIDS[model]
    drawn = random.Random(0).sample(others, min(count - 1, len(others)))
    return [(), *(tuple(_differences(first, other)) for other in drawn)]


def searched(
    place: TrialPlace, trial: Trial, candidates: Sequence[tuple[str, ...]], share: float, watcher: Watcher
) -> tuple[Trial, list[dict[str, Any]]]:
    """The trial with the changes that validate best, and how each did. All of them together take this share of the
    trial's own time; the test split is not read.
    """
    import torch

    from hynt.training.run import start, train

    found: list[dict[str, Any]] = []
    for changes in candidates:
        seconds = None if trial.seconds is None else trial.seconds * share / len(candidates)
        one = replace(trial, changes=together(trial.changes, changes), seconds=seconds)
        with tempfile.TemporaryDirectory(prefix="reproduce-search-") as folder:
            settings = one.settings(place.graph, place.device)
            run = start(place.graph, settings, Path(folder) / "run", place.device, place.graph_source)
            run = train(run, place.device, watcher, compiled=place.compiled, clock=place.clock)
            best = run.manifest["training"].get("best")
        torch._dynamo.reset()  # it compiles one function so many times only, and each candidate is a new model
        found.append({"changes": list(changes), "value": None if best is None else best["value"]})
        watcher.note(f"searched: {found[-1]}")
    chosen = max(found, key=lambda one: one["value"] or 0.0)  # every grid is validated by MRR
    return replace(trial, changes=together(trial.changes, chosen["changes"])), found


def together(changes: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Both; of two changes of one setting the later one counts."""
    return tuple({change.partition("=")[0]: change for change in (*changes, *more)}.values())


def _differences(first: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """`key=value` of every setting in which `other` is not like `first`."""
    for key, value in other.items():
        if isinstance(value, Mapping):
            yield from _differences(first[key], value, f"{path}{key}.")
        elif value != first[key]:
            yield f"{path}{key}={value}"
