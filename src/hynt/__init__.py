"""hynt: knowledge graphs whose facts carry qualifiers and numbers.

    graph = hynt.read_graph("world")              # or import_graph, graph_from_facts, graph_from_table
    run = hynt.train(graph)                       # or hynt.load("runs/first")
    run.predict("Japan", "capital", "?")

Names are loaded on first use, so that `import hynt` and `hynt --help` stay quick and bring in nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hynt.asking.answers import Answers
    from hynt.errors import DataError, HyntError, UsageError
    from hynt.formats.from_python import graph_from_facts, graph_from_table
    from hynt.front.auditing import audit
    from hynt.front.comparing import compare
    from hynt.front.creating import create
    from hynt.front.graphs import (
        check_source,
        export_graph,
        import_graph,
        import_source,
        list_formats,
        list_graphs,
        list_models,
        list_published,
        read_graph,
    )
    from hynt.front.publishing import draw, pull, push
    from hynt.front.run import Run, load
    from hynt.front.serving import serve
    from hynt.front.sweeping import sweep
    from hynt.front.training import ensemble, estimate, train
    from hynt.graph.fact import Fact, Number, Qualifier, fact, number
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.graph.storage import load_graph
    from hynt.models.checking import check_model
    from hynt.service.client import Client

__all__ = [
    "Answers",
    "Client",
    "DataError",
    "Fact",
    "HyntError",
    "KnowledgeGraph",
    "Number",
    "Qualifier",
    "Run",
    "UsageError",
    "__version__",
    "audit",
    "check_model",
    "check_source",
    "compare",
    "create",
    "draw",
    "ensemble",
    "estimate",
    "export_graph",
    "fact",
    "graph_from_facts",
    "graph_from_table",
    "import_graph",
    "import_source",
    "list_formats",
    "list_graphs",
    "list_models",
    "list_published",
    "load",
    "load_graph",
    "number",
    "pull",
    "push",
    "read_graph",
    "serve",
    "sweep",
    "train",
]

_HOMES = {
    name: module
    for module, names in {
        "hynt.asking.answers": "Answers",
        "hynt.errors": "DataError HyntError UsageError",
        "hynt.formats.from_python": "graph_from_facts graph_from_table",
        "hynt.front.auditing": "audit",
        "hynt.front.comparing": "compare",
        "hynt.front.creating": "create",
        "hynt.front.graphs": (
            "check_source export_graph import_graph import_source list_formats list_graphs list_models list_published "
            "read_graph"
        ),
        "hynt.front.publishing": "draw pull push",
        "hynt.front.run": "Run load",
        "hynt.front.serving": "serve",
        "hynt.front.sweeping": "sweep",
        "hynt.front.training": "ensemble estimate train",
        "hynt.graph.fact": "Fact Number Qualifier fact number",
        "hynt.graph.knowledge_graph": "KnowledgeGraph",
        "hynt.graph.storage": "load_graph",
        "hynt.models.checking": "check_model",
        "hynt.service.client": "Client",
    }.items()
    for name in names.split()
}
"""The module that each public name lives in."""


def __getattr__(name: str) -> Any:
    """Loads a public name from the module it lives in (PEP 562), once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hynt' has no attribute {name!r}")
    from importlib import import_module

    _let_threads_sleep()
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _let_threads_sleep() -> None:
    """Lets the threads of matrix products wait asleep, once a short spin has brought nothing; before torch is loaded.

    Where other programs are at work too, threads that wait by spinning take the processor from those that work, and a
    minute becomes ten. A short spin before they sleep costs nobody anything and saves waking them at every turn.
    """
    import os

    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def __dir__() -> list[str]:
    """The public names alone: rooms that were loaded on the way are no part of the promise."""
    return sorted(__all__)
