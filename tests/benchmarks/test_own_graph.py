"""Parts of a graph, trials on their validation splits, and the table on the page of training."""

from __future__ import annotations

from benchmarks.own_graph import cut, tried
from benchmarks.own_graph_table import markdown
from benchmarks.result_file import read_results
from hynt.graph.storage import load_graph, save_graph
from tests.conftest import ROOT
from tests.training.small_graph import small_graph

RAW = ROOT / "docs" / "results" / "raw" / "own-graph.json"


def test_a_part_holds_whole_entities_and_is_split_anew():
    world = load_graph("world")
    by_heads = cut(world, "heads", 300, seed=1, of_type="country")
    heads = {fact.head for fact in by_heads.facts()}
    types = {entity.name: entity.type for entity in world.entities}
    assert {types[head] for head in heads} == {"country"}
    assert len(by_heads) == sum(fact.head in heads for fact in world.facts()) >= 300
    around = cut(world, "neighbourhood", 300, seed=1)
    assert 300 <= len(around) < 2_000
    assert set(around.splits) == {"train", "valid", "test"}
    assert set(around.facts()) <= set(world.facts())


def test_trials_are_made_once_and_do_not_read_the_test_split(tmp_path):
    save_graph(small_graph(people=30), tmp_path / "people")
    short = {"schedule.epochs": 2, "schedule.period": 2}
    plan = [
        {"graph": "people", "label": "frequency", "model": "frequency"},
        {"graph": "people", "label": "before", "preset": "world", "set": short},
        {"graph": "people", "label": "now", "set": {**short, "model.tied_output": True}},
    ]
    out = tmp_path / "found.json"
    lines = list(tried(plan, out, tmp_path))
    assert len(lines) == 3
    assert "people | hynt" in lines[2]
    assert list(tried(plan, out, tmp_path)) == []
    found = read_results(out)
    rows = [row for row in found.rows if row.runs]
    assert [row.runs[0].cost["epochs"] for row in rows] == [0, 2, 2]
    assert rows[2].settings["model"]["tied_output"] is True
    assert all(set(row.runs[0].metrics) == {"valid"} for row in rows)
    asked = [row.runs[0].metrics["valid"]["link"]["all"]["count"] for row in rows]
    assert asked[0] == asked[2] > 0
    table = markdown(found).splitlines()
    graph = small_graph(people=30)
    assert table[2].startswith(f"| people | {len(graph.split('train'))}, {graph.vocabulary.entity_count} | link MRR |")
