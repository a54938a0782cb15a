"""What a graph is made of, in numbers: the paper's table of counts, and the paper's table of numeric relations.

Every count is defined where it is made. Two definitions are the paper's and easy to miss: a number counts as
distinct by its literal as written (so `|V_N|` of HN-YG is 24,508), and triplets and qualifiers are distinct ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.graph.changes import seen_triplets
from hynt.graph.content_hash import repeats
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.log_scales import suited_to_logarithms, tried_on_both
from hynt.graph.number_summary import NumberSummary, summarise_numbers
from hynt.graph.splitting import Leak, find_leakage, missing_from_train
from hynt.graph.vocabulary import Ids, begins

_LONGEST_HISTOGRAM = 20


@dataclass(frozen=True)
class GraphCounts:
    """The paper's table of a graph; its symbols stand beside the names."""

    entities: int  # |V_D|
    number_literals: int  # |V_N|: distinct numbers as written
    relations: int  # |R|
    entity_relations: int
    number_relations: int
    facts: int  # |E|
    facts_with_qualifiers: int
    facts_without_qualifiers: int
    triplets: int  # distinct primary triplets
    entity_triplets: int  # E_tri_D: those whose tail is an entity
    number_triplets: int  # E_tri_N: those whose tail is a number, by its literal
    qualifiers: int  # distinct (relation, value) pairs
    entity_qualifiers: int  # E_qual_D
    number_qualifiers: int  # E_qual_N
    qualifier_uses: int  # all qualifiers of all facts


@dataclass(frozen=True)
class GraphStatistics:
    """Everything `hynt data stats` tells."""

    counts: GraphCounts
    splits: dict[str, dict[str, int]]  # per split: facts, with_qualifiers, number_tails, qualifiers
    qualifiers_per_fact: dict[str, int]  # how many facts have 0, 1, 2, … qualifiers
    numbers: tuple[NumberSummary, ...]
    missing_from_train: dict[str, int]  # entities and relations of valid and test that train lacks
    across_splits: dict[str, int]  # facts that stand in two splits
    seen_triplets: dict[str, int]  # per other split: facts whose triplet train has too, with any qualifiers
    leaks: tuple[Leak, ...]
    log_relations: tuple[str, ...]  # what is learned on a log scale where nobody says otherwise
    tried_relations: tuple[
        str, ...
    ]  # those of them that training keeps linear where validation is worse on a log scale

    def to_mapping(self, graph: KnowledgeGraph) -> dict[str, Any]:
        """Plain values, as `hynt data stats --json` prints them."""
        names = [relation.name for relation in graph.relations]
        return {
            "counts": asdict(self.counts),
            "splits": self.splits,
            "qualifiers_per_fact": self.qualifiers_per_fact,
            "numbers": [
                summary.to_mapping(graph.relations[summary.relation])
                | {"learned_on": self._scale(names[summary.relation])}
                for summary in self.numbers
            ],
            "missing_from_train": self.missing_from_train,
            "across_splits": self.across_splits,
            "triplets_seen_in_train": {
                name: {"facts": count, "share": round(count / max(1, self.splits[name]["facts"]), 6)}
                for name, count in self.seen_triplets.items()
            },
            "leakage": [
                {
                    "rarer": names[leak.removed],
                    "other": names[leak.kept],
                    "kind": leak.kind,
                    "shared": leak.shared,
                    "rarer_pairs": leak.pairs,
                    "other_pairs": leak.kept_pairs,
                    "overlap": round(leak.overlap, 4),
                }
                for leak in self.leaks
            ],
        }

    def _scale(self, name: str) -> str:
        if name in self.tried_relations:
            return "log unless worse"
        return "log" if name in self.log_relations else "linear"


def graph_statistics(graph: KnowledgeGraph) -> GraphStatistics:
    """Counts what a graph has, by split and in all, and looks for facts that leak from one split into another."""
    is_number = graph.vocabulary.relation_is_number
    tables = list(graph.splits.values())
    everything = concatenate(tables)
    logs = suited_to_logarithms(graph.vocabulary, graph.splits.get("train", everything), tables)
    return GraphStatistics(
        counts=count_table(everything, graph),
        splits={name: _split_counts(table, is_number) for name, table in graph.splits.items()},
        qualifiers_per_fact=_histogram(everything.qualifier_counts()),
        numbers=summarise_numbers(everything, is_number),
        log_relations=logs,
        tried_relations=tuple(graph.relations[one].name for one in tried_on_both(graph, logs)),
        missing_from_train=missing_from_train(tables if "train" in graph.splits else [everything], graph.vocabulary),
        across_splits=facts_across_splits(graph),
        seen_triplets={
            name: int(seen_triplets(table, graph.splits["train"], graph.vocabulary).sum())
            for name, table in graph.splits.items()
            if name != "train" and "train" in graph.splits
        },
        leaks=tuple(find_leakage(tables, graph.vocabulary)),
    )


def count_table(table: FactTable, graph: KnowledgeGraph) -> GraphCounts:
    """The paper's counts over the facts of one table."""
    vocabulary = graph.vocabulary
    is_number = vocabulary.relation_is_number
    tail_is_number = is_number[table.relation]
    value_is_number = is_number[table.qualifier_relation]
    tail, value, literals = _values(table, tail_is_number, value_is_number, vocabulary.entity_count)
    pair, _ = _distinct(table.head.astype(np.int64), table.relation)
    _, first = _distinct(pair, tail)
    qualifier, first_use = _distinct(table.qualifier_relation.astype(np.int64), value)
    with_qualifiers = int((table.qualifier_counts() > 0).sum())
    number_triplets = int(tail_is_number[first].sum())
    number_qualifiers = int(value_is_number[first_use].sum())
    number_relations = int(is_number.sum())
    return GraphCounts(
        entities=vocabulary.entity_count,
        number_literals=literals,
        relations=vocabulary.relation_count,
        entity_relations=vocabulary.relation_count - number_relations,
        number_relations=number_relations,
        facts=len(table),
        facts_with_qualifiers=with_qualifiers,
        facts_without_qualifiers=len(table) - with_qualifiers,
        triplets=len(first),
        entity_triplets=len(first) - number_triplets,
        number_triplets=number_triplets,
        qualifiers=len(first_use),
        entity_qualifiers=len(first_use) - number_qualifiers,
        number_qualifiers=number_qualifiers,
        qualifier_uses=len(qualifier),
    )


def facts_across_splits(graph: KnowledgeGraph) -> dict[str, int]:
    """How many facts stand in both splits of each couple; a fact is the same whatever the order of its qualifiers."""
    hashes = {}
    for split, table in graph.splits.items():
        found = graph.vocabulary.fingerprints.facts(table)
        hashes[split] = found[~repeats(found)]
    return {
        f"{first}_and_{second}": int(repeats(np.concatenate([hashes[first], hashes[second]])).sum())
        for first, second in combinations(graph.splits, 2)
    }


def _values(
    table: FactTable, tail_is_number: NDArray[np.bool_], value_is_number: NDArray[np.bool_], entity_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(n,) and (m,) tails and qualifier values in one id space: entities, then literals; how many literals."""
    literals = pa.concat_arrays(
        [table.tail_literal.filter(pa.array(tail_is_number)), table.qualifier_literal.filter(pa.array(value_is_number))]
    ).dictionary_encode()
    codes = literals.indices.to_numpy().astype(np.int64) + entity_count
    tail, value = table.tail_entity.astype(np.int64), table.qualifier_entity.astype(np.int64)
    cut = int(tail_is_number.sum())
    tail[tail_is_number], value[value_is_number] = codes[:cut], codes[cut:]
    return tail, value, len(literals.dictionary)


def _distinct(left: NDArray[np.int64], right: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For couples (left, right): a dense id for each row, and the first row of each id."""
    size = int(right.max()) + 1 if len(right) else 1
    _, first, inverse = np.unique(left * size + right, return_index=True, return_inverse=True)
    return inverse.astype(np.int64), first.astype(np.int64)


def _split_counts(table: FactTable, is_number: NDArray[np.bool_]) -> dict[str, int]:
    return {
        "facts": len(table),
        "with_qualifiers": int((table.qualifier_counts() > 0).sum()),
        "number_tails": int(is_number[table.relation].sum()),
        "qualifiers": table.qualifier_total,
    }


def _histogram(counts: NDArray[np.int64]) -> dict[str, int]:
    """Facts by how many qualifiers they have; the rare long ones together."""
    capped = np.bincount(np.minimum(counts, _LONGEST_HISTOGRAM), minlength=1).tolist()
    return {
        f"{size}+" if size == _LONGEST_HISTOGRAM else str(size): facts for size, facts in enumerate(capped) if facts
    }


def values_over_time(graph: KnowledgeGraph, split: str) -> Ids:
    """(n,) head and relation in one number, for each date at which a split has a number of the two. A fact with another
    number beside its date, such as an isotope's mass number, is of no time.
    """
    table, is_number = graph.split(split), graph.vocabulary.relation_is_number
    is_date = graph.vocabulary.relation_is_date
    owner, count = table.qualifier_owner(), len(table)
    numbers, dates = (
        np.bincount(owner[kind[table.qualifier_relation]], minlength=count) for kind in (is_number, is_date)
    )
    when, dated = np.full(count, -np.inf), is_date[table.qualifier_relation]
    np.maximum.at(when, owner[dated], table.qualifier_number[dated])
    rows = np.flatnonzero(is_number[table.relation] & (dates > 0) & (dates == numbers))
    date = when[rows]
    couple = table.head[rows] * np.int64(graph.vocabulary.relation_count) + table.relation[rows]
    order = np.lexsort((date, couple))  # many values of one date are no movement
    couple, date = couple[order], date[order]
    found: Ids = couple[begins(couple, date)]
    return found
