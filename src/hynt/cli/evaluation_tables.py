"""An evaluation as tables for people: metrics with intervals, trivial rows beside them, breakdowns, a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hynt.cli.output import visible

if TYPE_CHECKING:
    from rich.console import Console

RANKED = ("mrr", "hits@1", "hits@3", "hits@10")  # a table for 80 columns; the mean rank is in the JSON
NUMBER = ("rmse", "mae")
WORDS = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
    "rmse": "RMSE (scaled)",
    "mae": "MAE (scaled)",
}


def print_evaluation(console: Console, result: dict[str, Any]) -> None:
    """Everything that was asked for."""
    protocol = result["protocol"]
    console.print(
        f"{protocol['model']} on {visible(protocol['graph']) or 'the graph'}, {protocol['split']} split; trained on "
        f"{protocol['trained_on']}, numbers scaled on {protocol['scaled_on']}, seed {protocol['seed']}, epoch "
        f"{protocol['epoch']}; ties {protocol['ties']}, filter {protocol['filter']}; times this split was read: "
        f"{protocol['reads_of_split']}"
    )
    _metrics(
        console, result, [task for task in ("link", "relation", "link_type_constrained") if task in result], RANKED
    )
    _metrics(console, result, ["number"] if "number" in result else [], NUMBER)
    for task in ("link", "relation", "number"):
        if task in result and _only_triplets(result, task):
            console.print(f"{task}: {_why_only_triplets(result, task)}", style="dim")
    for note in result.get("notes", ()):
        console.print(note[0].upper() + note[1:], style="bold")
    for task, groupings in result.get("breakdowns", {}).items():
        for grouping, rows in groupings.items():
            _breakdown(console, f"{task} by {grouping}", rows, NUMBER if task == "number" else RANKED)
    for task, scopes in result.get("comparison", {}).items():
        _comparison(console, task, scopes)


def _metrics(console: Console, result: dict[str, Any], tasks: list[str], metrics: tuple[str, ...]) -> None:
    from rich.table import Table

    if not tasks:
        return
    table = Table("task, scope", "model", *(WORDS[metric] for metric in metrics), "asked")
    references = result.get("references", {})
    for task in tasks:
        for scope in ("triplet",) if _only_triplets(result, task) else ("triplet", "all"):
            limits = result.get("intervals", {}).get(task, {}).get(scope, {})
            title = f"{task.replace('_', ' ')}, {scope}"
            table.add_row(*_cells(title, result["protocol"]["model"], result[task][scope], metrics, limits))
            for name, tasks_of_reference in references.items():
                if task in tasks_of_reference:
                    table.add_row(*_cells("", name, tasks_of_reference[task][scope], metrics, {}))
    console.print(table)


def _only_triplets(result: dict[str, Any], task: str) -> bool:
    """Whether nothing in qualifiers was asked: the two scopes are then the same questions."""
    return bool(result[task]["triplet"]["count"] == result[task]["all"]["count"])


def _why_only_triplets(result: dict[str, Any], task: str) -> str:
    left = result["protocol"].get("unanswered", {}).get(task, 0)
    if not left:
        return "the split asks nothing of the kind in qualifiers, so triplets are all"
    model = result["protocol"]["model"]
    return f"only components of triplets were asked; {model} does not answer the other {left:,} questions"


def _cells(
    title: str, model: str, found: dict[str, Any], metrics: tuple[str, ...], limits: dict[str, Any]
) -> list[str]:
    cells = [_number(found[metric], 4, limits.get(metric)) for metric in metrics]
    return [title, model, *cells, f"{found['count']:,}"]


def _breakdown(console: Console, title: str, rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> None:
    from rich.table import Table

    table = Table("group", *(WORDS[metric] for metric in metrics), "asked", title=title, title_justify="left")
    for row in rows:
        cells = [_number(row[metric]) for metric in metrics]
        table.add_row(visible(str(row["group"])), *cells, f"{row['count']:,}")
    console.print(table)


def _comparison(console: Console, task: str, scopes: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("scope", "metric", "this run", "the other", "difference", "95 % interval", "p", title=task)
    for scope, metrics in scopes.items():
        for metric, found in metrics.items():
            if metric not in WORDS:
                continue
            digits = 1 if metric == "mean_rank" else 4
            table.add_row(
                scope,
                WORDS[metric],
                _number(found["first"], digits),
                _number(found["second"], digits),
                _number(found["difference"], digits),
                f"{_number(found['low'], digits)} … {_number(found['high'], digits)}",
                _number(found["p_value"], 3),
            )
    console.print(table)


def _number(value: float | None, digits: int = 4, limits: Any = None) -> str:
    if value is None:
        return "-"
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a difference that rounds to nothing has no sign
    return f"{text} ({limits[0]:.{digits}f}–{limits[1]:.{digits}f})" if limits else text
