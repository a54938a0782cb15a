"""The paper's figures and its table of predictions that change with qualifiers, from a trained run.

    PYTHONPATH=src python3 -m benchmarks.paper_figures RUN --out figures --limit-seconds 300

Figures: total fertility rates of the paper's two countries, and of the two with the most known values; rankings of the
Swedish and Indian national football teams. A relation that the graph lacks is left out and named; a graph with none of
them gets the two relations that have the most held-out values over time instead. Table: see `qualifier_changes`. Writes
.png, .svg and .csv for each figure, `qualifiers.md`, one explained question, and all of it in `paper_figures.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.qualifier_changes import ask_all, gains, pairs, told
from benchmarks.result_file import write_measured
from hynt.asking.predictor import Predictor
from hynt.errors import HyntError
from hynt.front.run import Run, load
from hynt.graph.fact import DATE_UNIT
from hynt.reporting.explanation_chart import explanation_figure
from hynt.reporting.scales import picture
from hynt.reporting.trend_chart import trend_figure
from hynt.results import csv_text
from hynt.runs.run_folder import describe_environment
from hynt.trends.trends import Trend, trend

FIGURES = {
    "fertility-paper": ("P4841", ["Q77", "Q117"]),  # Uruguay, Ghana
    "fertility": ("P4841", []),
    "ranking": ("P1352", ["Q160826", "Q212206"]),  # Sweden's and India's men's national football teams
}
"""A name, Wikidata's id of a relation and of heads; no heads: the two with the most values, some of them held out."""

MOST_PAIRS, MOST_GAINS = 12, 20


def wanted_figures(predictor: Predictor) -> dict[str, tuple[str, list[str]]]:
    """What is drawn for this graph."""
    graph = predictor.graph
    known = {name: one for name, one in FIGURES.items() if one[0] in graph.vocabulary.relation_ids}
    if known:
        return known
    counted = values_over_time(predictor)
    by_relation: Counter[int] = Counter()
    for (relation, _), (_, held_out) in counted.items():
        by_relation[relation] += held_out
    return {
        f"trend-{number}": (graph.relations[relation].name, [])
        for number, (relation, _) in enumerate(by_relation.most_common(2), 1)
    }


def values_over_time(predictor: Predictor) -> dict[tuple[int, int], tuple[int, int]]:
    """For each relation and head, how many numbers with a date it has, and how many of them were held out."""
    graph = predictor.graph
    is_date = np.array([relation.unit == DATE_UNIT for relation in graph.relations])
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for name, table in graph.splits.items():
        dated = np.bincount(table.qualifier_owner()[is_date[table.qualifier_relation]], minlength=len(table)) == 1
        chosen = np.flatnonzero(dated & graph.vocabulary.relation_is_number[table.relation])
        pairs_of = Counter(zip(table.relation[chosen].tolist(), table.head[chosen].tolist(), strict=True))
        for key, count in pairs_of.items():
            total, held_out = found.get(key, (0, 0))
            found[key] = (total + count, held_out + (0 if name == "train" else count))
    return found


def chosen_heads(predictor: Predictor, relation: str, given: Sequence[str]) -> list[str]:
    """Those of the paper that the graph has; else the two with the most values, at least two of them held out."""
    graph = predictor.graph
    there = [head for head in given if head in graph.vocabulary.entity_ids]
    if there:
        return there
    identity = graph.vocabulary.relation_ids[relation]
    of = {head: counts for (one, head), counts in values_over_time(predictor).items() if one == identity}
    enough = [head for head in of if of[head][1] >= 2] or list(of)
    enough.sort(key=lambda head: (-of[head][0], -of[head][1], graph.vocabulary.entities[head]))
    return [graph.vocabulary.entities[head] for head in enough[:2]]


def draw(predictor: Predictor, name: str, relation: str, heads: Sequence[str], out: Path) -> Trend:
    """One figure in all its forms."""
    found = trend(predictor, heads, relation, points=200)
    figure = trend_figure(found)
    for suffix in (".png", ".svg"):
        (out / f"{name}{suffix}").write_bytes(picture(figure, suffix))
    (out / f"{name}.csv").write_text(csv_text(found.rows()), encoding="utf-8", newline="\n")
    return found


def table_text(rows: Sequence[Sequence[dict[str, Any]]]) -> str:
    """The couples as a table in Markdown."""
    lines = ["| question | qualifiers | prediction | without qualifiers |", "|---|---|---|---|"]
    for couple in rows:
        for row in couple:
            first, without = (
                f"{row[name]} ({row[share]:.0%})"
                for name, share in (
                    ("prediction", "probability"),
                    ("prediction_without_qualifiers", "probability_without"),
                )
            )
            cells = [row["question"], "; ".join(row["qualifiers"]), first, without]
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws what can be drawn; whatever fails is named in the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run")
    parser.add_argument("--out", type=Path, required=True, help="a folder, made if need be")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="stop asking after so long")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    predictor = load(given.run, given.device, lambda text: print(f"note: {text}", file=sys.stderr, flush=True))
    result: dict[str, Any] = {
        "run": given.run.name,
        **predictor.described(),
        **predictor.loaded.described(),
        "environment": describe_environment(predictor.device),
        "figures": {},
        "left_out": {},
    }
    wanted = wanted_figures(predictor)
    result["left_out"] = {name: "the graph lacks the relation" for name in FIGURES if name not in wanted}
    for name, (relation, heads) in wanted.items():
        try:
            found = draw(predictor, name, relation, chosen_heads(predictor, relation, heads), given.out)
        except HyntError as problem:
            result["left_out"][name] = str(problem)
            continue
        whole = found.to_dict()
        del whole["rows"]  # they are in the CSV
        result["figures"][name] = whole
    if "valid" in predictor.graph.splits or "test" in predictor.graph.splits:
        asked = ask_all(predictor, began + given.limit_seconds)
        couples = [[told(predictor, asked, number) for number in couple] for couple in pairs(asked, MOST_PAIRS)]
        gained = [told(predictor, asked, number) for number in gains(asked, MOST_GAINS)]
        result["qualifiers"] = {**asked.counts(), "pairs": couples, "gains": gained}
        (given.out / "qualifiers.md").write_text(table_text(couples), encoding="utf-8")
        changed = [
            row for couple in couples for row in couple if row["prediction"] != row["prediction_without_qualifiers"]
        ]
        for row in (changed or gained)[:1]:
            _draw_explained(predictor, row, given.out / "explained.png")
    result["seconds"] = time.monotonic() - began
    write_measured(given.out / "paper_figures.json", result, str(__doc__))
    print(json.dumps({"out": str(given.out), "figures": list(result["figures"]), "left_out": result["left_out"]}))


def _draw_explained(predictor: Run, row: dict[str, Any], path: Path) -> None:
    ids = row["ids"]
    ends = ("?", ids["tail"]) if ids["position"] == "head" else (ids["head"], "?")
    found = predictor.explain((ends[0], ids["relation"], ends[1], [tuple(pair) for pair in ids["qualifiers"]]))
    path.write_bytes(picture(explanation_figure(found), ".png"))


if __name__ == "__main__":
    main()
