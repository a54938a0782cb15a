"""A question: a fact with one blank, written as a person writes it and resolved against a graph. No torch here.

ask(graph, head="Japan", relation="population", tail="?", qualifiers=[("point in time", "1995-06")])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.written_numbers import fits, is_written_number, number_for
from hynt.errors import UsageError
from hynt.graph.components import ENTITY_KIND, HEAD, NUMBER_KIND, RELATION, RELATION_KIND, TAIL, position_name
from hynt.graph.fact import Number
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition, NameLookup
from hynt.graph.sentences import format_quantity

BLANK = "?"
"""What stands where the answer goes."""

_FILLER = 1.0
"""The number in a blank that nobody reads; above zero, so that a log scale can take it."""


@dataclass(frozen=True, eq=False)
class AskedFact:
    """A question about one graph, with a filler in its blank.

    Where a relation is hidden beside a number there is a row for each relation the number can belong to, because the
    number means something only on that relation's scale. Every other question is one row.
    """

    table: FactTable  # (rows,)
    position: int  # of the blank
    kind: int  # of the answer: ENTITY_KIND, RELATION_KIND or NUMBER_KIND
    relation: int | None  # the relation beside the blank; None where the blank is a relation
    tried: NDArray[np.int64] | None  # (rows,) the relation of each row, where one is hidden beside a number
    text: str  # the question on one line

    @property
    def place(self) -> str:
        """Where the blank is, in words."""
        return position_name(self.position)


def ask(
    graph: KnowledgeGraph,
    head: Any = None,
    relation: Any = None,
    tail: Any = None,
    qualifiers: Sequence[Any] = (),
    names: NameLookup | None = None,
) -> AskedFact:
    """Resolves names, ids, units and dates. What cannot be asked is a `UsageError`."""
    return _Asking(graph, names or NameLookup(graph)).asked([head, relation, tail], _pairs(qualifiers))


def pair_from_text(text: str, names: NameLookup) -> tuple[str, str]:
    """A qualifier written as `relation=value`; where there are several "=", the first that ends a known relation."""
    cuts = [place for place, letter in enumerate(text) if letter == "="]
    if not cuts:
        raise UsageError(
            f"{text[:60]!r} is no qualifier.",
            where="--qualifier",
            advice="Write it as relation=value, with '?' for what is asked.",
        )
    for cut in cuts if len(cuts) > 1 else ():
        if text[:cut] == BLANK or _is_relation(text[:cut], names):
            return text[:cut], text[cut + 1 :]
    return text[: cuts[0]], text[cuts[0] + 1 :]


def _is_relation(name: str, names: NameLookup) -> bool:
    try:
        names.relation(name)
    except UsageError:
        return False
    return True


def _pairs(qualifiers: Sequence[Any]) -> list[tuple[Any, Any]]:
    if isinstance(qualifiers, str):
        raise UsageError(f"{qualifiers!r:.60} is no list of qualifiers.", advice="Give pairs (relation, value).")
    found = []
    for number, pair in enumerate(qualifiers, 1):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(
                f"{pair!r:.60} is no qualifier.", where=f"qualifier {number}", advice="Give pairs (relation, value)."
            )
        found.append((pair[0], pair[1]))
    return found


@dataclass(frozen=True)
class _Asking:
    graph: KnowledgeGraph
    names: NameLookup

    def asked(self, triplet: list[Any], pairs: list[tuple[Any, Any]]) -> AskedFact:
        parts = [*triplet, *(part for pair in pairs for part in pair)]
        position = _blank(parts)
        tried = self._tried(parts, position)
        relations = self._relations(parts, position, tried)
        rows = len(tried) if tried is not None else 1
        columns = [self._values(parts, relations, place, position, tried) for place in (TAIL, *range(4, len(parts), 2))]
        first = int(relations[0][0]) if position != RELATION else None
        head = 0 if position == HEAD else self._entity(parts[HEAD], "head", first, HEAD)
        of_pairs = relations[1:]
        count = len(of_pairs)
        table = FactTable(
            np.full(rows, head, dtype=np.int32),
            relations[0],
            columns[0].entity,
            columns[0].number,
            columns[0].literal,
            np.arange(rows + 1, dtype=np.int64) * count,
            _interleaved(of_pairs, np.int32),
            _interleaved([column.entity for column in columns[1:]], np.int32),
            _interleaved([column.number for column in columns[1:]], np.float64),
            pa.array([column.literal[row].as_py() for row in range(rows) for column in columns[1:]], type=pa.string()),
        )
        beside = None if position % 2 else int(relations[0 if position <= TAIL else (position - 2) // 2][0])
        kind = self._kind(position, beside)
        return AskedFact(table, position, kind, beside, tried, self._text(table, position, parts))

    def _kind(self, position: int, beside: int | None) -> int:
        if beside is None:
            return RELATION_KIND
        if position == HEAD:
            return ENTITY_KIND
        return NUMBER_KIND if self.graph.vocabulary.relation_is_number[beside] else ENTITY_KIND

    def _tried(self, parts: list[Any], position: int) -> NDArray[np.int64] | None:
        """The relations that a number beside a hidden relation can belong to; None where that is not the question."""
        if position % 2 == 0:
            return None
        written = parts[position + 1]
        if isinstance(written, str) and (self._is_entity(written) or not is_written_number(written)):
            return None
        found = [
            number
            for number, relation in enumerate(self.graph.relations)
            if relation.kind == "number" and fits(relation, written)
        ]
        if not found:
            raise UsageError(
                f"no relation of this graph holds numbers such as {written!r:.60}.",
                where=_where(position + 1),
                advice="Give an entity, or a number in a unit that the graph has.",
            )
        return np.array(found, dtype=np.int64)

    def _is_entity(self, written: str) -> bool:
        return written in self.graph.vocabulary.entity_ids or written in self.graph.entity_labels

    def _relations(self, parts: list[Any], position: int, tried: NDArray[np.int64] | None) -> list[NDArray[np.int32]]:
        """For the triplet and each qualifier, (rows,) relation ids; a filler of the right kind in the blank."""
        is_number = self.graph.vocabulary.relation_is_number
        rows = 1 if tried is None else len(tried)
        found = []
        for place in range(1, len(parts), 2):
            if place != position:
                name = parts[place]
                if not isinstance(name, str):
                    raise UsageError(
                        f"the relation is {name!r:.40}, which is not text.",
                        where=_where(place),
                        advice="Give a relation's id or name.",
                    )
                found.append(np.full(rows, self._located(lambda: self.names.relation(name), place), dtype=np.int32))  # noqa: B023 - called at once
            elif tried is not None:
                found.append(tried.astype(np.int32))
            else:
                fillers = np.flatnonzero(~is_number)
                if not len(fillers):
                    raise UsageError("no relation of this graph holds entities.", where=_where(place))
                found.append(np.full(1, fillers[0], dtype=np.int32))
        return found

    def _values(
        self,
        parts: list[Any],
        relations: list[NDArray[np.int32]],
        place: int,
        position: int,
        tried: NDArray[np.int64] | None,
    ) -> _Column:
        """The tails, or the values of one qualifier, of all rows."""
        relation = relations[(place - 2) // 2]
        rows = 1 if tried is None else len(tried)
        is_number = bool(self.graph.vocabulary.relation_is_number[relation[0]])
        if place == position:
            literal = repr(_FILLER) if is_number else None
            return _Column.same(rows, 0, _FILLER if is_number else 0.0, literal)
        if not is_number:
            where: EntityPosition = "tail" if place == TAIL else "value"
            hidden = place - 1 == position
            entity = self._entity(parts[place], where, None if hidden else int(relation[0]), place)
            return _Column.same(rows, entity, 0.0, None)
        numbers = [number_for(self.graph.relations[one], parts[place], _where(place)) for one in relation.tolist()]
        return _Column.of(numbers)

    def _entity(self, written: Any, where: EntityPosition, relation: int | None, place: int) -> int:
        if not isinstance(written, str):
            raise UsageError(
                f"the {position_name(place)} is {written!r:.40}, and an entity is wanted there.",
                where=_where(place),
                advice="Give an entity's id or name.",
            )
        return int(self._located(lambda: self.names.entity(written, where, relation), place))

    def _located(self, find: Any, place: int) -> Any:
        """A look-up whose refusal says which part of the question it is about."""
        try:
            return find()
        except UsageError as problem:
            raise UsageError(problem.what, where=_where(place), advice=problem.advice) from None

    def _text(self, table: FactTable, position: int, parts: list[Any]) -> str:
        """Japan · population · ? (point in time 1995-06-01)"""

        def relation(place: int, identity: int) -> str:
            return BLANK if place == position else self.graph.relation_labels[identity]

        def value(place: int, identity: int, entity: int, number: float) -> str:
            if place == position:
                return BLANK
            named = self.graph.relations[identity]
            if named.kind == "entity":
                return self.graph.entity_labels[entity]
            return str(parts[place]) if place - 1 == position else format_quantity(number, named.unit)

        head = BLANK if position == HEAD else self.graph.entity_labels[int(table.head[0])]
        first = int(table.relation[0])
        tail = value(TAIL, first, int(table.tail_entity[0]), float(table.tail_number[0]))
        line = f"{head} · {relation(RELATION, first)} · {tail}"
        pairs = []
        for index in range(int(table.offsets[1])):
            own = int(table.qualifier_relation[index])
            entity, number = int(table.qualifier_entity[index]), float(table.qualifier_number[index])
            pairs.append(f"{relation(3 + 2 * index, own)} {value(4 + 2 * index, own, entity, number)}")
        return f"{line} ({'; '.join(pairs)})" if pairs else line


@dataclass(frozen=True)
class _Column:
    """The tails, or the values of one qualifier, of all rows of a question."""

    entity: NDArray[np.int32]
    number: NDArray[np.float64]
    literal: pa.StringArray

    @classmethod
    def same(cls, rows: int, entity: int, number: float, literal: str | None) -> _Column:
        return cls(np.full(rows, entity, np.int32), np.full(rows, number), pa.array([literal] * rows, type=pa.string()))

    @classmethod
    def of(cls, numbers: list[Number]) -> _Column:
        return cls(
            np.zeros(len(numbers), np.int32),
            np.array([number.value for number in numbers]),
            pa.array([number.literal for number in numbers], type=pa.string()),
        )


def _interleaved(columns: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    """Row by row: the first qualifier of row 0, its second, …; the first qualifier of row 1, …"""
    return np.stack(columns, axis=1).reshape(-1).astype(kind) if columns else np.zeros(0, dtype=kind)


def _blank(parts: list[Any]) -> int:
    """The position of the one blank."""
    if all(part is None or part == "" for part in parts):
        raise UsageError("the question is empty.", advice=_HOW)
    for place, part in enumerate(parts):
        if part is None or (isinstance(part, str) and not part.strip()):
            _refuse_missing(place)
    blanks = [place for place, part in enumerate(parts) if isinstance(part, str) and part == BLANK]
    if not blanks:
        raise UsageError("the question has no blank.", advice=_HOW)
    if len(blanks) > 1:
        listed = " and ".join(position_name(place) for place in blanks)
        raise UsageError(f"the question has {len(blanks)} blanks: {listed}.", advice="Ask for one component at a time.")
    return blanks[0]


def _refuse_missing(place: int) -> NoReturn:
    raise UsageError(f"the question has no {position_name(place)}.", where=_where(place), advice=_HOW)


def _where(place: int) -> str:
    return position_name(place)


_HOW = "Give head, relation and tail, with '?' for the one component that is asked."
