"""What a trend asks: the same number of one or several heads at many points in time, beside what the graph knows of it.
No torch here.

Facts of one head may come in several series: life expectancy of women, of men, of all. The entities among their other
qualifiers tell the series apart; the one with the most values is taken, and the rest is counted and named. Numbers
among them (a team's points beside its rank) change from fact to fact: they tell no series apart, and the curve is asked
without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.columns import AskedFact
from hynt.asking.question import ask
from hynt.asking.written import number_for
from hynt.errors import UsageError, located
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import NameLookup
from hynt.graph.sentences import BLANK, format_quantity, pair_texts

EntityQualifiers: TypeAlias = frozenset[tuple[int, int]]
"""Qualifiers with entities: relation and entity ids."""

NumberQualifiers: TypeAlias = frozenset[tuple[int, float]]
"""Qualifiers with numbers: relation ids and values."""

_SERIES_NAMED = 3


@dataclass(frozen=True, eq=False)
class KnownValues:
    """The facts of one head and one relation that carry the axis once, earliest first."""

    table: FactTable  # (n,)
    at: NDArray[np.float64]  # (n,) where each stands on the axis
    split: tuple[str, ...]  # (n,)
    pairs: tuple[EntityQualifiers, ...]  # (n,) the entities among the other qualifiers of each
    numbers: tuple[NumberQualifiers, ...]  # (n,) the numbers among them
    without: int  # facts that do not carry the axis, or several times

    def take(self, rows: Sequence[int]) -> KnownValues:
        """Some of them, in this order."""
        index = np.array(rows, dtype=np.int64)
        return KnownValues(
            self.table.take(index),
            self.at[index],
            tuple(self.split[row] for row in rows),
            tuple(self.pairs[row] for row in rows),
            tuple(self.numbers[row] for row in rows),
            self.without,
        )

    def of_series(self, pairs: EntityQualifiers, numbers: NumberQualifiers) -> KnownValues:
        """Those with just these entities, and at least these numbers, among their other qualifiers."""
        return self.take(
            [row for row in range(len(self.at)) if self.pairs[row] == pairs and numbers <= self.numbers[row]]
        )


def known_values(graph: KnowledgeGraph, head: int, relation: int, over: int) -> KnownValues:
    """What all splits of the graph hold."""
    tables, splits = [], []
    for name, table in graph.splits.items():
        mine = table.where((table.head == head) & (table.relation == relation))
        tables.append(mine)
        splits += [name] * len(mine)
    table = concatenate(tables)
    owner, is_over = table.qualifier_owner(), table.qualifier_relation == over
    once = np.bincount(owner[is_over], minlength=len(table)) == 1
    at = np.zeros(len(table))
    at[owner[is_over]] = table.qualifier_number[is_over]
    order = np.flatnonzero(once)[np.argsort(at[once], kind="stable")].astype(np.int64)
    kept = table.take(order)
    parts = [other_qualifiers(kept, row, graph, over) for row in range(len(kept))]
    return KnownValues(
        kept,
        at[order],
        tuple(splits[row] for row in order),
        tuple(pairs for pairs, _ in parts),
        tuple(numbers for _, numbers in parts),
        len(table) - len(order),
    )


def other_qualifiers(
    table: FactTable, row: int, graph: KnowledgeGraph, over: int
) -> tuple[EntityQualifiers, NumberQualifiers]:
    """The qualifiers of one fact besides the axis: those with entities, and those with numbers."""
    is_number = graph.vocabulary.relation_is_number
    slots = range(int(table.offsets[row]), int(table.offsets[row + 1]))
    of = [(slot, int(table.qualifier_relation[slot])) for slot in slots]
    pairs = frozenset((one, int(table.qualifier_entity[slot])) for slot, one in of if not is_number[one])
    numbers = frozenset(
        (one, float(table.qualifier_number[slot])) for slot, one in of if is_number[one] and one != over
    )
    return pairs, numbers


def usual_series(graph: KnowledgeGraph, known: Sequence[KnownValues]) -> tuple[list[tuple[int, int]], list[str]]:
    """The series with the most values of all heads together, and a word on the others."""
    counted = Counter(pairs for one in known for pairs in one.pairs)
    if not counted:
        return [], []
    best = max(counted, key=lambda pairs: (counted[pairs], -len(pairs), sorted(pairs, reverse=True)))
    others = [pairs for pairs, _ in counted.most_common() if pairs != best]
    if not others:
        return sorted(best), []
    shown = "; ".join(_qualifiers_text(graph, pairs) for pairs in others[:_SERIES_NAMED])
    more = "; …" if len(others) > _SERIES_NAMED else ""
    count = sum(counted[pairs] for pairs in others)
    values = "value" if count == 1 else "values"
    return sorted(best), [
        f"{count} known {values} of other series left out ({shown}{more}); a qualifier chooses another series"
    ]


def _qualifiers_text(graph: KnowledgeGraph, pairs: EntityQualifiers) -> str:
    if not pairs:
        return "without further qualifier"
    labels, entities = graph.relation_labels, graph.entity_labels
    return ", ".join(f"{labels[relation]} {entities[entity]}" for relation, entity in sorted(pairs))


POINTS = 100
MOST_POINTS = 10_000
MOST_HEADS = 64


@dataclass(frozen=True, eq=False)
class PlannedSeries:
    """The questions about one head, and what the graph knows of it."""

    head: int
    curve: FactTable  # (points,) a filler in each tail
    known: KnownValues  # those of this series
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TrendPlan:
    """All questions of a trend."""

    relation: int
    over: int
    at: NDArray[np.float64]  # (points,) where the curve is asked
    asked: AskedFact  # the first of these questions
    condition: str  # the other qualifiers of the curve in words; "" where there are none
    series: tuple[PlannedSeries, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TrendPlanner:
    """Chooses what to ask of a graph, whose names are looked up in `names`."""

    graph: KnowledgeGraph
    names: NameLookup

    def plan(
        self,
        heads: Sequence[str],
        relation: str,
        over: str | None = None,
        qualifiers: Sequence[Any] = (),
        start: Any = None,
        end: Any = None,
        points: int = POINTS,
    ) -> TrendPlan:
        """Resolves names and dates, finds known values, and chooses what to ask. What cannot be is a `UsageError`."""
        _check_size(heads, points)
        identity = self._number_relation(relation)
        over_identity = self._over(identity, over)
        with located("head"):
            ids = [self.names.entity(head, "head", identity) for head in heads]
        if len(set(ids)) < len(ids):
            raise UsageError("a head was given twice.", where="heads", advice="Name each head once.")
        known = [known_values(self.graph, head, identity, over_identity) for head in ids]
        chosen, notes = ([], []) if qualifiers else usual_series(self.graph, known)
        names = self.graph.vocabulary.entities
        usual = [(self.graph.relations[one].name, names[other]) for one, other in chosen]
        given = list(qualifiers) or usual

        def asked(head: int, at: float) -> AskedFact:
            pairs = [(self.graph.relations[over_identity].name, at), *given]
            return ask(self.graph, self.graph.vocabulary.entities[head], relation, BLANK, pairs, self.names)

        # Asked anywhere on the axis a question says which other qualifiers its series has.
        question = asked(ids[0], 1.0).table
        self._refuse_over_twice(question, over_identity)
        kind = other_qualifiers(question, 0, self.graph, over_identity)
        at = self._axis([one.of_series(*kind) for one in known], identity, over_identity, start, end, points)
        first = [asked(head, float(at[0])) for head in ids]
        series = tuple(
            self._series(head, one, one.of_series(*kind), question.table, at, over_identity)
            for head, one, question in zip(ids, known, first, strict=True)
        )
        condition = ", ".join(pair_texts(first[0].words)[1:])  # the first qualifier is the axis
        return TrendPlan(identity, over_identity, at, first[0], condition, series, tuple(notes))

    def _number_relation(self, relation: str) -> int:
        with located("relation"):
            found = self.names.relation(relation)
        if not self.graph.vocabulary.relation_is_number[found]:
            raise UsageError(
                f"{self.graph.relation_labels[found]!r} holds entities, and a trend is one of numbers.",
                where="relation",
                advice="Name a relation that holds numbers; `hynt data stats` lists them.",
            )
        return found

    def _over(self, relation: int, over: str | None) -> int:
        """The qualifier that is the axis: the one named, else the date that the relation's facts carry most."""
        carried = self._carried(relation)
        label, labels = self.graph.relation_labels[relation], self.graph.relation_labels
        if over is not None:
            with located("over"):
                found = self.names.relation(over)
            if not self.graph.vocabulary.relation_is_number[found]:
                raise UsageError(
                    f"{labels[found]!r} holds entities, and an axis needs numbers.",
                    where="over",
                    advice=self._offer(carried),
                )
            if not carried[found]:
                raise UsageError(
                    f"no fact of {label!r} carries the qualifier {labels[found]!r}.",
                    where="over",
                    advice=self._offer(carried),
                )
            return found
        dates = [one for one in carried if self.graph.relations[one].unit == DATE_UNIT]
        if not dates:
            raise UsageError(
                f"no fact of {label!r} carries a date as a qualifier.", where="over", advice=self._offer(carried)
            )
        return max(dates, key=lambda one: (carried[one], -one))

    def _carried(self, relation: int) -> Counter[int]:
        """How many facts of a relation carry each qualifier with numbers."""
        found: Counter[int] = Counter()
        for table in self.graph.splits.values():
            own = table.relation[table.qualifier_owner()] == relation
            found.update(table.qualifier_relation[own].tolist())
        is_number = self.graph.vocabulary.relation_is_number
        return Counter({one: count for one, count in found.items() if is_number[one]})

    def _offer(self, carried: Counter[int]) -> str:
        if not carried:
            return "Its facts carry no numbers at all: choose another relation."
        shown = ", ".join(repr(self.graph.relation_labels[one]) for one, _ in carried.most_common(5))
        return f"Its facts carry these numbers: {shown}. Name one of them as the axis."

    def _axis(
        self, values: Sequence[KnownValues], relation: int, over: int, start: Any, end: Any, points: int
    ) -> NDArray[np.float64]:
        """Where the curve is asked: over the known values of the heads, else over those of the whole relation."""
        known = np.concatenate([one.at for one in values])
        if len(np.unique(known)) < 2:
            tables = self.graph.splits.values()
            known = np.concatenate(
                [
                    table.qualifier_number[
                        (table.relation[table.qualifier_owner()] == relation) & (table.qualifier_relation == over)
                    ]
                    for table in tables
                ]
            )
        named = self.graph.relations[over]
        low = float(known.min()) if start is None else number_for(named, start, "from").value
        high = float(known.max()) if end is None else number_for(named, end, "to").value
        if low == high and (start is None or end is None):
            raise UsageError(
                f"all that is known is at {format_quantity(low, named.unit)}, and a trend needs a span.",
                where="from, to",
                advice="Say where it starts and ends.",
            )
        if not low < high:
            raise UsageError(
                f"the trend would go from {format_quantity(low, named.unit)} to {format_quantity(high, named.unit)}.",
                where="from, to",
                advice="Let it end after it starts.",
            )
        return np.linspace(low, high, points)

    def _refuse_over_twice(self, table: FactTable, over: int) -> None:
        if int((table.qualifier_relation == over).sum()) > 1:
            raise UsageError(
                f"{self.graph.relation_labels[over]!r} is the axis, and was given as a qualifier as well.",
                where="qualifier",
                advice="Leave it out, or choose another axis.",
            )

    def _series(
        self, head: int, every: KnownValues, mine: KnownValues, question: FactTable, at: NDArray[np.float64], over: int
    ) -> PlannedSeries:
        notes = []
        label = self.graph.relation_labels[over]
        if not len(mine.at):
            notes.append("the graph knows no such value")
        if every.without:
            notes.append(f"{_values(every.without)} without just one {label!r} left out")
        inside = [row for row, place in enumerate(mine.at.tolist()) if at[0] <= place <= at[-1]]
        if len(inside) < len(mine.at):
            notes.append(f"{_values(len(mine.at) - len(inside))} beyond the axis left out")
            mine = mine.take(inside)
        numbers = other_qualifiers(question, 0, self.graph, over)[1]
        free = [own - numbers for own in mine.numbers]
        if any(free):
            listed = ", ".join(
                repr(self.graph.relation_labels[one]) for one in sorted({one for own in free for one, _ in own})
            )
            count = sum(map(bool, free))
            notes.append(f"{count} of {len(free)} known values carry {listed} as well: the curve is asked without")
        return PlannedSeries(head, _repeated(question, at), mine, tuple(notes))


def _repeated(question: FactTable, at: NDArray[np.float64]) -> FactTable:
    """The one question at every point of the axis, which is its first qualifier."""
    table = question.take(np.zeros(len(at), dtype=np.int64))
    width = question.qualifier_total
    number, literal = table.qualifier_number.copy(), table.qualifier_literal.to_pylist()
    number[::width] = at
    literal[::width] = [repr(float(one)) for one in at]
    return replace(table, qualifier_number=number, qualifier_literal=pa.array(literal, type=pa.string()))


def _values(count: int) -> str:
    return f"{count} known value{'' if count == 1 else 's'}"


def _check_size(heads: Sequence[str], points: int) -> None:
    if isinstance(heads, str) or not heads:
        raise UsageError("a trend needs at least one head.", where="heads", advice="Name one or several entities.")
    if len(heads) > MOST_HEADS:
        raise UsageError(f"{len(heads)} heads are too many.", where="heads", advice=f"Name at most {MOST_HEADS}.")
    if not 2 <= points <= MOST_POINTS:
        raise UsageError(
            f"a curve cannot have {points} points.", where="points", advice=f"Ask for 2 to {MOST_POINTS:,}."
        )
