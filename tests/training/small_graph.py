"""A graph small enough to train on in a second: people, towns, heights, and qualifiers of both kinds."""

from __future__ import annotations

import random
from pathlib import Path

from hynt.config import from_mapping
from hynt.formats.from_python import graph_from_facts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import RunSettings

TINY = {
    "batch_size": 16,
    "optimiser": {"learning_rate": 0.005, "clip": 1.0},
    "schedule": {"epochs": 4, "period": 2},
    "losses": {"smoothing": 0.1},
    "model": {
        "dimension": 16,
        "context_layers": 1,
        "prediction_layers": 1,
        "context_heads": 2,
        "prediction_heads": 2,
        "context_feedforward": 32,
        "prediction_feedforward": 32,
        "dropout": 0.1,
    },
}

NARROW = (
    "model.dimension=16",
    "model.context_heads=2",
    "model.prediction_heads=2",
    "model.context_feedforward=32",
    "model.prediction_feedforward=32",
)
"""Of HyNT's two layers, as `--set` takes it."""
TINY_MODEL = (*NARROW, "model.context_layers=1", "model.prediction_layers=1")


def set_each(*changes: str) -> list[str]:
    """These changes of settings as options of a command."""
    return [word for change in changes for word in ("--set", change)]


NO_DROPOUT = {
    "gran": {"dimension": 16, "layers": 2, "heads": 2, "feedforward": 32, "dropout": 0.0},
    "ram": {"dimension": 8, "role_dropout": 0.0, "entity_dropout": 0.0},
    "stare": {
        "dimension": 16,
        "layers": 1,
        "heads": 2,
        "feedforward": 32,
        "dropout": 0.0,
        "message_dropout": 0.0,
        "graph_dropout": 0.0,
    },
    "hy-transformer": {
        "dimension": 16,
        "layers": 1,
        "heads": 2,
        "feedforward": 32,
        "dropout": 0.0,
        "table_dropout": 0.0,
    },
}
"""The other models whose training can be shared among processes, small and without anything random in a step."""


def small_graph(people: int = 20, seed: int = 0) -> KnowledgeGraph:
    chance = random.Random(seed)
    facts = {"train": [], "valid": [], "test": []}
    for index in range(people):
        person, split = f"person {index}", "train" if index < 0.8 * people else ("valid", "test")[index % 2]
        facts["train"].append((person, "born in", f"town {index % 4}"))
        facts["train"].append((person, "knows", f"person {(index + 1) % people}"))
        facts[split].append((person, "height", 150 + index, [("year", 2000 + index % 3)]))
        spouse = f"person {chance.randrange(people)}"
        facts[split].append((person, "married", spouse, [("year", 1990 + index), ("in", f"town {(index + 1) % 4}")]))
    return graph_from_facts(facts, name="small")


def forty_facts() -> KnowledgeGraph:
    """Facts that can all be told from one another: what a model must be able to learn by heart."""
    facts = []
    for index in range(8):
        person = f"person {index}"
        facts.append((person, "born in", f"town {index % 4}"))
        facts.append((person, "knows", f"person {(index + 3) % 8}"))
        facts.append((person, "likes", f"person {(5 * index + 1) % 8}", [("in", f"town {index // 2}")]))
        facts.append((person, "age", 10 * index))
        wedding = [("year", 1990 + 5 * (index % 4)), ("in", f"town {(index + 1) % 4}")]
        facts.append((person, "married", f"person {(index + 4) % 8}", wedding))
    return graph_from_facts({"train": facts}, name="forty")


def tiny_settings(model_name: str = "hynt", **changes) -> RunSettings:
    given = TINY if model_name == "hynt" else {}
    return from_mapping(settings_class_for(model_name), {**given, **changes})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
