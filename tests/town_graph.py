"""A small graph with all that a question can name: ids and labels, a shared name, units, dates, both kinds of
qualifiers.
"""

from __future__ import annotations

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.dates import decimal_year

PEOPLE = 60
LABELS = {f"p{index}": f"Person {index}" for index in range(PEOPLE)} | {
    "t0": "Springfield",
    "t1": "Shelbyville",
    "t2": "Ogdenville",
    "t3": "Brockway",
    "f0": "Springfield",
    "f1": "Globex",
}
RELATION_LABELS = {"P19": "born in", "P108": "employer", "P26": "spouse"}


def town_graph() -> KnowledgeGraph:
    facts = {"train": [], "valid": [], "test": []}
    for index in range(PEOPLE):
        person = f"p{index}"
        split = ("train", "train", "valid", "train", "test")[index % 5]
        facts["train"].append((person, "P19", f"t{index % 4}"))
        facts[split].append((person, "P108", f"f{index % 2}"))
        facts[split].append((person, "height", number(150 + index, "cm")))
        wedding = number(decimal_year(1990 + index % 20, 6), DATE_UNIT, f"{1990 + index % 20}-06")
        facts[split].append(
            (person, "P26", f"p{(index + 7) % PEOPLE}", [("date", wedding), ("place", f"t{index % 3}")])
        )
    return graph_from_facts(facts, labels=LABELS, relation_labels=RELATION_LABELS, name="towns")
