"""Television series whose facts follow from one another, with a few wrong ones planted among them."""

from __future__ import annotations

from hynt.formats.from_python import graph_from_facts
from hynt.graph.knowledge_graph import KnowledgeGraph

SERIES = 60
PLANTED = ("Glee", "number of seasons", 91.0)


def series_facts(*, planted: bool = True) -> list[tuple]:
    """Country follows from network, language from country; seasons are few, and an award says its year."""
    facts: list[tuple] = []
    for index in range(SERIES):
        name = "Glee" if index == 7 else f"series {index}"
        network = index % 6
        facts.append((name, "network", f"network {network}"))
        facts.append((name, "country", f"country {network // 2}"))
        facts.append((name, "language", f"language {network // 2}"))
        seasons = 91 if planted and index == 7 else 1 + index % 9
        facts.append((name, "number of seasons", seasons))
        facts.append((name, "award", f"prize {index % 4}", [("year", 1990 + index % 30), ("for", f"cast {index % 5}")]))
    return facts


def series_graph(*, planted: bool = True) -> KnowledgeGraph:
    facts = series_facts(planted=planted)
    splits = {"train": [], "valid": [], "test": []}
    for index, fact in enumerate(facts):
        splits[("train", "train", "train", "train", "train", "valid", "train", "test")[index % 8]].append(fact)
    return graph_from_facts(splits, name="series")
