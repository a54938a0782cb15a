"""Tables that the paper has not: whether numbers help links, whether probabilities and intervals hold, results by
number of qualifiers and on facts that leak, and which differences are more than chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.paper.grids import NO_ANSWER, NOT_RUN, Grid, difference, figure, number
from benchmarks.paper.printed import BASELINES
from benchmarks.paper.tables import RawFiles
from benchmarks.result_file import Outcomes, Row, Run

LITERAL_AWARE = ("transea", "mt-kgnn", "kbln", "literale", "hynt", "hynt-inductive")
LITERAL_GRAPHS = ("HN-YG", "HN-WK-resplit", "world")
SHUFFLED = ", literals shuffled"
ORDER = ("hynt", "hynt-inductive", *BASELINES)
REFERENCE = "hynt"
"""What every other model is compared with in pairs."""
SAMPLES = 1000
IN_BRACKETS = (
    "Of all questions that a model answers: those of triplets are fewer for models of triplets. Most in brackets."
)


def with_evidence(raw: RawFiles, part: str) -> Iterator[tuple[Row, Run]]:
    """Rows on test whose first run has this part, each graph and model once: graph by graph, in the usual order."""
    found: dict[tuple[str, str], tuple[Row, Run]] = {}
    for name in sorted(raw.everything, key=lambda one: not one.startswith("paper-")):
        for row in raw.everything[name].rows:
            is_meant = row.split == "test" and row.model in ORDER and "literals=shuffled" not in row.changes
            if is_meant and row.runs and getattr(row.runs[0], part):
                found.setdefault((str(row.graph), str(row.model)), (row, row.runs[0]))
    for key in sorted(found, key=lambda one: (one[0], ORDER.index(one[1]))):
        yield found[key]


def literals(raw: RawFiles) -> list[Grid]:
    """Link MRR of triplets: as it is, asked with the numbers of others, and trained with the numbers of others."""
    grids = []
    for graph in LITERAL_GRAPHS:
        rows, records = [], []
        for model in LITERAL_AWARE:
            given, shuffled = _literal_rows(raw, graph, model)
            figures = [None if row is None else row.figure("link", "triplet", "mrr") for row in (given, shuffled)]
            read = _asked_with_others(raw, graph, model)
            asked = NOT_RUN if read is None else f"{number(read[0])} instead of {number(read[1])}"
            first, second = figures
            apart = NO_ANSWER if first is None or second is None else difference(second.mean, first.mean)
            rows.append([model, *(NOT_RUN if one is None else figure(one) for one in figures), apart, asked])
            record: dict[str, Any] = {"graph": graph, "row": model, "asked": read[0] if read else None}
            record |= {"given": first.mean if first else None, "shuffled": second.mean if second else None}
            records.append(record | {"ours": record["shuffled"] if second else record["asked"]})
        columns = ["", "trained with its numbers", "with others'", "difference", "only asked with others'"]
        words = "Numbers are dealt anew within each relation. Both trainings have the same settings and seed."
        grids.append(Grid(f"{graph}, link MRR of triplets", columns, rows, words, records))
    return grids


def _literal_rows(raw: RawFiles, graph: str, model: str) -> tuple[Row | None, Row | None]:
    """A row as given and one with shuffled literals, of one file and with the same other settings."""
    for file in raw.everything.values():
        mine = [row for row in file.rows if (row.graph, row.model, row.split) == (graph, model, "test") and row.runs]
        for shuffled in mine:
            if "literals=shuffled" not in shuffled.changes:
                continue
            for given in mine:
                if _without_literals(given) == _without_literals(shuffled) and given is not shuffled:
                    return given, shuffled
    return None, None


def _without_literals(row: Row) -> tuple[str | None, frozenset[str]]:
    return row.preset, frozenset(change for change in row.changes if not change.startswith("literals="))


def _asked_with_others(raw: RawFiles, graph: str, model: str) -> tuple[float, float] | None:
    """Link MRR of a run that is asked with the numbers of others, and as it is."""
    for row, run in with_evidence(raw, "calibration"):
        if (row.graph, row.model) == (graph, model) and "shuffled_literals" in run.calibration:
            own = run.metric("test", "link", "triplet", "mrr")
            return None if own is None else (run.calibration["shuffled_literals"]["triplet"], own)
    return None


def calibration(raw: RawFiles) -> list[Grid]:
    """The expected calibration error of first answers before and after, and what 90 % intervals cover."""
    rows, records = [], []
    for graph, model, told in _calibrated(raw):
        cells = []
        for task in ("link", "relation"):
            one = told.get(task)
            cells.append(NO_ANSWER if one is None else f"{number(one['before'])} → {number(one['after'])}")
        numbers = told.get("number", {}).get("all")
        inside = NO_ANSWER if numbers is None else f"{100 * numbers['coverage']:.1f} %"
        width = NO_ANSWER if numbers is None or numbers["mean_width"] is None else number(numbers["mean_width"], 3)
        rows.append([graph, model, *cells, inside, width])
        record = {"graph": graph, "row": model, "ours": told.get("link", {}).get("after")}
        records.append(record | {"covered": None if numbers is None else numbers["coverage"]})
    columns = ["graph", "", "links: error before → after", "relations", "truth in 90 % intervals", "mean width"]
    words = "Fitted on valid, measured on test, of links and relations on a sample. Widths are on the "
    words += "scale where a relation's training range is 1. Brackets name the raw file `interval-coverage-…`."
    return [Grid("Calibration and coverage", columns, rows, words, records)]


def _calibrated(raw: RawFiles) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Graph, model and what is known: of rows with evidence, then of what `benchmarks.interval_coverage` wrote."""
    for row, run in with_evidence(raw, "calibration"):
        if not {"failed", "missing"} & set(run.calibration):
            yield str(row.graph), str(row.model), run.calibration
    for name, file in raw.everything.items():
        for one in file.rows[0].measured.get("runs", []) if name.startswith("interval-coverage-") else ():
            found = one.get("measured", {})  # nothing of a run that could not be opened
            told: dict[str, Any] = {
                task: {when: found[task][f"calibration_error_{when}"] for when in ("before", "after")}
                for task in ("link", "relation")
                if task in found
            }
            level = found.get("number", {}).get("levels", {}).get("0.9")
            told |= {} if level is None else {"number": {"all": level}}
            if told:
                yield one["graph"], f"{one['model']} ({name.removeprefix('interval-coverage-')})", told


def qualifiers(raw: RawFiles) -> list[Grid]:
    """Link MRR of all questions by how many qualifiers the fact has."""
    return _by_group(raw, "qualifiers", "by number of qualifiers", lambda group: group)


def leakage(raw: RawFiles) -> list[Grid]:
    """How much of a test split training has seen, and what models reach with and without it."""
    rows, records = [], []
    file = raw.file("graphs")
    for row in file.rows if file is not None else ():
        seen = row.measured["leakage"]
        cells = [number(seen["test"], 0), number(seen["triplet"], 0), f"{100 * seen['triplet'] / seen['test']:.1f} %"]
        rows.append([row.name, *cells, number(seen["fact"], 0)])
        records.append({"row": row.name, "ours": seen["triplet"] / seen["test"]})
    columns = ["", "test facts", "triplet in training", "share", "whole fact in training"]
    words = "A test fact leaks where training has its triplet, whatever qualifiers the two have."
    shares = Grid("Test facts whose triplet training has", columns, rows, words, records)
    short = {"triplet not in training": "not in training", "triplet in training": "in training"}
    return [shares, *_by_group(raw, "leakage", "by leakage", lambda group: short[group])]


def _by_group(raw: RawFiles, grouping: str, words: str, named: Callable[[str], str]) -> list[Grid]:
    graphs: dict[str, list[tuple[Row, list[dict[str, Any]]]]] = {}
    for row, run in with_evidence(raw, "breakdowns"):
        groups = run.breakdowns.get("link", {}).get(grouping)
        if groups:
            graphs.setdefault(str(row.graph), []).append((row, groups))
    grids = []
    for graph, found in graphs.items():
        counts = {one["group"]: one["count"] for _, groups in found for one in groups}
        names = sorted(
            counts, key=lambda one: (len(one.split("–")[0].rstrip("+")), one) if one[0].isdigit() else (0, one)
        )
        rows = [
            [str(row.model), *(figure_of({one["group"]: one for one in groups}.get(name)) for name in names)]
            for row, groups in found
        ]
        most = {
            name: max(one["count"] for _, groups in found for one in groups if one["group"] == name) for name in names
        }
        records = [
            {"graph": graph, "row": row.model, "ours": groups[0].get("mrr"), "groups": groups} for row, groups in found
        ]
        columns = ["", *(f"{named(name)} ({most[name]:,})" for name in names)]
        grids.append(Grid(f"{graph}, link MRR {words}", columns, rows, IN_BRACKETS, records))
    return grids


def figure_of(group: dict[str, Any] | None) -> str:
    return NO_ANSWER if group is None or group.get("mrr") is None else number(group["mrr"])


def differences(raw: RawFiles) -> list[Grid]:
    """Every model against HyNT on the same questions: the difference, where 95 % of paired samples lie, and p."""
    graphs: dict[str, dict[str, Run]] = {}
    for row, run in with_evidence(raw, "outcomes"):
        graphs.setdefault(str(row.graph), {})[str(row.model)] = run
    grids = []
    for graph, runs in graphs.items():
        rows, records = [], []
        for model, run in runs.items():
            if model == REFERENCE or REFERENCE not in runs:
                continue
            cells = []
            for task in ("link", "number"):
                found = paired(run, runs[REFERENCE], task)
                cells.append(NO_ANSWER if found is None else difference_text(found))
                record: dict[str, Any] = {"graph": graph, "row": model, "task": task}
                records.append(record | ({"ours": None} if found is None else {"ours": found["difference"], **found}))
            rows.append([model, *cells])
        columns = ["", "link MRR minus hynt's", "number RMSE minus hynt's"]
        words = (
            f"One seed, triplets, {SAMPLES:,} paired samples of facts; in brackets the middle 95 %; * where p < .05."
        )
        if rows:
            grids.append(Grid(f"{graph}, differences from hynt", columns, rows, words, records))
    return grids


def difference_text(found: dict[str, float]) -> str:
    star = " \\*" if found["p_value"] < 0.05 else ""
    low, high = (difference(found[end], 0.0) for end in ("low", "high"))
    return f"{difference(found['difference'], 0.0)} ({low} to {high}){star}"


def paired(run: Run, other: Run, task: str) -> dict[str, float] | None:
    """First minus second of the questions about triplets that both were asked; None where they were not the same."""
    from hynt.evaluation.bootstrap import FactSums, interval, p_value, resampled

    if task not in run.outcomes or task not in other.outcomes:
        return None
    sums = []
    for one in (run, other):
        fact, in_triplet, value = Outcomes.unpacked(one.outcomes[task])
        fact, value = fact[in_triplet], value[in_triplet]
        rows, owner = np.unique(fact, return_inverse=True)
        above = np.bincount(owner, value**2 if task == "number" else 1 / value, minlength=len(rows)).astype(np.float64)
        below = np.bincount(owner, minlength=len(rows)).astype(np.float64)
        sums.append(FactSums(("rmse" if task == "number" else "mrr",), rows, above[:, None], below[:, None]))
    if not all(np.array_equal(getattr(sums[0], name), getattr(sums[1], name)) for name in ("fact", "below")):
        return None
    drawn = resampled(sums, SAMPLES, seed=0)[:, :, 0]
    gaps = drawn[:, 0] - drawn[:, 1]
    low, high = interval(gaps)
    mine, theirs = (float(one.value()[0]) for one in sums)
    return {"difference": mine - theirs, "low": low, "high": high, "p_value": p_value(gaps)}


BEYOND: dict[str, tuple[str, Callable[[RawFiles], list[Grid]]]] = {
    "literals": ("Do numbers help links?", literals),
    "calibration": ("Do probabilities and intervals hold what they promise?", calibration),
    "qualifiers": ("What do more qualifiers change?", qualifiers),
    "leakage": ("What does training give away of the test split?", leakage),
    "differences": ("Which differences are more than chance?", differences),
}


def not_run(raw: RawFiles) -> list[str]:
    """The models that a table lacks on a graph that some of them were run on, or on which none was."""
    has: dict[tuple[str, str], set[str]] = {}
    for grid in literals(raw):
        graph = grid.title.partition(", link")[0]
        known = {str(one["row"]) for one in grid.records if None not in (one["given"], one["shuffled"])}
        has["trained with others' numbers", graph] = known
    calibrated = [(graph, model.split()[0]) for graph, model, _ in _calibrated(raw)]
    for graph in LITERAL_GRAPHS:
        has["probabilities and intervals", graph] = {model for of, model in calibrated if of == graph}
        for words, part in (("by qualifiers and leakage", "breakdowns"), ("differences", "outcomes")):
            has[words, graph] = {str(row.model) for row, _ in with_evidence(raw, part) if row.graph == graph}
    lines: dict[tuple[str, str], list[str]] = {}
    for (words, graph), known in has.items():
        every = LITERAL_AWARE if words.startswith("trained") else ORDER
        absent = [name for name in every if name not in known]
        if absent:
            but = f"all but {', '.join(f'`{name}`' for name in every if name in known)}" if known else "all models"
            told = but if len(absent) > len(known) else ", ".join(f"`{name}`" for name in absent)
            lines.setdefault((graph, told), []).append(words)
    return [f"{graph}: {told} ({'; '.join(words)})" for (graph, told), words in lines.items()]
