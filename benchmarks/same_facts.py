"""How often a held-out answer has the training facts of another candidate, so that a model of observed facts cannot
tell the two apart; and how far their names would.

    python -m benchmarks.same_facts world
    python -m benchmarks.same_facts GRAPH --labels shared/data/labels/wikidata_entities.tsv

Among candidates with the same facts the right one is at a rank by chance, or by whose name is most like one of the
question (the share of letter triples in common). The gain of a mean reciprocal rank is at most their difference times
the share of such questions: that much only where these candidates lead the answer.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hynt
from hynt.graph.fact import Fact, Value
from hynt.graph.knowledge_graph import KnowledgeGraph

SELF, BLANK = ("self",), ("blank",)


def same_facts(graph: KnowledgeGraph, labels: Mapping[str, str], split: str = "valid") -> dict[str, Any]:
    """Counts over the questions for an entity of a split, asked with the training facts in view."""
    names = {one.name: labels.get(one.name) or one.label or one.name for one in graph.entities}
    said: dict[str, list[str]] = {name: [] for name in names}
    answers: dict[Any, set[str]] = defaultdict(set)
    for part in ("train", split):
        for fact in graph.facts(part):
            for place, entity in _entities(fact):
                answers[_asked(fact, place)].add(entity)
            if part == "train":
                for entity in {one for _, one in _entities(fact)}:
                    said[entity].append(repr(_seen_from(fact, entity)))
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for entity, facts in said.items():
        alike[tuple(sorted(facts))].append(entity)
    asked, by_chance, by_name = 0, [], []
    for fact in graph.facts(split):
        for place, right in _entities(fact):
            asked += 1
            known = answers[_asked(fact, place)] - {right}
            others = [one for one in alike[tuple(sorted(said[right]))] if one != right and one not in known]
            if others:
                words = [_triples(names[one]) for at, one in _entities(fact) if at != place]
                own, *rest = (_likeness(_triples(names[one]), words) for one in (right, *others))
                by_chance.append(1 / (1 + len(others) / 2))
                by_name.append(1 / (1 + sum(one > own for one in rest) + rest.count(own) / 2))
    tied, count = len(by_chance), max(1, len(by_chance))
    return {
        "questions": asked,
        "tied": tied,
        "share": tied / max(1, asked),
        "reciprocal_rank_by_chance": sum(by_chance) / count,
        "reciprocal_rank_by_name": sum(by_name) / count,
    }


def _entities(fact: Fact) -> Iterator[tuple[int, str]]:
    """Where a fact has entities, and which."""
    for place, value in enumerate((fact.head, fact.tail, *(pair.value for pair in fact.qualifiers))):
        if isinstance(value, str):
            yield place, value


def _asked(fact: Fact, place: int) -> Any:
    return _shape(fact, lambda at, value: BLANK if at == place else (value,))


def _seen_from(fact: Fact, entity: str) -> Any:
    return _shape(fact, lambda at, value: SELF if value == entity else (value,))


def _shape(fact: Fact, told: Any) -> Any:
    def of(at: int, value: Value) -> Any:
        return told(at, value if isinstance(value, str) else value.value)

    pairs = frozenset((pair.relation, of(at, pair.value)) for at, pair in enumerate(fact.qualifiers, 2))
    return of(0, fact.head), fact.relation, of(1, fact.tail), tuple(sorted(pairs, key=repr))


def _triples(name: str) -> set[str]:
    text = f"  {name.lower()} "
    return {text[at : at + 3] for at in range(len(text) - 2)}


def _likeness(name: set[str], others: list[set[str]]) -> float:
    return max((len(name & one) / len(name | one) for one in others), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", help="a graph folder, or a built-in name")
    parser.add_argument("--labels", type=Path, help="names of entities: id TAB name")
    words = parser.parse_args()
    labels = dict[str, str]()
    if words.labels:
        rows = (line.split("\t") for line in words.labels.read_text(encoding="utf-8").splitlines())
        labels = {row[0]: row[1] for row in rows if len(row) > 1}
    print(json.dumps(same_facts(hynt.read_graph(words.graph), labels), indent=2))


if __name__ == "__main__":
    main()
