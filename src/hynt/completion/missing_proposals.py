"""Proposed facts in columns, their order, and the rows of their file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.columns import FULL_SCHEMA
from hynt.graph.fact import Fact, Number
from hynt.graph.fact_table import (
    HEAD,
    NUMBER_KIND,
    RELATION,
    TAIL,
    FactTable,
    component_starts,
    concatenate,
    empty_table,
)
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.sentences import Sentences, format_estimate, sentence
from hynt.graph.vocabulary import Flags, Floats, Ids

PROPOSAL_SCHEMA = pa.schema(
    [
        pa.field("rank", pa.int64(), nullable=False),  # from 1
        *FULL_SCHEMA,  # the fact by its ids, as `hynt data import` reads it
        ("head_label", pa.string()),
        ("relation_label", pa.string()),
        ("tail_label", pa.string()),  # the entity's name, or the number with its unit
        ("sentence", pa.string()),  # the whole fact on one line
        ("probability", pa.float64()),  # that the fact is true; of a number, that its interval holds it
        ("answer_probability", pa.float64()),  # that the answer is right if there is one, as `predict` says
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("relative_width", pa.float64()),  # of the interval, in widths of the middle of the relation's numbers
        ("share", pa.float64()),  # of peers that have the relation
        ("peers", pa.int64()),
    ]
)


@dataclass(frozen=True, eq=False)
class ProposedFacts:
    """`n` facts that may be missing."""

    table: FactTable  # (n,) the questions: their tails are fillers
    entity: Ids  # (n,) the tail, where it is an entity
    value: Floats  # (n,) the tail, where it is a number
    low: Floats  # (n,) of the number's interval
    high: Floats  # (n,)
    width: Floats  # (n,) of the interval, relative; 0 for an entity
    answer: Floats  # (n,) the probability of the answer if there is one
    share: Floats  # (n,)
    peers: Ids  # (n,)
    is_number: NDArray[np.bool_]  # (n,)
    probability: Floats  # (n,) that the fact is true

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def none(cls) -> ProposedFacts:
        """An empty table of proposals, to which others are joined."""
        ids, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        flags = np.zeros(0, dtype=np.bool_)
        return cls(empty_table(), ids, numbers, numbers, numbers, numbers, numbers, numbers, ids, flags, numbers)

    def take(self, rows: Ids) -> ProposedFacts:
        """The proposals with these row numbers, in this order."""
        rest = {field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "table"}
        return replace(self, table=self.table.take(rows), **rest)

    def where(self, keep: NDArray[np.bool_]) -> ProposedFacts:
        """Those where `keep`, (n,), is true."""
        return self.take(np.flatnonzero(keep).astype(np.int64))

    def joined(self, other: ProposedFacts) -> ProposedFacts:
        """The proposals of both, one after the other."""
        rest = {
            field.name: np.concatenate([getattr(self, field.name), getattr(other, field.name)])
            for field in fields(self)
            if field.name != "table"
        }
        return replace(self, table=concatenate([self.table, other.table]), **rest)

    def first(self, count: int) -> ProposedFacts:
        """The best: likelier ones first, then narrower intervals, then those that more peers have."""
        order = np.lexsort((self.table.head, self.table.relation, -self.share, self.width, -self.probability))
        return self.take(order[:count].astype(np.int64))

    def at_most(self, count: int) -> ProposedFacts:
        """The best of each relation."""
        ordered = self.first(len(self))
        relation = ordered.table.relation
        order = np.argsort(relation, kind="stable")
        starts = np.searchsorted(relation[order], relation[order])
        kept = order[np.arange(len(order)) - starts < count]
        return ordered.take(np.sort(kept).astype(np.int64))

    def facts(self, graph: KnowledgeGraph) -> list[Fact]:
        """The proposed facts, with ids as written and numbers in the graph's units."""
        found = []
        for number, fact in enumerate(self.table.facts(graph.vocabulary)):
            tail: str | Number = graph.vocabulary.entities[int(self.entity[number])]
            if self.is_number[number]:
                value = float(self.value[number])
                tail = Number(value, repr(value), graph.relations[int(self.table.relation[number])].unit)
            found.append(fact._replace(tail=tail))
        return found

    def rows(self, graph: KnowledgeGraph) -> pa.Table:
        """A table of `PROPOSAL_SCHEMA`."""
        sentences = Sentences(graph)
        rows = [self._row(number, fact, sentences) for number, fact in enumerate(self.facts(graph))]
        return pa.Table.from_pylist(rows, schema=PROPOSAL_SCHEMA)

    def _row(self, number: int, fact: Fact, sentences: Sentences) -> dict[str, Any]:
        is_number, words = bool(self.is_number[number]), sentences.words(fact)
        if isinstance(fact.tail, Number):
            ends = (float(self.low[number]), float(self.high[number]))
            words[TAIL] = format_estimate(fact.tail.value, fact.tail.unit, ends, None)
        pairs = [{"relation": relation, **_columns(value)} for relation, value in fact.qualifiers]
        tail = {f"tail_{name}": value for name, value in _columns(fact.tail).items()}
        return {
            "rank": number + 1,
            "head": fact.head,
            "relation": fact.relation,
            **tail,
            "qualifiers": pairs,
            "head_label": words[HEAD],
            "relation_label": words[RELATION],
            "tail_label": words[TAIL],
            "sentence": sentence(words),
            "probability": float(self.probability[number]),
            "answer_probability": float(self.answer[number]),
            "low": float(self.low[number]) if is_number else None,
            "high": float(self.high[number]) if is_number else None,
            "relative_width": float(self.width[number]) if is_number else None,
            "share": float(self.share[number]),
            "peers": int(self.peers[number]),
        }


def _columns(value: str | Number) -> dict[str, Any]:
    if isinstance(value, Number):
        return {"entity": None, "number": value.value, "literal": value.literal, "unit": value.unit}
    return {"entity": value, "number": None, "literal": None, "unit": None}


# Whether facts that were hidden confirm what was proposed: how good proposals are, measured on the graph itself.


def confirmed(proposals: ProposedFacts, graph: KnowledgeGraph, hidden: Collection[str]) -> tuple[Flags, Flags]:
    """(n,) whether the hidden splits say anything of a proposal's head and relation; (n,) whether they agree.

    An entity agrees where they hold the same head, relation and tail, whatever the qualifiers; a number where they hold
    one for the very same question that lies inside the interval.
    """
    if not hidden:
        return np.zeros(len(proposals), dtype=np.bool_), np.zeros(len(proposals), dtype=np.bool_)
    tables = {name: table for name, table in graph.splits.items() if name in hidden}
    facts, width = concatenate(list(tables.values())), graph.vocabulary.relation_count
    entities = np.int64(graph.vocabulary.entity_count)
    pairs = facts.head.astype(np.int64) * width + facts.relation
    of_proposals = proposals.table.head.astype(np.int64) * width + proposals.table.relation
    met = np.isin(of_proposals, pairs)
    agrees = np.isin(of_proposals * entities + proposals.entity, pairs * entities + facts.tail_entity)
    questions = component_starts(proposals.table)[:-1] + TAIL
    known = KnownAnswers.build(tables, graph.vocabulary.relation_is_number)
    numbers = known.lookup(proposals.table, questions, kind=NUMBER_KIND)
    owner = numbers.question()
    inside = (numbers.answers >= proposals.low[owner]) & (numbers.answers <= proposals.high[owner])
    has_number = np.diff(numbers.offsets) > 0
    in_interval = np.bincount(owner[inside], minlength=len(proposals)) > 0
    return (np.where(proposals.is_number, has_number, met), np.where(proposals.is_number, in_interval, met & agrees))
