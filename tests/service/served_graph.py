"""A small graph with all that a service can be asked about: shared names, ids with slashes, units, dates, a trend."""

from __future__ import annotations

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.knowledge_graph import KnowledgeGraph

PEOPLE, TOWNS = 60, 4
LABELS = {f"p{index}": f"Person {index}" for index in range(PEOPLE)} | {
    "town/0": "Springfield",
    "town/1": "Shelbyville",
    "town/2": "Ogdenville",
    "town/3": "Curaçao",
    "f0": "Springfield",
    "f1": "Globex",
}
RELATION_LABELS = {"P19": "born in", "P108": "employer", "P26": "spouse", "P1082": "population"}


def year(value: int):
    return number(float(value), DATE_UNIT, str(value))


def served_graph() -> KnowledgeGraph:
    facts = {"train": [], "valid": [], "test": []}
    for index in range(PEOPLE):
        person = f"p{index}"
        split = ("train", "train", "valid", "train", "test")[index % 5]
        facts["train"].append((person, "P19", f"town/{index % TOWNS}"))
        facts[split].append((person, "P108", f"f{index % 2}"))
        facts[split].append((person, "height", number(150 + index, "cm")))
        spouse = f"p{(index + 7) % PEOPLE}"
        facts[split].append(
            (person, "P26", spouse, [("date", year(1990 + index % 20)), ("place", f"town/{index % 3}")])
        )
    for town in range(TOWNS):
        for step in range(20):
            split = ("train", "train", "train", "valid", "test")[step % 5]
            value = number(1000 * (town + 1) + 50 * step)
            facts[split].append((f"town/{town}", "P1082", value, [("date", year(1990 + step))]))
    meanings = {"P1082": "people who live there"}
    return graph_from_facts(
        facts, labels=LABELS, relation_labels=RELATION_LABELS, relation_descriptions=meanings, name="served"
    )
