"""A graph of any size for benchmarks: skewed entities, qualifiers, numbers and, if asked, a few very long facts.

python benchmarks/generated_graph.py --facts 10000000 --out generated.tsv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

_BLOCK = 100_000


def lines(facts: int, entities: int, seed: int, longest: int = 0) -> Iterator[str]:
    """Lines of the `tsv` format: half the tails are numbers, two facts in five have one or two qualifiers."""
    random = np.random.default_rng(seed)
    for start in range(0, facts, _BLOCK):
        count = min(_BLOCK, facts - start)
        heads = (entities * random.random(count) ** 3).astype(np.int64).tolist()
        tails = (entities * random.random(count) ** 3).astype(np.int64).tolist()
        relations = random.integers(0, 100, count).tolist()
        values = np.round(random.lognormal(5, 3, count), 3).tolist()
        years = random.integers(1900, 2030, count).tolist()
        kinds = random.random(count).tolist()
        for head, tail, relation, value, year, kind in zip(heads, tails, relations, values, years, kinds, strict=True):
            line = f"e{head}\tn{relation}\t={value}" if kind < 0.5 else f"e{head}\tr{relation}\te{tail}"
            if kind % 0.1 < 0.04:
                line += f"\tpoint in time\t@{year}"
                if kind % 0.01 < 0.005:
                    line += f"\tsource\te{tail % 50}"
            yield line
    for index in range(3 if longest else 0):
        qualifiers = "\t".join(f"member\te{place}" for place in range(longest))
        yield f"e{index}\tr0\te{index + 1}\t{qualifiers}"


def long_graph(facts: int, longest: int, seed: int = 0) -> KnowledgeGraph:
    """A saved graph's worth of the same, with three facts of `longest` qualifiers in train and one each in valid and
    test; half the values of their qualifiers are numbers.
    """
    from hynt.formats.from_python import graph_from_facts

    random = np.random.default_rng(seed)
    entities = max(20, facts // 10)
    parts: dict[str, list[Any]] = {"train": [], "valid": [], "test": []}
    for index in range(facts):
        head, tail = (f"e{int(entities * value**2)}" for value in random.random(2))
        relation = int(random.integers(0, 5))
        qualifiers = [("year", int(random.integers(1900, 2030)))] if index % 5 < 2 else []
        fact = (head, f"n{relation}", int(random.integers(0, 500))) if index % 2 else (head, f"r{relation}", tail)
        split = "train" if index % 20 < 18 else ("valid", "test")[index % 2]
        parts[split].append((*fact, qualifiers))
    for index, split in enumerate(["train", "train", "train", "valid", "test"]):
        values = [
            ("member", f"e{(place + index) % entities}") if place % 2 else ("score", float(place % 97))
            for place in range(longest)
        ]
        parts[split].append((f"e{index}", "r0", f"e{index + 1}", values))
    return graph_from_facts(parts, name="generated")


def write(path: Path, facts: int, entities: int, seed: int = 0, longest: int = 0) -> None:
    """Write a generated graph as one file."""
    with path.open("w", encoding="utf-8", buffering=1 << 20) as file:
        file.writelines(f"{line}\n" for line in lines(facts, entities, seed, longest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--longest", type=int, default=0, help="add three facts with this many qualifiers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    write(arguments.out, arguments.facts, arguments.entities, arguments.seed, arguments.longest)


if __name__ == "__main__":
    main()
