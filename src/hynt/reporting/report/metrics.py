"""How good the run is, for the report: headlines, metrics beside trivial rows, and where it is weak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hynt.evaluation.tables import SPAN, best_trivial, own_units, shared_scope, worse_than_trivial
from hynt.evaluation.tables import WORDS as METRIC_WORDS
from hynt.markup import (
    Column,
    Content,
    Markup,
    Row,
    RowGroup,
    element,
    figure,
    joined,
    long_table,
    paragraphs,
    section,
    table,
)
from hynt.reporting.charts_svg import interval_chart, share_bar

TITLES = {"link": "Links", "relation": "Relations", "number": "Numbers"}
ASKED = {
    "link": "Which entity is missing? Every entity of the graph is a candidate; other known answers are left out.",
    "relation": "Which relation is missing? Every relation is a candidate.",
    "number": "Which number is missing? RMSE and MAE are on a scale from 0 to 1, the training range of each relation. "
    "Against the median has no scale: 0 is perfect, 0.5 as good as the training median of the relation.",
}
METRICS = {
    "link": ("mrr", "hits@1", "hits@3", "hits@10"),
    "relation": ("mrr", "hits@1", "hits@3", "hits@10"),
    "number": ("rmse", "mae", "vs_median"),
}
WORDS = {metric: words.removesuffix(" (scaled)") for metric, words in METRIC_WORDS.items()}
SCOPES = {"all": "All components", "triplet": "Components of the triplet"}
GROUPINGS = {
    "position": "hidden position",
    "qualifiers": "qualifiers of the fact",
    "frequency": "times training holds the entity",
    "relation": "relation",
}
MOST_RELATIONS = 15

Measured = Mapping[str, Any]


def headlines(measured: Measured) -> Markup:
    """The few numbers that people look for first."""
    tiles = []
    evaluation, protocol = measured["evaluation"], measured["evaluation"]["protocol"]
    for task, metric in (("link", "mrr"), ("relation", "mrr"), ("number", "rmse")):
        if task not in evaluation or evaluation[task]["all"][metric] is None:
            continue
        scope = shared_scope(evaluation, measured["references"], task) or "all"
        trivial, own = best_trivial(measured["references"], task, metric, scope), evaluation[task][scope][metric]
        beside = "" if trivial is None else _beside(task, own, *trivial)
        tiles.append(
            _tile(
                f"{TITLES[task]}, {WORDS[metric]}",
                f"{own:.3f}",
                _ends(measured["intervals"][task][scope][metric], 3),
                beside,
            )
        )
    covered = (measured["coverage"] or {}).get("levels", {}).get("0.9")
    if covered and covered["coverage"] is not None:
        tiles.append(
            _tile(
                "Truths in 90 % intervals",
                f"{100 * covered['coverage']:.1f} %",
                "",
                f"of {measured['coverage']['questions']:,} numbers",
            )
        )
    return element("ul", *tiles, class_="tiles", aria_label=f"Headlines, {protocol['split']} split")


def _beside(task: str, own: float, name: str, mark: float) -> str:
    is_worse = own > mark if task == "number" else own < mark
    return f"worse than {name}: {mark:.3f}" if is_worse else f"{name} has {mark:.3f}"


def _tile(name: str, value: str, ends: str, beside: str) -> Markup:
    return element(
        "li",
        element("span", name, class_="tile-name"),
        element("strong", value),
        element("span", ends, class_="ends") if ends else None,
        element("span", beside, class_="beside"),
    )


def metrics_section(measured: Measured) -> Markup:
    """Metrics with bootstrap intervals beside what needs no model, and beside the paper where it has a row."""
    evaluation = measured["evaluation"]
    protocol = evaluation["protocol"]
    paper = paper_figures(protocol["graph"], protocol["trained_on"], protocol["split"])
    parts: list[Content] = [
        paragraphs(
            "Intervals are 95 % bootstrap intervals, drawn over facts. The rows below the run are trivial answers from "
            "the same training facts: a model that does not beat them has learned nothing of use."
            + (" The paper’s row is what its authors print for HyNT on the graph of this name." if paper else "")
        )
    ]
    parts += [
        element("p", warning[0].upper() + warning[1:], class_="notice")
        for warning in worse_than_trivial(evaluation, measured["references"])
    ]
    for task in ("link", "relation", "number"):
        if task not in evaluation:
            continue
        parts.append(
            element(
                "div",
                element("h3", TITLES[task]),
                element("p", ASKED[task], class_="lead"),
                element(
                    "div", _task_table(measured, task, paper), _task_chart(measured, task, paper), class_="pair metrics"
                ),
                class_="task",
            )
        )
        if task == "number":
            parts.append(_own_units(evaluation))
    unanswered = protocol.get("unanswered", {})
    if unanswered:
        listed = ", ".join(f"{count:,} of {TITLES[task].lower()}" for task, count in unanswered.items())
        parts.append(element("p", f"Questions that the model does not answer, and that count nowhere: {listed}."))
    return section("metrics", "How good it is", *parts)


def _task_table(measured: Measured, task: str, paper: Mapping[str, Any]) -> Markup:
    evaluation, model = measured["evaluation"], measured["evaluation"]["protocol"]["model"]
    metrics = [one for one in METRICS[task] if one in evaluation[task]["triplet"]]  # figures kept long ago have fewer
    columns = [Column("model"), *(Column(WORDS[one], "number") for one in metrics), Column("asked", "number")]
    groups = []
    for scope, title in SCOPES.items():
        if scope == "all" and shared_scope(evaluation, measured["references"], task) == "triplet":
            continue  # the model answers nothing in qualifiers: what it was asked is the triplet
        own = evaluation[task][scope]
        limits = measured["intervals"][task][scope]
        rows = [
            Row(
                [
                    f"{model}, this run",
                    *(_with_ends(own[one], limits.get(one)) for one in metrics),
                    f"{own['count']:,}",
                ],
                "own",
            )
        ]
        if scope in paper.get(task, {}):
            figures = paper[task][scope]
            cells = [_figure(figures[one]) if one in figures else "–" for one in metrics]
            rows.append(Row(["hynt, the paper", *cells, "–"], "paper"))
        for name, tasks in sorted(measured["references"].items()):
            if task in tasks:
                found = tasks[task][scope]
                rows.append(Row([name, *(_figure(found[one]) for one in metrics), f"{found['count']:,}"]))
        groups.append(RowGroup(title, rows))
        apart = f"{scope}_without_numbers"
        if apart in evaluation[task]:
            models = {f"{model}, this run": evaluation, **dict(sorted(measured["references"].items()))}
            told = {name: tasks[task][apart] for name, tasks in models.items() if apart in tasks.get(task, {})}
            rows = [
                Row([name, *(_figure(found[one]) for one in metrics), f"{found['count']:,}"])
                for name, found in told.items()
            ]
            groups.append(RowGroup(f"{title}, without heads of numbers", rows))
    return table(f"{TITLES[task]}: metrics", columns, groups, hide_caption=True)


def _own_units(evaluation: Measured) -> Markup:
    """Numbers relation by relation, in their units and without any, the most asked first."""
    cells = own_units("", sorted(evaluation["number"]["per_relation"], key=lambda row: -row["count"]))
    columns = [Column(cells.columns[0]), *(Column(title, "number") for title in cells.columns[1:])]
    return long_table("Numbers in their units", columns, [Row(row) for row in cells.rows], MOST_RELATIONS)


def _task_chart(measured: Measured, task: str, paper: Mapping[str, Any]) -> Markup:
    metric = METRICS[task][0]
    evaluation, protocol = measured["evaluation"], measured["evaluation"]["protocol"]
    rows: list[tuple[str, float, Sequence[float] | None, str]] = []
    scope = shared_scope(evaluation, measured["references"], task) or "all"
    own = evaluation[task][scope][metric]
    if own is not None:
        rows.append((f"{protocol['model']}, this run", own, measured["intervals"][task][scope][metric], "own"))
    if metric in paper.get(task, {}).get(scope, {}):
        rows.append(("hynt, the paper", paper[task][scope][metric], None, "paper"))
    for name, tasks in sorted(measured["references"].items()):
        if task in tasks and tasks[task][scope][metric] is not None:
            rows.append((name, tasks[task][scope][metric], None, "trivial"))
    if not rows:
        return Markup("")
    better = "lower is better" if task == "number" else "higher is better"
    chart = interval_chart(
        f"{task}-side-by-side", f"{TITLES[task]}: {WORDS[metric]}", rows, f"{WORDS[metric]}, {better}"
    )
    return figure(chart, f"{WORDS[metric]} {SPAN[scope]}; the line through the dot is its 95 % interval.")


def breakdown_section(measured: Measured) -> Markup:
    """Where it is good and where not."""
    parts: list[Content] = []
    for task, groupings in ((task, measured["breakdowns"][task]) for task in TITLES if task in measured["breakdowns"]):
        metric = METRICS[task][0]
        tables = [_breakdown(task, metric, name, groupings[name]) for name in GROUPINGS if groupings.get(name)]
        parts.append(element("h3", f"{TITLES[task]}, {WORDS[metric]}"))
        parts.append(element("div", *tables, class_="cards"))
    lead = "The same questions, grouped. A group with few questions says little about itself."
    return section("breakdowns", "Where it is good, and where not", *parts, lead=lead)


def _breakdown(task: str, metric: str, grouping: str, rows: Sequence[Measured]) -> Markup:
    title = f"{TITLES[task]} by {GROUPINGS[grouping]}"
    columns = [
        Column(GROUPINGS[grouping]),
        Column(WORDS[metric], "number"),
        Column("", "bar"),
        Column("asked", "number"),
    ]
    told = [row for row in rows if row[metric] is not None]
    if grouping == "relation":
        told = sorted(told, key=lambda row: (-row["count"], str(row["group"])))
    most = max((row[metric] for row in told), default=1.0) or 1.0
    scale = most if task == "number" else 1.0
    made = [
        Row(
            [
                str(row.get("label", row["group"])),
                _figure(row[metric]),
                share_bar(row[metric] / scale),
                f"{row['count']:,}",
            ]
        )
        for row in told
    ]
    return long_table(title, columns, made, MOST_RELATIONS)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _ends(limits: Sequence[float] | None, digits: int = 4) -> str:
    return "" if limits is None else f"{limits[0]:.{digits}f} – {limits[1]:.{digits}f}"


def _with_ends(value: float | None, limits: Sequence[float] | None) -> Content:
    if value is None:
        return "–"
    return joined([element("b", _figure(value)), element("span", _ends(limits), class_="ends")])


# The figures that the HyNT paper prints for HyNT, to stand beside a run on the graph of the same name.
#
# From the corrected version of the paper (doi:10.1145/3580305.3599490), tables of link, relation and number prediction.
# "Tri" there is the scope `triplet` here, "All" is `all`. Figures that the paper does not print are left out.

Figures: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""By task and scope, the metrics."""


Printed: TypeAlias = tuple[float, ...]
"""MRR, Hits@10, Hits@3 and Hits@1, MRR, Hits@10 and Hits@1, or RMSE."""

_NAMES = {4: ("mrr", "hits@10", "hits@3", "hits@1"), 3: ("mrr", "hits@10", "hits@1"), 1: ("rmse",)}
_TRAINED_ON_TRAIN: tuple[tuple[str, str, Printed, Printed], ...] = (  # graph, task, scope triplet, scope all
    ("HN-YG", "link", (0.2035, 0.3147, 0.2237, 0.1474), (0.2035, 0.3147, 0.2237, 0.1474)),
    ("HN-YG", "relation", (0.8797, 0.9851, 0.9379, 0.8135), (0.8944, 0.9869, 0.9455, 0.8363)),
    ("HN-YG", "number", (0.0706,), (0.0694,)),
    ("HN-WK", "link", (0.3037, 0.5082, 0.3228, 0.2084), (0.3254, 0.5261, 0.3459, 0.2314)),
    ("HN-WK", "relation", (0.9474, 0.9905, 0.9789, 0.9145), (0.9706, 0.9947, 0.9881, 0.9522)),
    ("HN-WK", "number", (0.0548,), (0.0405,)),
    ("HN-FB-S", "link", (0.5079, 0.7037, 0.5610, 0.4063), (0.5796, 0.7586, 0.6323, 0.4857)),
    ("HN-FB-S", "relation", (0.9815, 0.9994, 0.9966, 0.9669), (0.9902, 0.9997, 0.9982, 0.9825)),
    ("HN-FB-S", "number", (0.0532,), (0.0499,)),
    ("HN-FB", "link", (0.4544, 0.6571, 0.5036, 0.3520), (0.5022, 0.7207, 0.5561, 0.3939)),
    ("HN-FB", "relation", (0.9809, 0.9990, 0.9958, 0.9662), (0.9860, 0.9987, 0.9954, 0.9766)),
    ("HN-FB", "number", (0.0517,), (0.0558,)),
    ("WD50K", "link", (0.3332, 0.4743, 0.2594), (0.3599, 0.4999, 0.2867)),
    ("WikiPeople-", "link", (0.4820, 0.6020, 0.4153), (0.4811, 0.6025, 0.4139)),
)
_TRAINED_ON_BOTH = (("WD50K", "link", (0.3568, 0.5010, 0.2811), (0.3834, 0.5267, 0.3081)),)


def paper_figures(graph: str, trained_on: str, split: str) -> Figures:
    """What the paper prints for a graph of this name and the same training splits; empty where it prints nothing.

    The paper speaks of test splits only, so nothing stands beside another split.
    """
    if split != "test":
        return {}
    rows = _TRAINED_ON_BOTH if trained_on == "train+valid" else _TRAINED_ON_TRAIN
    return {
        task: {
            scope: dict(zip(_NAMES[len(printed)], printed, strict=True))
            for scope, printed in (("triplet", of_triplet), ("all", of_all))
        }
        for name, task, of_triplet, of_all in rows
        if name == graph
    }
