"""Making small graphs in tests, through the same assembler as an import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hynt.graph.assembly import Assembler, AssemblyPolicy
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph


def assembled(
    facts: Iterable[Fact] | Mapping[str, Iterable[Fact]], policy: AssemblyPolicy | None = None, **options: object
) -> KnowledgeGraph:
    """A graph from facts, or from facts by split; `options` go to the encoder."""
    with Assembler(policy or AssemblyPolicy(), options) as assembler:
        if isinstance(facts, Mapping):
            for split, part in facts.items():
                for fact in part:
                    assembler.add(fact, split)
        else:
            for fact in facts:
                assembler.add(fact)
        return assembler.finish().to_graph()
