"""The result of an audit as rows for people: one per fact, or one per component, most suspicious first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hynt.auditing.folds import name_label
from hynt.auditing.plan import AuditPart, AuditPlan
from hynt.auditing.verdicts import Verdicts
from hynt.files import whole_file
from hynt.graph.fact import Fact, Number
from hynt.graph.fact_table import ENTITY_KIND, KIND_NAMES, NUMBER_KIND, position_name
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import PossibleNumbers
from hynt.graph.sentences import Sentences, format_quantity
from hynt.graph.vocabulary import Ids

SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),  # of the fact, from 1; null where it was not judged
        ("score", pa.float64()),  # of the fact
        ("split", pa.string()),
        ("row", pa.int64()),  # in its split, from 0
        ("fact", pa.string()),  # in words
        ("head", pa.string()),  # ids as written
        ("relation", pa.string()),
        ("tail", pa.string()),
        ("component", pa.string()),  # head, relation, tail, value of qualifier 1, …
        ("kind", pa.string()),  # entity, relation or number
        ("component_score", pa.float64()),
        ("stored", pa.string()),  # in words
        ("stored_id", pa.string()),
        ("stored_value", pa.float64()),
        ("probability", pa.float64()),  # of the stored entity or relation
        ("place", pa.float64()),  # of the stored entity or relation among the candidates
        ("residual", pa.float64()),  # of the stored number, in radii of the interval
        ("said", pa.string()),  # what the model would have said, in words
        ("said_id", pa.string()),
        ("said_value", pa.float64()),
        ("said_probability", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("low_text", pa.string()),  # in words
        ("high_text", pa.string()),
        ("interval_from", pa.string()),
        ("judge", pa.string()),  # fold-1, …; run-1, … where the given run judged
        ("reason", pa.string()),  # why it was not judged
    ]
)
"""The columns of the file; null where a column does not apply."""

_ROWS_AT_ONCE = 20_000


class RowWriter:
    """Tells the facts and components of one audit."""

    def __init__(self, plan: AuditPlan, found: Verdicts, parts: list[AuditPart]) -> None:
        self.plan, self.found, self.parts = plan, found, parts
        self._sentences = Sentences(plan.graph)
        sizes = np.array([len(table) for table in plan.graph.splits.values()], dtype=np.int64)
        self._starts = np.cumsum(sizes) - sizes

    def rows(self, verdict: Ids, rank: Ids, score: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
        """(k,) these components, each with its fact's rank and score."""
        facts = self._facts(self.found.stored.row[verdict])
        for fact, index, place, value in zip(facts, verdict.tolist(), rank.tolist(), score.tolist(), strict=True):
            number = int(self.found.stored.row[index])
            yield {"rank": place, "score": value} | self._described(fact, number) | self._component(index)

    def not_judged(self, facts: Ids) -> Iterator[dict[str, Any]]:
        """(k,) facts that nobody could judge, each with the reason."""
        for fact, number in zip(self._facts(facts), facts.tolist(), strict=True):
            yield self._described(fact, number) | {"reason": self.reason(number)}

    def reason(self, number: int) -> str:
        """Why a fact was not judged."""
        folds, graph = self.plan.folds, self.plan.graph
        if folds.is_judged[number]:
            return f"the model {self.plan.settings.model_name!r} answers none of its components"
        name = name_label(int(folds.missing[number]), graph.entity_labels, graph.relation_labels)
        if self.plan.in_training[number]:
            return f"{name!r} occurs nowhere else"
        return f"{name!r} occurs nowhere in training"

    def _facts(self, numbers: Ids) -> Iterator[Fact]:
        return self.plan.table.take(numbers).facts(self.plan.graph.vocabulary)

    def _described(self, fact: Fact, number: int) -> dict[str, Any]:
        split = int(self.plan.split[number])
        tail = fact.tail.literal if isinstance(fact.tail, Number) else fact.tail
        return {
            "split": tuple(self.plan.graph.splits)[split],
            "row": number - int(self._starts[split]),
            "fact": self._sentences.fact(fact),
            "head": fact.head,
            "relation": fact.relation,
            "tail": tail,
        }

    def _component(self, index: int) -> dict[str, Any]:
        found, graph = self.found, self.plan.graph
        stored = found.stored
        kind = int(stored.kind[index])
        told: dict[str, Any] = {
            "component": position_name(int(stored.position[index])),
            "kind": KIND_NAMES[kind],
            "component_score": float(found.score[index]),
            "judge": self.parts[int(found.part[index])].name,
        }
        if kind == NUMBER_KIND:
            return told | self._number(index)
        own = int(stored.entity[index] if kind == ENTITY_KIND else stored.relation[index])
        best = int(found.best[index])
        (own_id, own_name), (best_id, best_name) = _named(graph, kind, own), _named(graph, kind, best)
        return told | {
            "stored": own_name,
            "stored_id": own_id,
            "probability": math.exp(found.log_probability[index]),
            "place": float(found.place[index]),
            "said": best_name,
            "said_id": best_id,
            "said_probability": math.exp(found.best_log_probability[index]),
        }

    @cached_property
    def _possible(self) -> PossibleNumbers:
        """What a number is shown as: judged it is as the model said it."""
        return PossibleNumbers.of(self.plan.graph.vocabulary, [self.plan.learned])

    def _number(self, index: int) -> dict[str, Any]:
        found = self.found
        relation = found.stored.relation[index : index + 1].astype(np.int64)
        unit = self.plan.graph.relations[int(relation[0])].unit
        stored = float(found.stored.number[index])
        said = float(self._possible.nearest(relation, found.predicted[index : index + 1])[0])
        low, high = float(found.low[index]), float(found.high[index])
        width = high - low if math.isfinite(high - low) else None
        told: dict[str, Any] = {
            "stored": format_quantity(stored, unit),
            "stored_value": stored,
            "said": format_quantity(said, unit, width),
            "said_value": said,
        }
        if width is not None:
            told |= {
                "residual": float(found.residual[index]),
                "low": low,
                "high": high,
                "low_text": format_quantity(low, unit, width),
                "high_text": format_quantity(high, unit, width),
                "interval_from": "this relation" if found.is_own[index] else "all relations with few values",
            }
        return told


def _named(graph: KnowledgeGraph, kind: int, index: int) -> tuple[str, str]:
    if kind == ENTITY_KIND:
        return graph.vocabulary.entities[index], graph.entity_labels[index]
    return graph.relations[index].name, graph.relation_labels[index]


def write_rows(rows: Iterator[dict[str, Any]], out: Path) -> int:
    """Parquet, whole or not at all; returns how many rows it has."""
    total = 0
    with whole_file(out) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_batch(batch)
            total += batch.num_rows
    return total


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _ROWS_AT_ONCE:
            yield pa.RecordBatch.from_pylist(waiting, SCHEMA)
            waiting = []
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, SCHEMA)
