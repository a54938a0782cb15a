"""One sentence at the end of a comparison: which model to train, what to expect of it, and by which command.

Validation chooses among the models that answer most tasks, by the place that each takes in each task; what to expect is
read from test.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from hynt.comparison.table import grouped, minutes_text

MARKS = {"link": ("mrr", "link MRR", 3), "relation": ("mrr", "relation MRR", 3), "number": ("rmse", "number RMSE", 4)}


def recommended(comparison: Mapping[str, Any], graph: str) -> dict[str, Any] | None:
    """The model that validation prefers, with `figures`, `command` and `sentence`; None where no model has a row.

    `graph` is how the command names it.
    """
    models = {name: rows for name, rows in grouped(comparison["rows"]).items() if all("valid" in row for row in rows)}
    if not models:
        return None
    tasks = [task for task in MARKS if any(task in row["valid"] for rows in models.values() for row in rows)]
    answered = {name: sum(task in rows[0]["valid"] for task in tasks) for name, rows in models.items()}
    able = {name: rows for name, rows in models.items() if answered[name] == max(answered.values())}
    if not tasks:
        return None
    places = {name: fmean(_place(able, name, task) for task in tasks) for name in able}
    chosen = min(places, key=lambda name: (places[name], list(able).index(name)))
    rows, minutes = able[chosen], comparison["minutes_per_model"]
    figures = {task: mark for task in tasks if (mark := _mark(rows, "test", task)) is not None}
    told = ", ".join(f"{MARKS[task][1]} {value:.{MARKS[task][2]}f}" for task, value in figures.items())
    command = _command(graph, chosen, rows[0]["preset"], minutes)
    return {
        "model": chosen,
        "figures": figures,
        "command": command,
        "sentence": f"recommended: {chosen}, which validation places first among those that answer most "
        f"({', '.join(able)}); in {minutes_text(minutes)} of training expect {told} for triplets, as on test; "
        f"train it with: {command}",
    }


def _place(models: Mapping[str, Sequence[Mapping[str, Any]]], name: str, task: str) -> float:
    """1 for the best of a task."""
    marks = {one: _mark(rows, "valid", task) for one, rows in models.items()}
    own = marks[name]
    if own is None:
        return len(models)
    others = [mark for one, mark in marks.items() if one != name and mark is not None]
    return 1 + sum(mark < own if task == "number" else mark > own for mark in others)


def _mark(rows: Sequence[Mapping[str, Any]], split: str, task: str) -> float | None:
    """The mean over seeds, of all questions of the triplet: those that every model is asked."""
    tables = [row["test"]["realistic"] if split == "test" else row["valid"] for row in rows]
    values = [table[task]["triplet"][MARKS[task][0]] for table in tables if task in table]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _command(graph: str, model: str, preset: str | None, minutes: float) -> str:
    words = ["hynt", "train", graph]
    words += [] if model == "hynt" else ["--model", model]
    words += [] if preset is None else ["--preset", preset, "--set", "with_statistics=true"]
    return shlex.join([*words, "--minutes", f"{minutes:g}", "--out", "RUN"])
