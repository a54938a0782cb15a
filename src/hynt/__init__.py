"""hynt: knowledge graphs whose facts carry qualifiers and numbers.

Names are loaded on first use, so that `import hynt` and `hynt --help` stay quick and bring in nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hynt.asking.predictor import load
    from hynt.auditing.auditing import audit
    from hynt.formats.from_python import graph_from_facts, graph_from_table
    from hynt.graph.fact import Fact, Number, Qualifier, fact, number
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.graph.storage import load_graph
    from hynt.models.checking import check_model
    from hynt.service.client import Client

__all__ = [
    "Client",
    "Fact",
    "KnowledgeGraph",
    "Number",
    "Qualifier",
    "__version__",
    "audit",
    "check_model",
    "fact",
    "graph_from_facts",
    "graph_from_table",
    "load",
    "load_graph",
    "number",
]

_HOMES = {
    "Client": "hynt.service.client",
    "Fact": "hynt.graph.fact",
    "KnowledgeGraph": "hynt.graph.knowledge_graph",
    "Number": "hynt.graph.fact",
    "Qualifier": "hynt.graph.fact",
    "audit": "hynt.auditing.auditing",
    "check_model": "hynt.models.checking",
    "fact": "hynt.graph.fact",
    "graph_from_facts": "hynt.formats.from_python",
    "graph_from_table": "hynt.formats.from_python",
    "load": "hynt.asking.predictor",
    "load_graph": "hynt.graph.storage",
    "number": "hynt.graph.fact",
}


def __getattr__(name: str) -> Any:
    """Loads a public name from the module it lives in (PEP 562), once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hynt' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
