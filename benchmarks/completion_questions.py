"""Files of many questions for measuring: facts of a graph, drawn with repeats, with one component hidden in each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from hynt.completion.question_files import PAIR
from hynt.graph.columns import FULL_SCHEMA, Names
from hynt.graph.fact_table import HEAD, RELATION, TAIL, component_starts, components, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph

KINDS = ("entity", "relation beside an entity", "number", "relation beside a number")


def drawn(graph: KnowledgeGraph, count: int, seed: int, kinds: tuple[str, ...] = KINDS[:3]) -> pa.Table:
    """A table of FULL_SCHEMA; every component of the wanted kinds is as likely as any other."""
    facts, is_number = concatenate(list(graph.splits.values())), graph.vocabulary.relation_is_number
    parts = components(facts, is_number)
    kind = parts.kind.astype(np.int64)
    kind[(kind == 1) & is_number[parts.relation]] = 3
    chosen = np.flatnonzero(np.isin(kind, [KINDS.index(name) for name in kinds]))
    picked = np.random.default_rng(seed).choice(chosen, count)
    table = facts.take(parts.row[picked])
    return _hidden(Names(graph.vocabulary).to_columns(table), parts.position[picked], component_starts(table))


def _hidden(facts: pa.RecordBatch, position: np.ndarray, starts: np.ndarray) -> pa.Table:
    """The facts with "?" at one position each, as the format writes it."""
    rows = len(position)
    pairs = facts["qualifiers"].flatten()
    name, entity, number, literal = pairs.flatten()
    # The component number of each qualifier's relation; its value comes right after it.
    owner = np.repeat(np.arange(rows), facts["qualifiers"].value_lengths().to_numpy())
    place = 3 * (owner + 1) + 2 * np.arange(len(pairs))
    asked = (starts[:-1] + position)[owner]

    def with_blank(column: pa.Array, blank: np.ndarray) -> pa.Array:
        return compute.if_else(pa.array(blank), "?", column)

    def without(column: pa.Array, blank: np.ndarray) -> pa.Array:
        return compute.if_else(pa.array(blank), pa.scalar(None, column.type), column)

    in_tail, in_value = position == TAIL, place + 1 == asked
    lists = pa.ListArray.from_arrays(
        facts["qualifiers"].offsets,
        pa.StructArray.from_arrays(
            [
                with_blank(name, place == asked),
                with_blank(entity, in_value),
                without(number, in_value),
                without(literal, in_value),
                pa.nulls(len(pairs), pa.string()),
            ],
            fields=list(PAIR),
        ),
    )
    return pa.table(
        [
            with_blank(facts["head"], position == HEAD),
            with_blank(facts["relation"], position == RELATION),
            with_blank(facts["tail_entity"], in_tail),
            without(facts["tail_number"], in_tail),
            without(facts["tail_literal"], in_tail),
            pa.nulls(rows, pa.string()),
            lists,
        ],
        schema=FULL_SCHEMA,
    )


def write_parquet(questions: pa.Table, path: Path) -> Path:
    """As Parquet."""
    parquet.write_table(questions, path)
    return path


def write_jsonl(questions: pa.Table, path: Path) -> Path:
    """As JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for row in questions.to_pylist():
            pairs = [[pair["relation"], _value(pair["entity"], pair["number"])] for pair in row["qualifiers"]]
            tail = _value(row["tail_entity"], row["tail_number"])
            line = {"head": row["head"], "relation": row["relation"], "tail": tail}
            file.write(json.dumps(line | ({"qualifiers": pairs} if pairs else {})) + "\n")
    return path


def _value(entity: str | None, number: float | None) -> str | float | None:
    return entity if number is None else number
