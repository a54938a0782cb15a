"""How a number moves over time: a run's answers along an axis, beside what the graph knows.

found = hynt.load("runs/first").trends(["Brazil", "India"], "total fertility rate")
found.to_pandas()
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hynt.asking.answers import NumberAnswer
from hynt.asking.candidates import CandidateMask
from hynt.asking.columns import AskedFacts
from hynt.asking.predictor import LEVEL, Predictor
from hynt.errors import UsageError
from hynt.graph.fact import as_pairs
from hynt.graph.fact_table import TAIL, FactTable, concatenate
from hynt.graph.lookup import NameLookup
from hynt.graph.sentences import format_quantity
from hynt.graph.units.conversion import display_of, with_display
from hynt.graph.vocabulary import Floats
from hynt.results import PlainValues, Table, arrow_table, box, notebook_table, quiet
from hynt.trends.plan import POINTS, PlannedSeries, TrendPlan, TrendPlanner

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("head_id", "head", "kind", "at", "at_text", "value", "split", "trained_on", "predicted", "low", "high")
"""Of the table that a trend makes: a row for each point of a curve, and one for each known value."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Answers to `n` questions, in the graph's unit."""

    value: Floats  # (n,)
    low: Floats | None  # (n,) ends of the intervals; None where nothing is known about errors
    high: Floats | None  # (n,)

    def take(self, places: slice) -> Predicted:
        """The answers to some of the questions, in their order."""
        ends = [None if end is None else end[places] for end in (self.low, self.high)]
        return Predicted(self.value[places], *ends)


@dataclass(frozen=True, eq=False)
class Series:
    """One head: the curve, and the values that the graph knows, each with the answer to its own question."""

    id: str
    name: str
    curve: Predicted  # (points,)
    at: Floats  # (n,) where each known value stands on the axis, ascending
    known: Floats  # (n,)
    split: tuple[str, ...]  # (n,)
    trained_on: NDArray[np.bool_]  # (n,) whether the run was trained on it
    predicted: Predicted  # (n,) what the run answers to each of these very facts, with all its qualifiers
    notes: tuple[str, ...]

    @property
    def covered(self) -> tuple[int, int] | None:
        """How many held-out values lie in their interval, and how many there are; None without intervals."""
        if self.predicted.low is None or self.predicted.high is None:
            return None
        held_out = ~self.trained_on
        inside = (self.predicted.low <= self.known) & (self.known <= self.predicted.high)
        return int((inside & held_out).sum()), int(held_out.sum())

    def mean_error(self, *, trained_on: bool) -> float | None:
        """The mean distance between known values and answers, of those trained on or of those held out."""
        chosen = self.trained_on if trained_on else ~self.trained_on
        return float(np.abs(self.known - self.predicted.value)[chosen].mean()) if chosen.any() else None


@dataclass(frozen=True, eq=False, repr=False)
class Trend(PlainValues, Table):
    """How one number of one or several heads moves along an axis: a table with a row for each point of a curve, and
    one for each known value.
    """

    relation: str
    relation_name: str
    unit: str
    over: str
    over_name: str
    over_unit: str
    condition: str  # the other qualifiers that the curves are asked with, in words; "" where there are none
    at: Floats  # (points,) where the curves were asked
    series: tuple[Series, ...]
    level: float
    interval_from: str  # as `NumberAnswer` has it; "" where there is no interval
    training_range: tuple[float, float] | None  # the relation's least and greatest number in training
    training_span: tuple[float, float] | None  # the part of the axis that training has values of the relation in
    notes: tuple[str, ...]

    def text(self, value: float) -> str:
        return format_quantity(value, self.unit)

    def at_text(self, at: float) -> str:
        """A place on the axis in words."""
        return format_quantity(at, self.over_unit)

    def rows(self) -> list[dict[str, Any]]:
        """The table, a row a dict with `COLUMNS`; None where a cell says nothing."""
        found = []
        for one in self.series:
            for place, at in enumerate(self.at.tolist()):
                found.append(self._row(one, "curve", at, one.curve, place))
            for place, at in enumerate(one.at.tolist()):
                of_known = (float(one.known[place]), one.split[place], bool(one.trained_on[place]))
                found.append(self._row(one, "known", at, one.predicted, place, of_known))
        return found

    def _row(
        self,
        one: Series,
        kind: str,
        at: float,
        answers: Predicted,
        place: int,
        known: tuple[float | None, str | None, bool | None] = (None, None, None),
    ) -> dict[str, Any]:
        ends = [None if end is None else float(end[place]) for end in (answers.low, answers.high)]
        cells = (one.id, one.name, kind, at, self.at_text(at), *known, float(answers.value[place]), *ends)
        return dict(zip(COLUMNS, cells, strict=True))

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Trend:
        """Reads what `to_dict` wrote."""
        series = [_series_from(one, found["rows"]) for one in found["heads"]]
        first = found["heads"][0]["id"]
        at = [row["at"] for row in found["rows"] if row["head_id"] == first and row["kind"] == "curve"]

        def span(low: str, high: str) -> tuple[float, float] | None:
            return None if found[low] is None else (found[low], found[high])

        return cls(
            found["relation"],
            found["relation_name"],
            with_display(found["unit"], found.get("display_unit", "")),
            found["over"],
            found["over_name"],
            with_display(found["over_unit"], found.get("over_display_unit", "")),
            found["condition"],
            np.array(at),
            tuple(series),
            found["level"],
            found["interval_from"],
            span("training_low", "training_high"),
            span("training_from", "training_to"),
            tuple(found["notes"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The trend as plain values that JSON can hold."""
        least, most = self.training_range or (None, None)
        start, end = self.training_span or (None, None)
        return {
            "relation": self.relation,
            "relation_name": self.relation_name,
            "unit": self.unit,
            "display_unit": display_of(self.unit),
            "over": self.over,
            "over_name": self.over_name,
            "over_unit": self.over_unit,
            "over_display_unit": display_of(self.over_unit),
            "condition": self.condition,
            "level": self.level,
            "interval_from": self.interval_from,
            "training_low": least,
            "training_high": most,
            "training_from": start,
            "training_to": end,
            "notes": list(self.notes),
            "heads": [_head_summary(one) for one in self.series],
            "rows": self.rows(),
        }

    def to_arrow(self) -> pa.Table:
        """An Arrow table with `COLUMNS`."""
        import pyarrow as pa

        texts = {"head_id", "head", "kind", "at_text", "split"}
        kinds = {name: pa.string() if name in texts else pa.float64() for name in COLUMNS} | {"trained_on": pa.bool_()}
        return arrow_table(self.rows(), pa.schema(list(kinds.items())))

    @property
    def title(self) -> str:
        """`total fertility rate over point in time, 1960 to 2024`."""
        span = f"{self.at_text(float(self.at[0]))} to {self.at_text(float(self.at[-1]))}"
        asked = f", asked with {self.condition}" if self.condition else ""
        return f"{self.relation_name} over {self.over_name}, {span}{asked}"

    def __repr__(self) -> str:
        heads = ", ".join(one.name for one in self.series)
        return (
            f"<trend of {heads}: {self.title}; {len(self.at)} points, {sum(len(one.at) for one in self.series)} known>"
        )

    def _repr_html_(self) -> str:
        columns = ["", self.at_text(float(self.at[0])), self.at_text(float(self.at[-1])), "known values", "held out"]
        rows = []
        for one in self.series:
            inside, held_out = one.covered or (None, int((~one.trained_on).sum()))
            covered = f"{held_out}" if inside is None or not held_out else f"{held_out}, {inside} inside the interval"
            ends = [self.text(float(f"{one.curve.value[place]:.4g}")) for place in (0, -1)]
            rows.append([one.name, *ends, f"{len(one.at):,}", covered])
        notes = [f"{one.name}: {note}" for one in self.series for note in one.notes]
        return box(self.title, notebook_table(columns, rows, numbers=(1, 2, 3)), quiet(*notes, *self.notes))


def _series_from(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Series:
    """A head's part of what `Trend.to_dict` wrote."""
    own = {kind: [row for row in rows if row["head_id"] == head["id"] and row["kind"] == kind] for kind in _KINDS}

    def predicted(kind: str) -> Predicted:
        ends = [
            None if any(row[end] is None for row in own[kind]) else np.array([row[end] for row in own[kind]], float)
            for end in ("low", "high")
        ]
        return Predicted(np.array([row["predicted"] for row in own[kind]], float), *ends)

    known = own["known"]
    return Series(
        head["id"],
        head["name"],
        predicted("curve"),
        np.array([row["at"] for row in known], float),
        np.array([row["value"] for row in known], float),
        tuple(row["split"] for row in known),
        np.array([row["trained_on"] for row in known], dtype=np.bool_),
        predicted("known"),
        tuple(head["notes"]),
    )


_KINDS = ("curve", "known")


def _head_summary(one: Series) -> dict[str, Any]:
    inside, held_out = one.covered or (None, int((~one.trained_on).sum()))
    return {
        "id": one.id,
        "name": one.name,
        "trained_on": int(one.trained_on.sum()),
        "held_out": held_out,
        "held_out_inside": inside,
        "mean_error_trained_on": one.mean_error(trained_on=True),
        "mean_error_held_out": one.mean_error(trained_on=False),
        "notes": list(one.notes),
    }


def trend(
    predictor: Predictor,
    heads: str | Sequence[str],
    relation: str,
    *,
    over: str | None = None,
    qualifiers: Mapping[str, Any] | Sequence[Any] = (),
    start: Any = None,
    end: Any = None,
    points: int = POINTS,
    level: float = LEVEL,
    names: NameLookup | None = None,
) -> Trend:
    """A number of some heads along a qualifier, which is the date that the relation's facts carry most unless named.

    `qualifiers` choose a series (`[("sex", "female")]`); without them it is the one with the most known values.
    """
    named = [heads] if isinstance(heads, str) else heads
    pairs = as_pairs(qualifiers)
    try:
        planner = TrendPlanner(predictor.graph, names or predictor.names)
        plan = planner.plan(named, relation, over, pairs, start, end, points)
    except UsageError as problem:  # the axis is the first qualifier of each question, and the caller gave the others
        given = re.sub(r"qualifier (\d+)$", lambda found: f"qualifier {max(1, int(found[1]) - 1)}", problem.where)
        raise problem.at(given) from None
    return trend_of(predictor, plan, level)


def trend_of(predictor: Predictor, plan: TrendPlan, level: float = LEVEL) -> Trend:
    # One question is asked as any other: it is refused where it must be, and says what to know of the answers. It is
    # the first, or the nearest within the training values: what lies beyond is told apart.
    span = _training_span(predictor, plan)
    table = plan.asked.table
    if span is not None:
        number = table.qualifier_number.copy()
        number[0] = min(max(number[0], span[0]), span[1])  # the first qualifier is the axis
        table = replace(table, qualifier_number=number)
    first = predictor.answer(replace(plan.asked, table=table), CandidateMask(None, False), 1, level)
    answer = first[0]
    assert isinstance(answer, NumberAnswer)
    curves = predicted_tails(predictor, concatenate([one.curve for one in plan.series]), level)
    stored = concatenate([one.known.table for one in plan.series])
    known = predicted_tails(predictor, stored, level, stored=True) if len(stored) else curves.take(slice(0))
    series, at, place = [], 0, 0
    for one in plan.series:
        points, values = slice(at, at + len(one.curve)), slice(place, place + len(one.known.table))
        series.append(_series(predictor, one, curves.take(points), known.take(values)))
        at, place = points.stop, values.stop
    graph = predictor.graph
    relation, over = graph.relations[plan.relation], graph.relations[plan.over]
    notes = [*plan.notes, *first.notes]
    if span is not None and (plan.at[0] < span[0] or plan.at[-1] > span[1]):
        ends = " to ".join(format_quantity(end, over.unit) for end in span)
        notes.append(f"training has values from {ends} only: the curve beyond is a guess")
    return Trend(
        relation.name,
        graph.relation_labels[plan.relation],
        relation.unit,
        over.name,
        graph.relation_labels[plan.over],
        over.unit,
        plan.condition,
        plan.at,
        tuple(series),
        level,
        answer.interval_from,
        answer.training_range,
        span,
        tuple(notes),
    )


def _training_span(predictor: Predictor, plan: TrendPlan) -> tuple[float, float] | None:
    """From the first to the last place on the axis with a training fact of the relation, of whatever head."""

    found = []
    for name in predictor.loaded.known_splits:
        table = predictor.graph.split(name)
        own = table.relation[table.qualifier_owner()] == plan.relation
        found.append(table.qualifier_number[own & (table.qualifier_relation == plan.over)])
    at = np.concatenate(found)
    return (float(at.min()), float(at.max())) if len(at) else None


def _series(predictor: Predictor, planned: PlannedSeries, curve: Predicted, predicted: Predicted) -> Series:

    trained_on = predictor.loaded.known_splits
    known = planned.known
    return Series(
        predictor.graph.vocabulary.entities[planned.head],
        predictor.graph.entity_labels[planned.head],
        curve,
        known.at,
        known.table.tail_number.copy(),
        known.split,
        np.array([split in trained_on for split in known.split], dtype=np.bool_),
        predicted,
        planned.notes,
    )


def predicted_tails(predictor: Predictor, table: FactTable, level: float, *, stored: bool = False) -> Predicted:
    """What a run says to each fact of a table with its tail, a number, hidden; scored together. `stored`: these are
    facts of the graph.
    """
    from hynt.asking.refusals import non_finite

    count, is_number = len(table), predictor.graph.vocabulary.relation_is_number
    asked = AskedFacts.of_triplets(table, np.full(count, TAIL, dtype=np.int64), is_number)
    found = predictor.question_batch(asked, stored=stored).numbers(
        np.arange(count, dtype=np.int64), level, extrapolating=True
    )
    if not found.is_finite.all():
        raise non_finite(predictor.loaded, "a question of the trend")
    if not found.has_interval.all():
        return Predicted(found.value, None, None)
    return Predicted(found.value, found.low, found.high)
