"""How far answers can be trusted, for the report: calibration, coverage, the surest and the least sure ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hynt.errors import DataError
from hynt.files import read_index
from hynt.markup import (
    Column,
    Content,
    Markup,
    Row,
    RowGroup,
    definitions,
    element,
    figure,
    joined,
    percent,
    section,
    table,
)
from hynt.reporting.charts_svg import coverage_chart, reliability_chart, share_bar
from hynt.reporting.report.metrics import TITLES, Measured
from hynt.runs.place import whole_run

FITTED_ON = "valid"
"""The split that calibration is fitted on, as `hynt.calibration.calibration` has it, which needs torch."""


def trust_section(measured: Measured) -> Markup:
    """Whether probabilities and intervals keep their word."""
    parts: list[Content] = []
    if measured["not_calibrated"]:
        text = f"Probabilities are not calibrated and numbers have no intervals: {measured['not_calibrated']}."
        parts.append(element("p", text, class_="notice"))
    elif measured["split"] == FITTED_ON:
        text = "Temperature and intervals were fitted on this very split: they look better here than on a fresh one."
        parts.append(element("p", text, class_="notice"))
    charts = [_reliability(task, found) for task, found in measured["reliability"].items()]
    if measured["coverage"]:
        charts.append(_coverage(measured["coverage"]))
    if not charts:
        parts.append(element("p", "The split asks nothing that has a probability or an interval.", class_="notice"))
    return section("trust", "How far to trust it", *parts, element("div", *charts, class_="charts"))


def _reliability(task: str, found: Measured) -> Markup:
    of = "" if found["questions"] == found["of"] else f" (of {found['of']:,}, evenly thinned out)"
    before, after = found["calibration_error_before"], found["calibration_error_after"]
    caption = f"First answers to {found['questions']:,} questions{of}. "
    if found["temperature"] is None:
        caption += f"Expected calibration error {after:.4f}."
        keys = [("after", "as given"), ("ideal", "ideal")]
    else:
        caption += (
            f"Temperatures by position, around {found['temperature']:.2f}, fitted on valid, take the expected "
            f"calibration error from {before:.4f} to {after:.4f}."
        )
        keys = [("after", "calibrated"), ("before", "before"), ("ideal", "ideal")]
    title = f"{TITLES[task]}: are probabilities right?"
    return figure(reliability_chart(f"{task}-reliability", title, found), _captioned(title, caption), keys)


def _coverage(found: Measured) -> Markup:
    levels = found["levels"]
    nine = levels.get("0.9", {})
    caption = f"Intervals of {found['questions']:,} numbers."
    if nine.get("coverage") is not None:
        caption += f" At 90 % they hold {100 * nine['coverage']:.1f} % of the truths"
        if nine.get("mean_width") is not None:
            caption += f" and are {100 * nine['mean_width']:.1f} % of the relation’s range wide on average"
        caption += "."
    title = "Numbers: do intervals hold the truth?"
    chart = coverage_chart("coverage", title, levels)
    return figure(chart, _captioned(title, caption), [("after", "measured"), ("ideal", "promised")])


def _captioned(title: str, text: str) -> Markup:
    return joined([element("b", title), " ", text])


def answers_section(measured: Measured) -> Markup:
    """The ten answers it is surest of, and the ten it is least sure of."""
    found = measured["answers"]
    if found is None:
        return Markup("")
    of = "" if found["questions"] == found["of"] else f" of {found['of']:,}"
    what = "entity" if found["task"] == "link" else "relation"
    lead = (
        f"First answers to {found['questions']:,}{of} held-out questions for a missing {what}: one of each fact, and "
        f"at most {found['a_relation']} of a relation and position, so that the tables show more than one kind."
    )
    tables = (_answers(f"Ten {which} certain answers", found[which]) for which in ("most", "least"))
    return section("answers", "What it is sure of, and what not", *tables, lead=lead)


def _answers(title: str, rows: Sequence[Measured]) -> Markup:
    columns = [
        Column("question", "long"),
        Column("answer"),
        Column("probability", "number"),
        Column("", "bar"),
        Column("right?"),
    ]
    told = [
        Row([row["question"], row["answer"], percent(row["probability"]), share_bar(row["probability"]), _verdict(row)])
        for row in rows
    ]
    return table(title, columns, [RowGroup("", told)])


def _verdict(row: Measured) -> Markup:
    if row["correct"]:
        return element("span", "right", class_="right")
    return joined([element("span", "wrong", class_="wrong"), element("span", f"it is {row['truth']}", class_="truth")])


# Where the figures of a report are kept in a run, and what was kept there. No torch here: a page reads them too.

SCHEMA_VERSION = 2

Measurements = dict[str, Any]


def measurements_path(run: Path, split: str) -> Path:
    return run / f"measurements-{split}.json"


def kept_measurements(run: Path, split: str, weights: str | None) -> Measurements | None:
    """What was measured of the same weights before; None where nothing was, or by another version of hynt."""
    path = measurements_path(run, split)
    if weights is None or not path.exists():
        return None
    with whole_run():  # figures that somebody changed are not what was measured
        content = read_index(path)
    if content.get("schema_version") != SCHEMA_VERSION or content.get("weights") != weights:
        return None
    return content


@contextmanager
def shown_as_kept(run: Path) -> Iterator[None]:
    """Within the block kept figures are shown; a `DataError` where they are not of the kind that hynt keeps. The file's
    hash says that nobody slipped, not who wrote it.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        raise DataError(
            "the figures kept in the run are not those that hynt measures.",
            where=str(run),
            advice="Measure again: hynt report RUN --again.",
        ) from None


# How a run was measured, for the report and for the page of the service. No torch here.


def protocol_section(measured: Measured) -> Markup:
    """What a number needs beside it to be compared with another."""
    protocol = measured["evaluation"]["protocol"]
    reads, now = int(protocol["reads_of_split"]), int(measured.get("reads_now", protocol["reads_of_split"]))
    pairs: list[tuple[str, Content]] = [
        ("split asked", str(protocol["split"])),
        (
            "times this split was read",
            f"{now:,}" if now == reads else f"{now:,}; these figures are of reading {reads:,}",
        ),
        ("trained on", str(protocol["trained_on"])),
        ("numbers scaled on", str(protocol["scaled_on"])),
        ("known answers left out", str(protocol["filter"]).replace("+", ", ")),
        ("ties", str(protocol["ties"])),
        (
            "candidates",
            f"{protocol['candidates']['entities']:,} entities, {protocol['candidates']['relations']:,} relations",
        ),
        ("number scale", str(protocol["number_scale"])),
        ("precision", str(protocol["precision"])),
        ("seed", str(protocol["seed"])),
        ("epoch", str(protocol["epoch"])),
        ("hynt", str(protocol["hynt_version"])),
    ]
    lead = (
        "Every component of every fact of the split is hidden in turn and asked for. An answer’s rank is one more than "
        "the number of other candidates that score higher, plus half of those that score the same."
    )
    return section("protocol", "How it was measured", definitions(pairs), lead=lead)
