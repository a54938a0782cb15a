"""The page of a relation: the spread of its numbers, how well it is predicted, and questions it suggests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hynt.markup import Markup
from hynt.reporting.charts_svg import Marked, spread_chart
from hynt.reporting.report.metrics import METRICS, WORDS
from hynt.reporting.report.trust import Measurements
from hynt.service.pages.answers import is_log
from hynt.service.pages.examples import written_value
from hynt.service.pages.questions import MOST_QUALIFIERS, AskedForm

_ASKED = {
    "link": "asked for an entity beside it",
    "relation": "asked for the relation itself",
    "number": "asked for a number",
}


def relation_chart(found: Mapping[str, Any]) -> Markup | None:
    """How the relation's numbers are spread; None where it holds none."""
    numbers = found["numbers"]
    if numbers is None:
        return None
    edges = [float(edge) for edge in numbers["edges"]]
    title = f"{found['name']}: {numbers['count']:,} numbers"
    marked = Marked(str(found["unit"]), None, None, [])
    return spread_chart("relation-chart", title, edges, numbers["counts"], marked, log=is_log(edges))


def quality_of(measured: Measurements | None, relation: str) -> list[dict[str, Any]]:
    """What the run's kept figures say of one relation, task by task; nothing where it was not measured."""
    found = []
    for task, groups in (measured or {}).get("breakdowns", {}).items():
        for row in groups["relation"]:
            if row["group"] == relation:
                metrics = [(WORDS[one], f"{row[one]:.3f}") for one in METRICS[task] if row.get(one) is not None]
                found.append({"asked": _ASKED[task], "count": int(row["count"]), "metrics": metrics})
    return found


def question_about(fact: Mapping[str, Any]) -> AskedForm:
    """The question for a fact's tail."""
    pairs = tuple((pair["relation"]["id"], written_value(pair["value"])) for pair in fact["qualifiers"])
    form = AskedForm(fact["head"]["id"], fact["relation"]["id"], written_value(fact["tail"]), pairs[:MOST_QUALIFIERS])
    return form.with_blank("tail")
