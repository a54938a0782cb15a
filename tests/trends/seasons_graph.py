"""A small graph whose numbers move over time: temperatures of towns, apart for day and night, some beside a number."""

from __future__ import annotations

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.knowledge_graph import KnowledgeGraph

TOWNS = {"t0": "Springfield", "t1": "Shelbyville", "t2": "Ogdenville", "t3": "Brockway"}


def seasons_graph() -> KnowledgeGraph:
    facts = {"train": [], "valid": [], "test": []}
    for town in range(4):
        head = f"t{town}"
        facts["train"].append((head, "in", "state"))
        facts["train"].append((head, "area", number(10.0 + town, "km2")))
        for year in range(1990, 2020):
            split = "valid" if year % 10 == 3 else "test" if year % 10 == 7 else "train"
            when = ("point in time", number(float(year), DATE_UNIT))
            facts[split].append((head, "temperature", 10 + town + (year - 1990) / 10, [when]))
            if year % 3 == 0:
                facts[split].append((head, "temperature", 5 + town, [when, ("time of day", "night")]))
            beside = [when, ("observers", 3 + year % 2)] if year < 2000 else [when]
            facts[split].append((head, "rank", 1 + (town + year) % 4, beside))
    facts["train"].append(("t0", "temperature", 99.0))
    relation_labels = {"rank": "place in the league"}
    return graph_from_facts(facts, labels=TOWNS, relation_labels=relation_labels, name="seasons")
