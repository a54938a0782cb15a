"""A comparison as tables: what each model is and cost, and what it reached, with the trivial rows below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

COLUMNS: dict[str, tuple[str, str, str, int]] = {
    "link MRR": ("link", "triplet", "mrr", 3),
    "H@1": ("link", "triplet", "hits@1", 3),
    "H@3": ("link", "triplet", "hits@3", 3),
    "H@10": ("link", "triplet", "hits@10", 3),
    "link all": ("link", "all", "mrr", 3),
    "relation MRR": ("relation", "triplet", "mrr", 3),
    "relation all": ("relation", "all", "mrr", 3),
    "number RMSE": ("number", "triplet", "rmse", 4),
    "number all": ("number", "all", "rmse", 4),
}
"""Title to task, scope, metric and digits; "all" counts questions about qualifiers too."""

_SHORT = {"head": "h", "tail": "t", "relation": "r", "qualifier relation": "qr", "qualifier value": "qv"}


class Cells(NamedTuple):
    """A table as text."""

    titles: list[str]
    rows: list[list[str]]


def grouped(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by model, in their order: one a seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(row)
    return found


def cost_table(comparison: Mapping[str, Any]) -> Cells:
    """What each model reads and answers, how long it learned, and whether its schedule was run out."""
    titles = ["model", "reads", "answers", "parameters", "epochs", "schedule", "train s", "facts/s", "budget-limited"]
    cells = []
    for model, rows in grouped(comparison["rows"]).items():
        first = rows[0]
        limited = sum(row["budget_limited"] for row in rows)
        cells.append(
            [
                model,
                reads_text(first),
                answers_text(first),
                f"{first['parameters']:,}",
                f"{fmean(row['epochs'] for row in rows):.0f}",
                str(first["schedule_epochs"]),
                f"{fmean(row['train_seconds'] for row in rows):.0f}",
                _speed(rows),
                "yes" if limited else "no",
            ]
        )
    for name, row in comparison["trivial"].items():
        cells.append([name, reads_text(row), answers_text(row), *["–"] * 6])
    return Cells(titles, cells)


def _speed(rows: Sequence[Mapping[str, Any]]) -> str:
    known = [row["facts_per_second"] for row in rows if row["facts_per_second"] is not None]
    return f"{fmean(known):,.0f}" if known else "–"


def quality_table(comparison: Mapping[str, Any], ties: str = "realistic") -> Cells:
    """Metrics of the test split; means and deviations where there are several seeds. A dash: not answered."""
    cells = [
        [model, *(_metric(rows, *column, ties) for column in COLUMNS.values())]
        for model, rows in grouped(comparison["rows"]).items()
    ]
    cells += [
        [name, *(_metric([row], *column, ties) for column in COLUMNS.values())]
        for name, row in comparison["trivial"].items()
    ]
    return Cells(["model", *COLUMNS], cells)


def _metric(rows: Sequence[Mapping[str, Any]], task: str, scope: str, metric: str, digits: int, ties: str) -> str:
    found = [row["test"][ties].get(task, {}).get(scope, {}).get(metric) for row in rows]
    values = [value for value in found if value is not None]
    if not values or (scope == "all" and not any(_answers_qualifiers(row, task) for row in rows)):
        return "–"
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def _answers_qualifiers(row: Mapping[str, Any], task: str) -> bool:
    """A model of triplets answers fewer questions: its mean over "all" is no mean over all."""
    return any(answer.startswith(f"{task}, qualifier") for answer in row["answers"])


def reads_text(row: Mapping[str, Any]) -> str:
    """`triplets, qualifiers, numbers`."""
    return ", ".join(["triplets", *sorted(row["reads"], reverse=True)])


def answers_text(row: Mapping[str, Any]) -> str:
    """`link h t qv; relation r qr; number t qv`: tasks, each with its positions."""
    tasks: dict[str, list[str]] = {}
    for answer in row["answers"]:
        task, _, position = answer.partition(", ")
        tasks.setdefault(task, []).append(_SHORT[position])
    order = list(_SHORT.values())
    return "; ".join(
        f"{task} {' '.join(sorted(tasks[task], key=order.index))}"
        for task in ("link", "relation", "number")
        if task in tasks
    )


def minutes_text(minutes: float) -> str:
    """`2 minutes`, `1 minute`, `0.5 minutes`."""
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


def markdown(cells: Cells) -> str:
    """For a page."""
    lines = [f"| {' | '.join(title.strip() for title in cells.titles)} |", f"|{'---|' * len(cells.titles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells.rows)]) + "\n"
