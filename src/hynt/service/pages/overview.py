"""Pages of what there is. An entity: its facts in a group per relation, a small curve where its numbers make one, and
beside each fact the question it suggests. A relation: the spread of its numbers, how well it is predicted, and
questions it suggests. The run: its figures and the protocol they were measured by, as the report shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hynt.errors import HyntError
from hynt.files import MANIFEST_NAME, read_index
from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_difference, format_moment, format_quantity
from hynt.graph.units.conversion import with_display
from hynt.markup import Column, Markup, Row, RowGroup, element, joined, percent, table
from hynt.names import plural
from hynt.reporting.charts_svg import Marked, Plot
from hynt.reporting.report.metrics import METRICS, SCOPES, TITLES, WORDS, headlines, metrics_section
from hynt.reporting.report.trust import Measurements, kept_measurements, protocol_section, shown_as_kept, trust_section
from hynt.reporting.scales import Scale
from hynt.runs import RECORD, WEIGHTS
from hynt.runs.journal import Version, changed_share
from hynt.runs.place import is_packaged, read_counts, read_record
from hynt.service.pages.answers import numbers_chart
from hynt.service.pages.questions import AskedForm, address

POSITIONS = {
    "head": "What is known of it",
    "tail": "What points to it",
    "value": "Where it is the value of a qualifier",
}
_WIDTH, _HEIGHT = 120.0, 28.0


def sections_of(groups: Sequence[Mapping[str, Any]], entity: str) -> list[dict[str, Any]]:
    """Groups of facts by the position of the entity in them, in the order they come."""
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        section = {"title": POSITIONS[group["position"]], "position": group["position"], "relations": []}
        found.setdefault(group["position"], section)["relations"].append(_relation(group, entity))
    return list(found.values())


def _relation(group: Mapping[str, Any], entity: str) -> dict[str, Any]:
    relation, series = group["relation"], group["series"]
    facts = [_view(fact, entity, is_series=bool(series)) for fact in group["facts"]]
    whole = [("id", entity), ("position", group["position"]), ("relation", relation["id"])]
    return {
        "name": relation["name"],
        "id": relation["id"],
        "facts": facts,
        "count": group["count"],
        "whole": address("/entity", whole) if group["count"] > len(facts) else None,
        "spark": sparkline(series) if series else None,
        "told": _span(series[0], relation) if len(series) == 1 else "",
    }


def sparkline(series: Sequence[Sequence[tuple[float, float]]]) -> Markup:
    """The lines of a series, small; what they say stands beside them in words."""
    dates, values = zip(*(point for line in series for point in line), strict=True)
    ends = (min(values), max(values))
    room = 0.0 if ends[0] < ends[1] else abs(ends[0]) or 1.0  # a level line runs through the middle
    plot = Plot(Scale(min(dates), max(dates), 2.0, _WIDTH - 2), Scale(ends[0] - room, ends[1] + room, _HEIGHT - 3, 3.0))
    return element(
        "svg",
        *(plot.line(line, "line after") for line in series),
        *(plot.dot(*line[-1], "dot after", 2.5) for line in series),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="chart spark",
        aria_hidden="true",
        focusable="false",
    )


def _span(line: Sequence[tuple[float, float]], relation: Mapping[str, Any]) -> str:
    unit = with_display(relation["unit"], relation["display_unit"])
    first, last = (f"{format_quantity(value, unit)} ({format_moment(at)})" for at, value in (line[0], line[-1]))
    return f"{first} to {last}"


def _view(fact: Mapping[str, Any], entity: str, *, is_series: bool) -> dict[str, Any]:
    """A fact with the addresses that lead on from it."""
    trend = None
    if is_series and any(pair["value"].get("unit") == DATE_UNIT for pair in fact["qualifiers"]):
        chosen = [
            part
            for pair in fact["qualifiers"]
            if "id" in pair["value"]  # entities tell series apart
            for part in (("qualifier", pair["relation"]["id"]), ("value", pair["value"]["id"]))
        ]
        trend = address("/trends", [("head", fact["head"]["id"]), ("relation", fact["relation"]["id"]), *chosen])
    return {
        "anchor": f"{fact['split']}-{fact['row']}",
        "head": _linked(fact["head"], entity),
        "tail": _linked(fact["tail"], entity),
        "split": fact["split"],
        "added": fact["added"],
        "text": fact["text"],
        "qualifiers": [
            {"relation": pair["relation"]["name"], "value": _linked(pair["value"], entity)}
            for pair in fact["qualifiers"]
        ],
        "ask": AskedForm.of(fact).with_blank("head" if fact["position"] == "tail" else "tail").address,
        "trend": trend,
    }


def _linked(value: Mapping[str, Any], entity: str) -> dict[str, Any]:
    """A value with where it leads; numbers, and the entity of the page itself, lead nowhere."""
    if "id" not in value:
        return {"text": value["text"], "address": None, "is_number": True}
    leads = None if value["id"] == entity else address("/entity", [("id", value["id"])])
    return {"text": value["name"], "address": leads, "is_number": False}


NEARLY_ALWAYS = 0.5
"""The least share of facts that carry a qualifier for it to be called usual."""


def pattern_of(found: Mapping[str, Any]) -> str:
    """What facts with a relation look like: country · population · a number (point in time; sometimes sex)."""
    head, tail = (" or ".join(name.replace("_", " ") for name in found["types"][one]) for one in ("head", "tail"))
    if found["kind"] == "number":
        tail = "a date" if found["is_date"] else "a number"
    often, seldom = (
        ", ".join(one["relation"]["name"] for one in found["usual"] if (one["share"] >= NEARLY_ALWAYS) == wanted)
        for wanted in (True, False)
    )
    told = "; ".join(part for part in (often, f"sometimes {seldom}" if seldom else "") if part)
    return f"{head or 'an entity'} · {found['name']} · {tail or 'an entity'}{f' ({told})' if told else ''}"


_ASKED = {
    "link": "asked for an entity of its facts",
    "relation": "asked for the relation itself",
    "number": "asked for its number",
}


def relation_chart(found: Mapping[str, Any]) -> Markup | None:
    """How the relation's numbers are spread; None where it holds none."""
    title = f"{found['name']}: {(found['numbers'] or {}).get('count', 0):,} numbers"
    return numbers_chart("relation-chart", title, found, Marked(str(found["unit"])))


def quality_of(measured: Measurements | None, relation: str) -> list[dict[str, Any]]:
    """What the run's kept figures say of one relation, task by task; nothing where it was not measured."""
    found = []
    for task, groups in (measured or {}).get("breakdowns", {}).items():
        for row in groups["relation"]:
            if row["group"] == relation:
                metrics = [(WORDS[one], f"{row[one]:.3f}") for one in METRICS[task] if row.get(one) is not None]
                own = _measured_numbers(measured or {}, relation) if task == "number" else None
                told = _number_told(own, row) if task == "number" else _ranks_told(row)
                asked = "asked for its date" if own and own["unit"] == DATE_UNIT else _ASKED[task]
                times = f"{plural(int(row['count']), 'time')} {asked}, "
                found.append({"told": f"{times}{told}.", "asked": asked, "metrics": metrics})
    return found


def _ranks_told(row: Mapping[str, Any]) -> str:
    first, ten = (_times(row[one], row["count"]) for one in ("hits@1", "hits@10"))
    return f"the model's first answer was right {first}{f', and one of its first ten {ten}' if first != ten else ''}"


def _times(share: float, asked: float) -> str:
    count = round(share * asked)
    return "every time" if count == asked else {0: "never", 1: "once"}.get(count, f"{count:,} times")


def _measured_numbers(measured: Measurements, relation: str) -> Mapping[str, Any] | None:
    rows = measured.get("evaluation", {}).get("number", {}).get("per_relation", ())
    return next((one for one in rows if one["relation"] == relation), None)


def _number_told(own: Mapping[str, Any] | None, row: Mapping[str, Any]) -> str:
    """How far answers are off in the unit that people read, and how they compare with always saying the median."""
    if own is None:
        return f"answers were off by {row['rmse']:.1%} of its range"
    unit = with_display(own["unit"], own.get("display_unit", ""))
    told = f"answers were off by {format_difference(own['mae'], unit)} on average"
    if "median_error" in own:
        told += f", and half of them by {format_difference(own['median_error'], unit)} or less"
    if own.get("worse_than_median") is not None:
        kind = "dates" if own["unit"] == DATE_UNIT else "numbers"
        nearer = _times(1 - own["worse_than_median"], row["count"])
        told += f"; {nearer} they were nearer than the median of its {kind} in training"
    return told


SPLITS = ("test", "valid")


def measured_of(run: Path) -> tuple[Measurements | None, str]:
    """The figures kept in a run, those of test before those of valid, and why there are none where there are none."""
    try:
        weights = read_index(run / MANIFEST_NAME).get("files", {}).get(WEIGHTS)
        for split in SPLITS:
            found = kept_measurements(run, split, weights)
            if found is not None:
                found = {**found, "reads_now": read_counts(run).get(split, 0)}
                with shown_as_kept(run):  # on another page than this one, say
                    figures(found)
                    quality_of(found, "")
                return found, ""
    except HyntError as problem:
        return None, f"The figures of this run cannot be shown: {problem.what}"
    kept = "" if is_packaged(run) else " and keeps the figures in the run"
    return None, f"The run was not measured in full yet. One command does it{kept}:"


def validated_of(run: Path) -> dict[str, Any] | None:
    """What the run's weights reached on the validation split while it was trained; None where nothing was written."""
    try:
        validations = [line for line in read_record(run / RECORD) if line.get("validation")]
        if not validations:
            return None
        chosen = next((line for line in reversed(validations) if line.get("best")), validations[-1])
        tables = [_task_table(task, found) for task, found in chosen["validation"].items() if task in METRICS]
        return {"epoch": int(chosen["epoch"]), "tables": joined(tables)}
    except (HyntError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None  # a damaged record costs the page this part; `hynt report` says what is wrong with it


def _task_table(task: str, found: dict[str, Any]) -> Markup:
    metrics = [one for one in METRICS[task] if one in found["triplet"]]  # records of earlier versions have fewer
    columns = [Column(TITLES[task]), *(Column(WORDS[one], "number") for one in metrics), Column("asked", "number")]
    rows = [
        Row([title, *(f"{found[scope][one]:.4f}" for one in metrics), f"{found[scope]['count']:,}"])
        for scope, title in SCOPES.items()
        if found[scope]["count"]
    ]
    return table(f"{TITLES[task]} of the validation split", columns, [RowGroup("", rows)], hide_caption=True)


def figures(found: Measurements) -> dict[str, Markup]:
    """The parts of the report that say how good the run is."""
    return {
        "headlines": headlines(found),
        "metrics": metrics_section(found),
        "trust": trust_section(found),
        "protocol": protocol_section(found),
    }


def described(about: dict[str, Any], updates: Sequence[Version]) -> list[tuple[str, str]]:
    """The run and its graph, with its updates since training, in a few words each."""
    run, graph = about["run"], about["graph"]
    pairs = [
        ("model", str(run.get("model", "not loaded yet"))),
        ("graph", graph["name"] or "without a name"),
        ("entities", f"{graph['entities']:,}"),
        ("relations", f"{graph['relations']:,}"),
        *((f"facts in {name}", f"{count:,}") for name, count in graph["splits"].items()),
    ]
    if updates:
        changes = plural(len(updates), "version")
        came, went = (sum(getattr(one, what) for one in updates) for what in ("added", "removed"))
        share = changed_share(sum(graph["splits"].values()) - came + went, updates)
        told = f"{plural(came, 'fact')} added, {went:,} removed, {percent(share)} of the graph"
        pairs.append(("updates", f"{changes}: {told}"))
    named = {"trained_on": "trained on", "scaled_on": "numbers scaled on", "seed": "seed", "epoch": "epoch"}
    pairs += [(word, str(run[key])) for key, word in named.items() if key in run]
    return [*pairs, ("hynt", about["hynt"])]
