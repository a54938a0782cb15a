"""A run beside the trivial answers from its training facts: which of them is best, and where the run is worse.

A model that a mean beats has learned nothing of use there. It is said in words, not left to whoever reads tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hynt.evaluation.questions import SCOPES

COMPARED = {"link": ("mrr",), "relation": ("mrr",), "number": ("rmse", "mae", "vs_median")}
WORDS = {"mrr": "MRR", "rmse": "RMSE", "mae": "MAE", "vs_median": "error against the median"}
NAMES = {"link": "links", "relation": "relations", "number": "numbers"}
SPAN = {"all": "over all components", "triplet": "over components of the triplet"}

NAMED = 5
"""How many relations a sentence names."""

Measured = Mapping[str, Any]


def best_trivial(references: Measured, task: str, metric: str, scope: str = "all") -> tuple[str, float] | None:
    """The trivial model that does best, and its mark; None where none of them answers."""
    rows = [
        (name, tasks[task][scope][metric])
        for name, tasks in sorted(references.items())
        if task in tasks and tasks[task][scope].get(metric) is not None
    ]
    if not rows:
        return None
    return min(rows, key=lambda row: row[1] if task == "number" else -row[1])


def worse_than_trivial(evaluation: Measured, references: Measured) -> list[str]:
    """A sentence for each metric by which a trivial row beats the run, on the widest scope that both were asked."""
    found = []
    for task, metrics in COMPARED.items():
        scope = shared_scope(evaluation, references, task)
        for metric in metrics if scope is not None else ():
            trivial = best_trivial(references, task, metric, str(scope))
            own = evaluation[task][scope].get(metric)
            if trivial is None or own is None:
                continue
            name, mark = trivial
            if own > mark if task == "number" else own < mark:
                marks = f"{WORDS[metric]} {own:.4f} against {mark:.4f} {SPAN[str(scope)]}"
                found.append(f"{NAMES[task]} are worse than {name}: {marks}.")
    rows = evaluation.get("number", {}).get("per_relation", ())
    worse = [row for row in rows if (row.get("vs_median") or 0.0) > 0.5]
    if worse:
        named = ", ".join(
            str(row.get("label", row["relation"])) for row in sorted(worse, key=lambda row: -row["count"])[:NAMED]
        )
        more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
        found.append(
            f"numbers of {len(worse)} of {len(rows)} relations are worse than relation-median, the median of training: "
            f"{named}{more}."
        )
    return found


def shared_scope(evaluation: Measured, references: Measured, task: str) -> str | None:
    """Models that answer nothing in qualifiers were asked less than trivial ones there: then triplets are compared."""
    if task not in evaluation:
        return None
    counts: Sequence[Measured] = [tasks[task] for tasks in references.values() if task in tasks]
    same = (
        scope
        for scope in reversed(SCOPES)
        if all(one[scope]["count"] == evaluation[task][scope]["count"] for one in counts)
    )
    return next(same, None) if counts else None
