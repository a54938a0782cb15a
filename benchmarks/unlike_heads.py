"""How often questions are told to be unlike all that a graph knows: held-out ones, which should hardly ever be, and
questions about things of another kind, which nearly always should.

    PYTHONPATH=src python3 -m benchmarks.unlike_heads world graphs/HN-YG graphs/HN-WK-resplit --out unlike.json

Held-out questions are those of the validation split that hide the tail or the head of a fact, and of the former those
for numbers. Of the others each is a relation that at least twenty things are known to have, and a thing of a kind of
which no split has any there. In `world` kinds are the types of entities. The other graphs have none, so a kind is who
has one of a few relations, as in `KINDS`; a relation counts as that of another kind where four in five of those that
have it and a kind are of one kind alone, and things whose kind is not known are left out. Nothing is trained.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.result_file import write_measured
from hynt.front.graphs import read_graph
from hynt.graph.entity_kinds import EntityKinds
from hynt.graph.fact_table import HEAD, TAIL, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Flags, Ids

KINDS = {
    "HN-YG": {
        "person": ["wasBornOnDate", "wasBornIn", "diedOnDate"],
        "place": ["hasNumberOfPeople", "hasPopulationDensity"],
        "film": ["~actedIn", "~directed"],
        "event": ["happenedOnDate", "happenedIn"],
    },
    "HN-WK-resplit": {
        "person": ["P569", "P106", "P19", "P27"],
        "place": ["P1082", "P1081", "P190", "P47"],
        "film": ["P161", "P162", "P58"],
    },
}
"""Who is of a kind: the heads, or after ~ the tails, of these relations."""
FEWEST, MOST_OF_ONE = 20, 0.8
QUESTIONS = 10_000


def measured(graph: KnowledgeGraph, seed: int = 0) -> dict[str, Any]:
    """The shares of both, for JSON."""
    kinds = EntityKinds.of([graph.split("train")], graph.vocabulary, graph.entities)
    valid, is_number = graph.split("valid"), graph.vocabulary.relation_is_number
    rows = np.arange(len(valid), dtype=np.int64)
    tail, head = (kinds.is_unlike(valid, rows, np.full(len(rows), hidden)) for hidden in (TAIL, HEAD))
    head = head[~is_number[valid.relation]]
    numeric = tail[is_number[valid.relation]]
    found = {
        name: {"questions": len(one), "unlike": round(float(one.mean()), 5)}
        for name, one in {"held out": np.concatenate([tail, head]), "held out, numbers": numeric}.items()
    }
    relation, entity = _of_other_kinds(graph, seed)
    asked = valid.take(np.zeros(len(relation), dtype=np.int64))
    asked.relation[:], asked.head[:] = relation, entity
    wrong = kinds.is_unlike(asked, np.arange(len(relation), dtype=np.int64), np.full(len(relation), TAIL))
    for name, one in {"of another kind": wrong, "of another kind, numbers": wrong[is_number[relation]]}.items():
        found[name] = {"questions": len(one), "unlike": round(float(one.mean()), 5)}
    return {"graph": graph.name, **found}


def _of_other_kinds(graph: KnowledgeGraph, seed: int) -> tuple[Ids, Ids]:
    """(n,) relations and (n,) entities of a kind of which no split has any as their head."""
    table, relations = concatenate(list(graph.splits.values())), graph.vocabulary.relation_count
    stands = np.zeros((2, relations, len(graph.entities)), dtype=np.bool_)
    stands[0, table.relation, table.head] = True
    of_entities = ~graph.vocabulary.relation_is_number[table.relation]
    stands[1, table.relation[of_entities], table.tail_entity[of_entities]] = True
    kind, kinds = _kinds(graph, stands)
    heads, known = stands[0], kind >= 0
    of_kind = np.stack([heads[:, kind == one].sum(axis=1) for one in range(kinds)], axis=1)  # (relations, kinds)
    train = graph.split("train")
    enough = np.array([len(np.unique(train.head[train.relation == one])) >= FEWEST for one in range(relations)])
    enough &= of_kind.max(axis=1) >= MOST_OF_ONE * np.maximum(of_kind.sum(axis=1), 1)
    other = np.zeros((relations, len(kind)), dtype=np.bool_)
    other[:, known] = of_kind[:, kind[known]] == 0
    other[~enough | (of_kind.sum(axis=1) == 0)] = False
    random = np.random.default_rng(seed)
    relation = random.choice(np.flatnonzero(other.any(axis=1)), QUESTIONS)
    return relation, np.array([random.choice(np.flatnonzero(other[one])) for one in relation.tolist()])


def _kinds(graph: KnowledgeGraph, stands: Flags) -> tuple[Ids, int]:
    """(entities,) the number of the kind of each, −1 where it is not known; and how many kinds there are."""
    markers = KINDS.get(graph.name)
    if markers is None:
        names = sorted({one.type for one in graph.entities} - {""})
        return np.array([names.index(one.type) if one.type else -1 for one in graph.entities]), len(names)
    kind = np.full(len(graph.entities), -1)
    for number, relations in enumerate(markers.values()):
        for name in relations:
            kind[stands[int(name[0] == "~"), graph.vocabulary.relation_ids[name.lstrip("~")]]] = number
    return kind, len(markers)


def main() -> None:
    parser = argparse.ArgumentParser(description="How often questions are told to be unlike all that a graph knows.")
    parser.add_argument("graphs", nargs="+", help="folders of graphs, or names of those that come with hynt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [measured(read_graph(one), given.seed) for one in given.graphs]
    for row in rows:
        told = ", ".join(f"{name} {one['unlike']:.2%}" for name, one in row.items() if isinstance(one, dict))
        print(f"{row['graph']}: {told}")
    if given.out:
        write_measured(given.out, {"graphs": rows}, str(__doc__))


if __name__ == "__main__":
    main()
