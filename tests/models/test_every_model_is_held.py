"""A model in the registry has tests of its own: a count of its parameters, and the first losses of its training."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hynt.models.registry import MODELS
from hynt.training.resolve_settings import PRESETS

BASELINES = [name for name in MODELS if f"{name}-paper" in PRESETS]
OURS = ("hynt", "hynt-inductive")
TRIVIAL = {"relation-mean", "relation-median", "neighbour-mean", "frequency"}


def test_every_model_is_ours_a_baseline_or_trivial():
    """A new model belongs to one of these, so that the test below cannot pass it by."""
    assert set(MODELS) == {*OURS, *BASELINES} | TRIVIAL
    assert len(BASELINES) == 12


@pytest.mark.parametrize("name", [*BASELINES, "hynt-inductive"])
def test_a_model_has_its_own_tests(name):
    path = Path(__file__).with_name(f"test_{name.replace('-', '_')}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert any("parameters" in test for test in tests), f"{path.name} counts no parameters"
    assert any(test.startswith("test_the_first_losses") for test in tests), f"{path.name} pins no losses"
    assert f"{name}-small" in PRESETS
