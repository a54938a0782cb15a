"""Numbers near the ends of what a double can hold are found at the start, or do no harm at the end."""

from __future__ import annotations

import json

import pytest
import torch

import hynt
from hynt.errors import DataError

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
