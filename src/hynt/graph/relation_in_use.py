"""A relation for people who look it up: what it means, its numbers or commonest tails, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.views import GraphViews
from hynt.markup import shown
from hynt.names import plural
from hynt.results import FoundValues


@dataclass(frozen=True, eq=False, repr=False)
class RelationInUse(FoundValues):
    """What a relation means and how it is used, for people who look it up."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, name: str) -> RelationInUse:
        """A relation by its id or name, as the service describes it, and its commonest tails."""
        found = GraphViews(graph).relation_in_use(name)
        told = ("id", "name", "description", "kind", "unit", "display_unit", "facts", "heads", "qualifiers")
        of_numbers = ("count", "minimum", "maximum", "quantiles")
        plain = {
            "relation": {key: found[key] for key in told},
            "numbers": found["numbers"] and {key: found["numbers"][key] for key in of_numbers},
            "qualifies": [{"id": one["id"], "name": one["name"]} for one in found["qualified"]],
            "usual_qualifiers": [{**one["relation"], "share": one["share"]} for one in found["usual"]],
            "commonest_tails": [{key: one[key] for key in ("id", "name", "share")} for one in found["tails"]],
            "examples": [fact["text"] for fact in found["examples"]],
        }
        return cls(plain)

    def __repr__(self) -> str:
        """How often it is used, and examples."""
        one = self["relation"]
        counted = f"{plural(one['facts'], 'fact')}, {plural(one['qualifiers'], 'qualifier')}"
        return shown("\n".join([f"<relation {one['name']}: {counted}>", *self["examples"]]))
