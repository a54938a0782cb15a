"""The questions that speed is measured with, and the script that measures it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import completion_speed
from benchmarks.completion_questions import KINDS, drawn, write_jsonl, write_parquet
from benchmarks.result_file import read_measured
from hynt.completion.batches import BatchAnswers, CompletionOptions
from hynt.completion.question_files import open_questions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("write", [write_parquet, write_jsonl])
def test_drawn_questions_ask_for_what_they_should(predictor, tmp_path, kind, write):
    ending = "parquet" if write is write_parquet else "jsonl"
    path = write(drawn(predictor.graph, 40, 0, (kind,)), tmp_path / f"q.{ending}")
    (batch,) = open_questions(path).batches(100)
    found = BatchAnswers(predictor, CompletionOptions()).checked(batch, explain=True)
    assert not found.refused
    assert len(found.asked) == 40
    assert set(found.asked.kind.tolist()) == {(0, 1, 2, 1)[KINDS.index(kind)]}
    assert found.asked.is_tried.all() == (kind == KINDS[3])
    assert len(np.unique(found.asked.position)) > 1


def test_the_script_measures_everything(predictor, tmp_path, monkeypatch, capsys):
    out = tmp_path / "speed.json"
    arguments = ["--run", str(predictor.loaded.run.path), "--questions", "64", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["completion_speed", *arguments])
    completion_speed.main()
    found = read_measured(out)
    assert found["graph"] == "towns"
    assert len(found["measures"]) == 11
    assert all(one["questions_per_second"] > 0 for one in found["measures"].values())
    assert "one by one" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["completion_speed", *arguments, "--limit-seconds", "0"])
    completion_speed.main()
    assert "measures" in read_measured(out)
