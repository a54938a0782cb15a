"""Prints a random sample of the graph's facts, each beside the passage it was read from, for a person to judge.

    python -m tools.world.audit --gapminder package/data/gapminder.json --seed 1 --facts 200 > sample.tsv

Half of the sample is drawn from all facts, half evenly over the relations, so that rare relations are seen too.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from tools.world.selection import Counts, select
from tools.world.sources import installed, read_everything
from tools.world.splits import fact_as_json
from tools.world.statement import Date, Entity, Statement, Value


def sample(statements: list[Statement], seed: int, facts: int) -> list[Statement]:
    """A seeded sample: half uniform, half with every relation equally likely; no fact twice."""
    ordered = sorted(statements, key=fact_as_json)
    generator = random.Random(seed)
    chosen = dict.fromkeys(generator.sample(range(len(ordered)), facts // 2))
    by_relation: dict[str, list[int]] = {}
    for index, statement in enumerate(ordered):
        by_relation.setdefault(statement.relation, []).append(index)
    while len(chosen) < facts:
        chosen[generator.choice(by_relation[generator.choice(sorted(by_relation))])] = None
    return [ordered[index] for index in chosen]


def readable(value: Value) -> str:
    """A value for people: the entity's id, the number, or the date."""
    if isinstance(value, Entity):
        return value.id
    return value.text if isinstance(value, Date) else format(value.value.normalize(), "f")


def row(statement: Statement) -> str:
    """One line: the fact, its qualifiers, where it was read, and the passage."""
    qualifiers = "; ".join(f"{relation}: {readable(value)}" for relation, value in statement.qualifiers)
    cells = (
        statement.head.id,
        statement.relation,
        readable(statement.tail),
        qualifiers,
        statement.origin,
        statement.passage,
    )
    return "\t".join(" ".join(cell.split()) for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sample facts of `world` with their source passages.")
    parser.add_argument("--gapminder", type=Path, required=True, help="gapminder.json of vega-datasets 3.2.1")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--facts", type=int, default=200)
    arguments = parser.parse_args()
    statements, _ = read_everything(installed(arguments.gapminder))
    print("head\trelation\ttail\tqualifiers\torigin\tpassage")
    for statement in sample(select(statements, Counts()), arguments.seed, arguments.facts):
        print(row(statement))


if __name__ == "__main__":
    main()
