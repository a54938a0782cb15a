"""Numbers near the ends of what a double can hold are found at the start, or do no harm at the end."""

from __future__ import annotations

import json
import random

import pytest
import torch

import hynt
from hynt.cli.application import run as invoke
from hynt.errors import DataError
from hynt.graph.outliers import hiding_numbers

torch.set_num_threads(1)


def graph_with(**extra):
    facts = {"train": [(f"e{i}", "near", f"e{(i + 1) % 40}") for i in range(40)], "valid": [], "test": []}
    for index in range(40):
        facts[("train", "train", "train", "valid", "test")[index % 5]].append((f"e{index}", "size", 10.0 + index))
    for split, value in extra.items():
        facts[split].append(("e0", "size", value))
    return hynt.graph_from_facts(facts)


def trained(graph, **said):
    return hynt.train(graph, "transea", epochs=1, device="cpu", progress=False, **said)


def test_an_evaluation_near_1e200_is_json():
    found = trained(graph_with(train=1e200, test=2e200)).evaluate(tasks="number")
    (row,) = json.loads(json.dumps(found.to_dict(), allow_nan=False))["number"]["per_relation"]
    assert 1e198 < row["mae"] < row["rmse"] < 1e201


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_value_beyond_all_others_is_refused_before_training(split, tmp_path):
    with pytest.raises(DataError, match=r"'size' has the value 1e\+45, too far from .* 10 to 47") as refused:
        trained(graph_with(**{split: 1e45}), out=tmp_path / "run")
    assert "log scale" not in str(refused.value.advice)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("value", "told"), [(1e45, "1 × 10⁴⁵"), (-1e200, "−1 × 10²⁰⁰"), (1e300, "1 × 10³⁰⁰")])
def test_a_number_that_hides_all_others_is_told_at_import_and_before_training(value, told, tmp_path, capsys):
    """Learned with it, all other numbers of the relation are one point."""
    words = f"size has the number {told}, beside which all others are as one: nine tenths lie between 1"
    source = tmp_path / "facts.jsonl"
    lines = [{"head": f"e{index}", "relation": "size", "tail": 10.0 + index} for index in range(40)]
    lines += [{"head": "e0", "relation": "size", "tail": value}, {"head": "e0", "relation": "near", "tail": "e1"}]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert invoke(["data", "import", str(source), "--out", str(tmp_path / "graph")]) == 0
    assert words in " ".join(capsys.readouterr().err.split())
    notes = []
    hynt.train(tmp_path / "graph", "transea", epochs=1, device="cpu", progress=False, note=notes.append)
    assert any(note.startswith(words) for note in notes)


def test_long_tails_hide_nothing():
    """Populations, whatever their scale, and numbers of which nearly all are zero."""
    chance = random.Random(3)
    facts = [(f"e{index}", "people", round(10 ** chance.uniform(0, 9))) for index in range(400)]
    facts += [(f"e{index}", "dead", 1_000_000 if index == 7 else 0) for index in range(400)]
    graph = hynt.graph_from_facts(facts)
    assert hiding_numbers(graph.vocabulary, list(graph.splits.values())) == []
    world = hynt.read_graph("world")
    assert hiding_numbers(world.vocabulary, list(world.splits.values())) == []


def test_an_audit_finds_1e300(tmp_path):
    facts = [(f"e{i}", "near", f"e{(i + 1) % 60}") for i in range(60)]
    facts += [(f"e{i}", "size", 10.0 + i % 17) for i in range(60)] + [("e5", "size", 1e300)]
    graph = hynt.graph_from_facts({"train": facts})
    found = hynt.audit(graph, out=tmp_path / "audit", model="transea", epochs=1, folds=2, device="cpu", progress=False)
    assert "1 × 10³⁰⁰" in str(found).splitlines()[1]


@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["large", "unspeakable"])
def test_a_whole_number_beyond_doubles_is_refused_in_words(value):
    with pytest.raises(DataError, match="a whole number is too large"):
        hynt.number(value)
    with pytest.raises(DataError, match="train fact 1: a whole number is too large"):
        hynt.graph_from_facts({"train": [("a", "size", value)]})
