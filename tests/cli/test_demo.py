"""`hynt demo`: trains, evaluates beside trivial models, asks three held-out questions, and keeps the run where told."""

from __future__ import annotations

import json
import shlex
import shutil

import numpy as np
import pytest
import torch

from hynt.asking import examples
from hynt.asking.examples import EXAMPLES, _answers, held_out_examples
from hynt.calibration.held_out import held_out
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.graph.fact_table import HEAD, POSITION_GROUPS, RELATION, TAIL

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_examples_are_held_out_answered_well_and_always_the_same(world_run, tmp_path, monkeypatch):
    run = load(shutil.copytree(world_run, tmp_path / "run"), "cpu")
    found = held_out_examples(run)
    kept = tmp_path / "run" / EXAMPLES
    with monkeypatch.context() as patch:
        patch.setattr(examples, "held_out", lambda *given: pytest.fail("they are kept"))
        assert found == held_out_examples(load(tmp_path / "run", "cpu"))
    kept.write_text(kept.read_text().replace("[", "[[", 1))  # damaged: made again
    assert found == held_out_examples(load(tmp_path / "run", "cpu"))
    assert [example.position for example in found] == [TAIL, TAIL, HEAD, RELATION][: len(found)]
    assert len(found) >= 3
    table = run.graph.split("valid")
    assert len({int(table.head[example.row]) for example in found}) == len(found)
    facts = list(table.facts(run.graph.vocabulary))
    for example in found:
        parts = list(facts[example.row])
        parts[example.position] = "?"
        answers = run.predict(parts)
        assert answers.stored
        if answers.kind == "number":
            continue
        group = held_out(run.loaded, "valid", "relation" if example.position == RELATION else "link", CPU, 1024)[
            POSITION_GROUPS[example.position]
        ]
        right = group.first_answers(1.0).correct
        assert right[group.row == example.row].any()  # it was answered well itself


@pytest.mark.slow
def test_the_whole_way_and_again_with_the_kept_run(hynt, tmp_path):
    done = hynt("demo", "--epochs", "1", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    for word in ("frequency", "neighbour-mean", "MRR", "RMSE", "in the graph, valid: "):
        assert word in done.out
    commands = done.out.rstrip().splitlines()[-2:]
    assert [one.split()[:3] for one in commands] == [
        ["hynt", verb, str(tmp_path / "run")] for verb in ("serve", "predict")
    ]
    assert hynt(*shlex.split(commands[1])[1:]).code == 0
    assert done.out.index("in the graph, valid: ") < done.out.index("MRR"), "answers come before figures"
    assert "training takes about" in done.err
    assert json.loads((tmp_path / "run" / "reads.json").read_text())["test"] == 0
    again = hynt("demo", "--out", tmp_path / "run")
    assert again.code == 0, again.err
    assert f"Using the run in {tmp_path / 'run'}." in again.out.replace("\n", "")


def test_a_question_that_too_many_facts_answer_is_not_begun_with():
    facts = [(f"country {one}", "continent", "Asia") for one in range(9)]
    facts += [("country 1", "capital", "town 1"), ("country 1", "area", 3.0), ("country 1", "area", 4.0)]
    graph = graph_from_facts({"train": facts[:5], "valid": facts[5:]})
    table = graph.split("valid")
    rows = np.arange(len(table))
    told = {fact.relation: [] for fact in graph.facts("valid")}
    for position in (HEAD, TAIL):
        for fact, count in zip(graph.facts("valid"), _answers(graph, table, rows, position), strict=True):
            told[fact.relation].append(int(count))
    assert told["continent"] == [9] * 4 + [1] * 4
    assert told["capital"] == [1, 1]
