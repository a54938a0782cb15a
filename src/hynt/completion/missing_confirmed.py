"""Whether facts that were hidden confirm what was proposed: how good proposals are, measured on the graph itself."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from hynt.completion.missing_proposals import Proposals
from hynt.graph.components import NUMBER_KIND, TAIL, component_starts
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers

Flags = NDArray[np.bool_]


def confirmed(proposals: Proposals, graph: KnowledgeGraph, hidden: Collection[str]) -> tuple[Flags, Flags]:
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
