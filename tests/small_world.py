"""A small part of `world` under its own names, a run on it that was trained in seconds, and a served one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hynt.formats.from_python import graph_from_facts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

COUNTRIES = ("Japan", "Brazil", "India", "France", "Germany", "Austria", "Chile", "Peru", "Kenya", "Egypt", "Canada")
RELATIONS = ("capital", "life expectancy", "total fertility rate", "shares border with", "population", "currency")

_TOKYO = {"type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": 2, "id": "Q2"}}
_CAPITAL = {"snaktype": "value", "property": "P36", "datatype": "wikibase-item", "datavalue": _TOKYO}
_ENTITIES = [("Q1", "Japan", {"P36": [{"rank": "normal", "mainsnak": _CAPITAL}]}), ("Q2", "Tokyo", {})]
_LINES = [
    json.dumps({"type": "item", "id": name, "labels": {"en": {"language": "en", "value": label}}, "claims": claims})
    for name, label, claims in _ENTITIES
]
DUMP = "[\n" + ",\n".join(_LINES) + "\n]\n"
"""Two entities and a fact, as Wikidata's dumps have them."""


@pytest.fixture(scope="session")
def small_world() -> KnowledgeGraph:
    world = load_graph("world")
    heads = {world.vocabulary.entities[world.names.entity(name, "head")] for name in COUNTRIES}
    facts = {
        split: [fact for fact in world.facts(split) if fact.head in heads and fact.relation in RELATIONS]
        for split in world.splits
    }
    labels = {entity.name: entity.label for entity in world.entities if entity.label}
    return graph_from_facts(facts, labels=labels, convert_units=False, name="world")


@pytest.fixture(scope="session")
def small_world_run(small_world: KnowledgeGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished, calibrated run; nobody writes to it."""
    from hynt.front.run import load

    torch.set_num_threads(1)
    cpu, folder = torch.device("cpu"), tmp_path_factory.mktemp("small-world") / "run"
    settings = tiny_settings(schedule={"epochs": 3, "period": 3})
    path = train(start(small_world, settings, folder, cpu), cpu).path
    _ = load(path, "cpu").calibration
    return path


@pytest.fixture(scope="session")
def small_world_address(small_world_run: Path) -> Iterator[str]:
    """Where that run is served."""
    import re
    import subprocess
    import sys

    command = [sys.executable, "-m", "hynt", "serve", str(small_world_run), "--port", "0", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr is not None
        line = next(line for line in served.stderr if "Serving" in line)
        found = re.search(r"http://\S+", line)
        assert found is not None
        from hynt.service.client import Client
        from tests.service.asking_http import wait_until

        wait_until(Client(found[0]).is_ready, 120)
        yield found[0]
        served.terminate()
