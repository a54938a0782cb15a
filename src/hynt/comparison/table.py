"""A comparison as tables: what each model is and cost, and what it reached, with the trivial rows below.

One sentence at the end says which model to train, what to expect of it, and by which command. Validation chooses among
the models that answer most tasks, by the place that each takes in each task; what to expect is read from test.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from hynt.evaluation.tables import TextTable
from hynt.reporting.scales import GREY, INK, Scale, bare, hynt_style, new_figure, set_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    "link MRR, no number heads": ("link", "triplet_without_numbers", "mrr", 3),
    "number vs. median": ("number", "triplet", "vs_median", 3),
}
"""Title to task, scope, metric and digits; "all" counts questions about qualifiers too."""

_SHORT = {"head": "h", "tail": "t", "relation": "r", "qualifier relation": "qr", "qualifier value": "qv"}

SHORT_IN_WORDS = "answers: h the head, t the tail, r the relation, qr and qv a qualifier's relation and value"
"""Stands below the table whose column it explains."""


def grouped(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by model, in their order: one per seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(row)
    return found


def told_tables(comparison: Mapping[str, Any]) -> list[TextTable]:
    """The same figures for a screen: links, then relations and numbers, then costs, each with the models that have any,
    and without what models read and answer, which `abilities` tells in words.
    """
    quality, cost = quality_table(comparison), cost_table(comparison)
    of_links = [COLUMNS[title][0] == "link" for title in quality.columns[1:]]
    return [
        part
        for part in (
            _columns(quality, of_links),
            _columns(quality, [not one for one in of_links]),
            _columns(cost, [title not in _IN_WORDS for title in cost.columns[1:]]),
        )
        if part.rows
    ]


def _columns(whole: TextTable, wanted: Sequence[bool]) -> TextTable:
    """The first column and those wanted of the others, without rows that say nothing there."""
    chosen = [0, *(place for place, is_wanted in enumerate(wanted, 1) if is_wanted)]
    rows = [[row[place] for place in chosen] for row in whole.rows]
    kept = [row for row in rows if any(cell != "–" for cell in row[1:])]
    return TextTable(whole.title, [whole.columns[place] for place in chosen], kept, len(chosen) - 1)


def abilities(comparison: Mapping[str, Any]) -> list[str]:
    """What models read and answer, models that are alike in both together."""
    cost = cost_table(comparison)
    places = [cost.columns.index(title) for title in _IN_WORDS]
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in cost.rows:
        alike.setdefault(tuple(row[place] for place in places), []).append(row[0])
    return [f"  {', '.join(names)}: {reads}; {answers}" for (reads, answers), names in alike.items()]


_IN_WORDS = ("reads", "answers")


def cost_table(comparison: Mapping[str, Any]) -> TextTable:
    """What each model reads and answers, how long it learned, and whether its schedule was run out."""
    titles = ["model", "reads", "answers", "parameters", "epochs", "schedule", "train s", "facts/s", "cut short"]
    cells = []
    for model, rows in grouped(comparison["rows"]).items():
        first = rows[0]
        limited = sum(row["budget_limited"] for row in rows)
        speeds = [row["facts_per_second"] for row in rows if row["facts_per_second"] is not None]
        cells.append(
            [
                model,
                reads_text(first),
                answers_text(first),
                f"{first['parameters']:,}",
                f"{fmean(row['epochs'] for row in rows):.0f}",
                str(first["schedule_epochs"]),
                f"{fmean(row['train_seconds'] for row in rows):.0f}",
                f"{fmean(speeds):,.0f}" if speeds else "–",
                "yes" if limited else "no",
            ]
        )
    for name, row in comparison["trivial"].items():
        cells.append([name, reads_text(row), answers_text(row), *["–"] * 6])
    return TextTable("", titles, cells, 6)


def quality_table(comparison: Mapping[str, Any]) -> TextTable:
    """Metrics of the test split; means and deviations where there are several seeds. A dash: not answered."""
    models = {**grouped(comparison["rows"]), **{name: [row] for name, row in comparison["trivial"].items()}}
    everyone = [row["test"]["realistic"] for rows in models.values() for row in rows]
    # Older comparisons lack some metrics, and so does a graph without such questions.
    titles = [
        title
        for title, (task, scope, metric, _) in COLUMNS.items()
        if any(metric in one.get(task, {}).get(scope, {}) for one in everyone)
    ]
    cells = [[model, *(_metric(rows, *COLUMNS[title]) for title in titles)] for model, rows in models.items()]
    return TextTable("", ["model", *titles], cells, len(titles))


def _metric(rows: Sequence[Mapping[str, Any]], task: str, scope: str, metric: str, digits: int) -> str:
    found = [row["test"]["realistic"].get(task, {}).get(scope, {}).get(metric) for row in rows]
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


def markdown(cells: TextTable) -> str:
    """The table in Markdown, as documentation pages show it."""
    lines = [f"| {' | '.join(cells.columns)} |", f"|{'---|' * len(cells.columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells.rows)]) + "\n"


# Quality against training time, a panel for each task, as in the paper's first figure.
#
# A line is a model's validation curve, its mark what the chosen weights reached on the test split. Dotted lines are the
# best trivial models on the test split.

PANELS = (
    ("link", "mrr", "link prediction, triplet MRR"),
    ("relation", "mrr", "relation prediction, triplet MRR"),
    ("number", "rmse", "number prediction, triplet RMSE"),
)
_COLOURS = (
    "#1f6f6b",
    "#d9730d",
    "#3f77ad",
    "#8e44ad",
    "#c0392b",
    "#7f8c1d",
    "#16a085",
    "#e84393",
    "#5d4037",
    "#0984e3",
    "#b8860b",
    "#6c5ce7",
    "#2d3436",
)
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d")


def compare_figure(comparison: Mapping[str, Any], title: str) -> Figure:
    """The first seed of each model."""
    firsts = {model: rows[0] for model, rows in grouped(comparison["rows"]).items()}
    tasks = [panel for panel in PANELS if any(panel[0] in row["test"]["realistic"] for row in firsts.values())]
    with hynt_style():
        width, height = 4.0 * len(tasks) + 1.7, 4.2
        figure = new_figure(width, height)
        panels: Sequence[Axes] = figure.subplots(1, max(len(tasks), 1), squeeze=False).flatten().tolist()
        for axes, (task, metric, words) in zip(panels, tasks, strict=False):
            _panel(axes, firsts, comparison["trivial"], task, metric)
            axes.set_title(words)
            axes.set_xlabel("training time in seconds")
            bare(axes)
        handles = _handles(list(firsts))
        figure.legend(handles=handles, loc="center right", bbox_to_anchor=(1.0, 0.5), labelcolor=INK)
        figure.suptitle(title, x=0.5 / width, ha="left", fontsize=11, color=INK)
        figure.subplots_adjust(left=0.55 / width, right=1 - 1.75 / width, top=0.84, bottom=0.13, wspace=0.2)
    return figure


def _panel(
    axes: Axes, rows: Mapping[str, Mapping[str, Any]], trivial: Mapping[str, Any], task: str, metric: str
) -> None:
    for index, row in enumerate(rows.values()):
        reached = row["test"]["realistic"].get(task, {}).get("triplet", {}).get(metric)
        if reached is None:
            continue
        colour, mark = _COLOURS[index % len(_COLOURS)], _MARKS[index % len(_MARKS)]
        points = [
            (max(point["trained_seconds"], 0.1), point["validation"][task]["triplet"][metric])
            for point in row["curve"]
            if point["validation"].get(task, {}).get("triplet", {}).get(metric) is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.2, alpha=0.75)
        axes.plot(
            [max(row["train_seconds"], 0.1)], [reached], mark, color=colour, markersize=7, markeredgecolor="white"
        )
    axes.set_xscale("log")
    set_ticks(axes.xaxis, Scale(*axes.get_xlim(), log=True), 6)
    found = {
        name: value
        for name, row in trivial.items()
        if (value := row["test"]["realistic"].get(task, {}).get("triplet", {}).get(metric)) is not None
    }
    if found:
        best = (min if metric == "rmse" else max)(found, key=lambda name: found[name])
        axes.axhline(found[best], color=GREY, linestyle=":", linewidth=1.2)
        axes.annotate(
            best,
            (0.0, found[best]),
            xycoords=("axes fraction", "data"),
            xytext=(3, 3),
            textcoords="offset points",
            color=GREY,
            fontsize=8,
        )
    if metric == "rmse" and found:
        axes.set_ylim(0, 2 * max(found.values()))  # a model that went astray must not flatten the others
    else:
        axes.set_ylim(bottom=0)
    set_ticks(axes.yaxis, Scale(*axes.get_ylim()), 6)


def _handles(models: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color=_COLOURS[index % len(_COLOURS)],
            marker=_MARKS[index % len(_MARKS)],
            markersize=6,
            markeredgecolor="white",
            label=model,
        )
        for index, model in enumerate(models)
    ]


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
    beside = max(row.get("beside_seconds", 0.0) for row in rows)  # older comparisons do not say
    whole = math.ceil(10 * (minutes + beside / 60)) / 10
    command = _command(graph, chosen, rows[0]["preset"], whole)
    return {
        "model": chosen,
        "figures": figures,
        "command": command,
        "sentence": f"recommended: {chosen}, which validation places first among those that answer most "
        f"({', '.join(able)}); in {minutes_text(minutes)} of training, {minutes_text(whole)} with all else, "
        f"expect {told} for triplets, as on test; train it with: {command}",
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
    words = ["hynt", "train", graph, "--model", model]
    words += [] if preset is None else ["--preset", preset, "--set", "with_statistics=true"]
    return shlex.join([*words, "--minutes", f"{minutes:g}", "--out", "RUN"])
