"""An evaluation as tables of text, for whoever shows them: metrics with intervals, trivial rows beside them,
breakdowns, a comparison.

A run stands beside the trivial answers from its training facts: a model that a mean beats has learned nothing of use
there. It is said in words, not left to whoever reads tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hynt.names import plural

RANKED = ("mrr", "hits@1", "hits@3", "hits@10")  # a table for 80 columns; the mean rank is in the JSON
NUMBER = ("vs_median", "rmse", "mae")
WORDS = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
    "rmse": "RMSE (scaled)",
    "mae": "MAE (scaled)",
    "crps": "CRPS (scaled)",
    "vs_median": "vs. median",
}
AGAINST = "vs. median: 0 is perfect, 0.5 as good as the training median of each relation, 1 far worse; it has no scale"
MOST = 10
"""How many relations a table shows where nobody asked for all."""
FACTORS = 1.5
"""Where half of the answers are off by more than this factor it is told as one, else as a share."""
Found = Mapping[str, Any]


class TextTable(NamedTuple):
    """Headings and rows; the last columns, `numbers` of them, hold numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: int


def headline(result: Found) -> str:
    """What was asked, by which protocol."""
    protocol = result["protocol"]
    logs = len(protocol.get("log_relations", ()))
    by_logs = f" ({plural(logs, 'relation')} by logarithms)" if logs else ""
    own = ", ".join(f"{task} {epoch}" for task, epoch in protocol.get("epochs_of_tasks", {}).items())
    return (
        f"{protocol['model']} on {protocol['graph'] or 'the graph'}, {protocol['split']} split; trained on "
        f"{protocol['trained_on']}, numbers scaled on {protocol['scaled_on']}{by_logs}, seed {protocol['seed']}, "
        f"epoch {own or protocol['epoch']}; ties {protocol['ties']}, filter {protocol['filter']}; "
        f"{_observed_or_reads(protocol)}"
    )


def _observed_or_reads(protocol: Found) -> str:
    if "reads_of_split" in protocol:
        return f"times this split was read: {protocol['reads_of_split']}"
    return f"asked of {protocol['observed_facts']:,} facts of {protocol['observed_graph'] or 'another graph'}"


def row_name(result: Found) -> str:
    """What the run's own row is called: its model, and whether it answers with statistics."""
    protocol = result["protocol"]
    return f"{protocol['model']}{' with statistics' if protocol.get('combined_with') else ''}"


def evaluation_tables(result: Found) -> list[TextTable]:
    """The tables of an evaluation: metrics, breakdowns, and the comparison with another run."""
    return [*metric_tables(result), *breakdown_tables(result), *comparison_tables(result)]


def metric_tables(result: Found) -> list[TextTable]:
    """The run and the trivial models, links and relations in one table, numbers in another, then the relations whose
    numbers were asked for most.
    """
    ranked = [task for task in ("link", "relation", "link_type_constrained") if task in result]
    beliefs = ("crps",) if "crps" in result.get("number", {}).get("all", {}) else ()
    parts = ((ranked, RANKED), (["number"] if "number" in result else [], (*NUMBER, *beliefs)))
    found = [_metrics(result, tasks, metrics) for tasks, metrics in parts if tasks]
    rows = sorted(result.get("number", {}).get("per_relation", ()), key=lambda row: -row["count"])
    if rows and "relation" not in result.get("breakdowns", {}).get("number", {}):
        more = f"the {MOST} asked most of {len(rows)}" if len(rows) > MOST else "all"
        found.append(own_units(f"numbers by relation, {more}", rows[:MOST]))
    return found


def remarks(result: Found) -> list[str]:
    """Where triplets are all that was asked, why; and what the error against the median means."""
    reasons: dict[str, list[str]] = {}
    for task in ("link", "relation", "number"):
        if task in result and _only_triplets(result, task):
            reasons.setdefault(_why_only_triplets(result, task), []).append(task)
    found = [f"{', '.join(tasks)}: {reason}" for reason, tasks in reasons.items()]
    return [*found, AGAINST] if "number" in result else found


def breakdown_tables(result: Found) -> list[TextTable]:
    """A table for each task and way of grouping."""
    found = []
    for task, groupings in result.get("breakdowns", {}).items():
        metrics = NUMBER if task == "number" else RANKED
        for grouping, rows in groupings.items():
            if (task, grouping) == ("number", "relation"):
                found.append(own_units("number by relation", result["number"]["per_relation"]))
                continue
            cells = [
                [
                    str(row.get("label", row["group"])),
                    *(_number(row[metric]) for metric in metrics),
                    f"{row['count']:,}",
                ]
                for row in rows
            ]
            columns = ["group", *(WORDS[metric] for metric in metrics), "asked"]
            found.append(TextTable(f"{task} by {grouping}", columns, cells, len(metrics) + 1))
    return found


def own_units(title: str, rows: Sequence[Found]) -> TextTable:
    """Errors of numbers in the units that their relations have, and without any."""
    cells = [
        [
            row.get("label", row["relation"]),
            _error(row["mae"], row),
            _typical(row),
            "-" if row.get("worse_than_median") is None else f"{row['worse_than_median']:.0%}",
            _number(row["scaled_mae"]),
            f"{row['count']:,}",
        ]
        for row in rows
    ]
    return TextTable(
        title, ["relation", "MAE", "half are within", "worse than median", WORDS["mae"], "asked"], cells, 5
    )


def _error(value: float, row: Found) -> str:
    from hynt.graph.sentences import format_difference  # brings numpy, which `hynt --help` does without
    from hynt.graph.units.conversion import with_display

    return format_difference(value, with_display(row["unit"], row.get("display_unit", "")))


def _typical(row: Found) -> str:
    factor, share = row.get("factor_off"), row.get("median_relative_error")
    if factor is not None and factor >= FACTORS:
        return f"× {factor:.3g}"
    if share is not None:
        return f"{share:.1%} of it"  # the relation itself may hold percents
    return "-" if "median_error" not in row else _error(row["median_error"], row)


def comparison_tables(result: Found) -> list[TextTable]:
    """This run beside another, a table per task."""
    return [_comparison(task, scopes) for task, scopes in result.get("comparison", {}).items()]


def _metrics(result: Found, tasks: Sequence[str], metrics: tuple[str, ...]) -> TextTable:
    rows = []
    for task in tasks:
        scopes = ("triplet",) if _only_triplets(result, task) else ("triplet", "all")
        both = [one for scope in scopes for one in (scope, f"{scope}_without_numbers") if one in result[task]]
        for scope in both:
            limits = result.get("intervals", {}).get(task, {}).get(scope, {})
            title = f"{task.replace('_', ' ')}, {scope.replace('_', ' ')}"
            rows.append(_cells(title, row_name(result), result[task][scope], metrics, limits))
            for name, beside in (result.get("members", {}) | result.get("references", {})).items():
                if scope in beside.get(task, {}):
                    rows.append(_cells("", name, beside[task][scope], metrics, {}))
    columns = ["task, scope", "model", *(WORDS[metric] for metric in metrics), "asked"]
    return TextTable("", columns, rows, len(metrics) + 1)


def _only_triplets(result: Found, task: str) -> bool:
    """Whether nothing in qualifiers was asked: the two scopes are then the same questions."""
    return bool(result[task]["triplet"]["count"] == result[task]["all"]["count"])


def _why_only_triplets(result: Found, task: str) -> str:
    left = result["protocol"].get("unanswered", {}).get(task, 0)
    if not left:
        return "every question is about a triplet; no qualifier of the split holds anything of this kind"
    model = result["protocol"]["model"]
    return f"only components of triplets were asked; {model} does not answer the other {left:,} questions"


def _cells(title: str, model: str, found: Found, metrics: tuple[str, ...], limits: Found) -> list[str]:
    cells = [_number(found.get(metric), 4, limits.get(metric)) for metric in metrics]
    return [title, model, *cells, f"{found['count']:,}"]


def _comparison(task: str, scopes: Found) -> TextTable:
    rows = []
    for scope, metrics in scopes.items():
        for metric, found in metrics.items():
            if metric not in WORDS:
                continue
            digits = 1 if metric == "mean_rank" else 4
            rows.append(
                [
                    scope,
                    WORDS[metric],
                    *(_number(found[name], digits) for name in ("first", "second", "difference")),
                    f"{_number(found['low'], digits)} … {_number(found['high'], digits)}",
                    _number(found["p_value"], 3),
                ]
            )
    columns = ["scope", "metric", "this run", "the other", "difference", "95 % interval", "p"]
    return TextTable(task, columns, rows, 5)


def _number(value: float | None, digits: int = 4, limits: Any = None) -> str:
    if value is None:
        return "-"
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a difference that rounds to nothing has no sign
    return f"{text} ({limits[0]:.{digits}f}–{limits[1]:.{digits}f})" if limits else text


COMPARED = {"link": ("mrr",), "relation": ("mrr",), "number": ("rmse", "mae", "vs_median")}
SHORT_WORDS = {"mrr": "MRR", "rmse": "RMSE", "mae": "MAE", "vs_median": "error against the median"}
NAMES = {"link": "links", "relation": "relations", "number": "numbers"}
GROUPINGS = ("relation", "position", "qualifiers", "frequency", "seen", "leakage")
"""What questions can be told apart by."""

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
                marks = f"{SHORT_WORDS[metric]} {own:.4f} against {mark:.4f} {SPAN[str(scope)]}"
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
    from hynt.evaluation.metrics import SCOPES  # here: it loads numpy, and `hynt --help` reads this file

    if task not in evaluation:
        return None
    counts: Sequence[Measured] = [tasks[task] for tasks in references.values() if task in tasks]
    same = (
        scope
        for scope in reversed(SCOPES)
        if all(one[scope]["count"] == evaluation[task][scope]["count"] for one in counts)
    )
    return next(same, None) if counts else None
