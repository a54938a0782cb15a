"""`hynt demo`: trains, evaluates beside trivial models, asks three held-out questions, and keeps the run where told."""

from __future__ import annotations

import pytest
import torch

from hynt.cli.demo import QUESTIONS
from hynt.graph.sentences import Sentences
from hynt.graph.storage import load_graph


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_questions_are_held_out_and_the_graph_says_what_we_say():
    world = load_graph("world")
    say = Sentences(world)
    held_out = [say.fact(fact) for fact in world.facts("test")]
    for (head, relation, tail, qualifiers), truth in QUESTIONS:
        parts = [truth if part == "?" else part for part in (head, relation, tail)]
        start = " · ".join(parts)
        (found,) = [text for text in held_out if text.startswith(f"{start} (")]
        assert all(f"{name} {value}" in found for name, value in qualifiers)


def test_the_whole_way_and_again_with_the_kept_run(hynt, tmp_path):
    done = hynt("demo", "--epochs", "1", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    for word in ("frequency", "neighbour-mean", "MRR", "RMSE", "the graph says: German", "the graph says: 85.4 years"):
        assert word in done.out
    again = hynt("demo", "--out", tmp_path / "run")
    assert again.code == 0, again.err
    assert f"Using the run in {tmp_path / 'run'}." in again.out.replace("\n", "")
