"""`hynt complete` as a user runs it, and every wrong use of it."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as parquet
import pytest
import torch

from hynt.completion import completing
from hynt.completion.batches import BatchAnswers
from tests.cli.conftest import leftovers

CPU = torch.device("cpu")
LINES = [
    {"head": "Person 2", "relation": "born in", "tail": "?"},
    {"head": "p2", "relation": "height", "tail": "?"},
    {"head": "?", "relation": "spouse", "tail": "p9", "qualifiers": [["place", "Ogdenville"]]},
]


@pytest.fixture
def run(town_run, tmp_path):
    return shutil.copytree(town_run, tmp_path / "run")


@pytest.fixture
def questions(tmp_path):
    return written(tmp_path / "questions.jsonl", LINES)


def written(path, lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_a_file_of_answers(run, questions, hynt, tmp_path):
    done = hynt("complete", run, questions, "--out", tmp_path / "answers.parquet", "--top", 2, "--json")
    assert done.code == 0
    found = done.json
    assert (found["questions"], found["rows"], found["without_answer"], found["resumed_from"]) == (3, 5, 0, 0)
    assert (found["model"], found["graph"], found["out"]) == ("hynt", "towns", str(tmp_path / "answers.parquet"))
    assert found["questions_per_second"] > 0
    rows = parquet.read_table(tmp_path / "answers.parquet").to_pylist()
    assert [row["question"] for row in rows] == [1, 1, 2, 3, 3]
    asked = hynt("predict", run, "--head", "p2", "--relation", "height", "--tail", "?", "--json").json["answers"][0]
    assert (rows[2]["value"], rows[2]["low"], rows[2]["text"]) == (asked["value"], asked["low"], asked["text"])


def test_it_is_told_in_words_and_is_done_only_once(run, questions, hynt, tmp_path):
    first = hynt("complete", run, questions, "--out", tmp_path / "a.parquet")
    assert first.out.startswith(f"3 questions, 21 rows in {tmp_path / 'a.parquet'}; ")
    assert " a second" in first.out
    assert "calibrating" in first.err
    again = hynt("complete", run, questions, "--out", tmp_path / "a.parquet", "--resume")
    assert again.out == f"3 questions, 21 rows in {tmp_path / 'a.parquet'}: it was done already\n"


def test_candidates_and_recorded_errors(run, hynt, tmp_path):
    lines = [LINES[0], {"head": "Nobody", "relation": "born in", "tail": "?"}, LINES[1]]
    arguments = (run, written(tmp_path / "q.jsonl", lines), "--out", tmp_path / "a.parquet")
    options = ("--candidates", "type", "--candidates", "unknown", "--on-error", "record")
    done = hynt("complete", *arguments, *options)
    assert done.code == 0
    assert "1 question has no answer; the column `error` says why" in done.out
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert {row["id"] for row in rows if row["question"] == 1} == {"t0", "t1", "t3"}
    assert [row["error"] for row in rows if row["question"] == 2] == ["head: the graph has no entity called 'Nobody'."]


def test_an_interrupted_job_says_how_to_go_on(run, questions, hynt, tmp_path, monkeypatch):
    def interrupted(self, batch):
        raise KeyboardInterrupt

    out = tmp_path / "a.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(BatchAnswers, "answered", interrupted)
        done = hynt("complete", run, questions, "--out", out)
    assert done.code == 130
    assert "say --resume to go on" in done.err
    assert not out.exists()
    refused = hynt("complete", run, questions, "--out", out)
    assert refused.code == 2
    assert "a job was stopped before it was done with this output." in refused.err
    assert hynt("complete", run, questions, "--out", out, "--resume", "--top", 3).code == 2
    assert hynt("complete", run, questions, "--out", out, "--resume").code == 0
    assert parquet.read_metadata(out).num_rows == 21


@pytest.mark.parametrize(
    "line,word",
    [
        ({}, "the key 'head' is missing"),
        ({"head": "", "relation": "", "tail": ""}, "the head is empty"),
        ({"head": "p1", "relation": "born in", "tail": "t1"}, "the question has no blank"),
        ({"head": "?", "relation": "?", "tail": "t1"}, "the question has 2 blanks: head and relation"),
        ({"head": "Persn 2", "relation": "born in", "tail": "?"}, "The nearest are 'Person 2'"),
    ],
)
def test_bad_questions_are_refused_with_their_line(run, hynt, tmp_path, line, word):
    path = written(tmp_path / "q.jsonl", [LINES[0], line])
    before = leftovers(tmp_path)
    done = hynt("complete", run, path, "--out", tmp_path / "a.parquet")
    assert done.code == 2
    assert word in done.err
    assert f"{path}:2" in done.err
    assert not done.out
    assert leftovers(tmp_path) == before
    assert not (tmp_path / "a.parquet").exists()


def test_a_run_that_was_changed_is_refused(run, questions, hynt, tmp_path):
    weights = run / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    done = hynt("complete", run, questions, "--out", tmp_path / "a.parquet")
    assert done.code == 2
    assert "weights.safetensors" in done.err
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize(
    "arguments,word",
    [
        (("QUESTIONS",), "there is no place for the answers"),
        (("--out", "a.parquet"), "no questions were given"),
        (("QUESTIONS", "--out", "."), "is a folder"),
        (("QUESTIONS", "--out", "nowhere/a.parquet"), "there is no folder nowhere"),
        (("QUESTIONS", "--out", "QUESTIONS"), "the answers would replace the questions"),
        (("QUESTIONS", "--out", "a.parquet", "--level", "0.7"), "there are no intervals of 0.7"),
        (("QUESTIONS", "--out", "a.parquet", "--missing"), "QUESTIONS has no meaning with --missing"),
        (("QUESTIONS", "--out", "a.parquet", "--without", "test"), "--without has no meaning without --missing"),
        (("absent.jsonl", "--out", "a.parquet"), "the file of questions does not exist"),
        (("--missing", "--out", "a.parquet", "--resume"), "--resume has no meaning with --missing"),
        (("--missing", "--out", "a.parquet", "--relations", "borne in"), "no relation called 'borne in'"),
        (("--missing", "--out", "a.parquet", "--without", "train"), "train cannot be hidden"),
    ],
)
def test_wrong_use(run, questions, hynt, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    before = questions.read_bytes()
    done = hynt("complete", run, *(questions if one == "QUESTIONS" else one for one in arguments))
    assert done.code == 2
    assert word in done.err
    assert questions.read_bytes() == before
    assert not (tmp_path / "a.parquet").exists()


def test_proposals(run, hynt, tmp_path):
    options = ("--threshold", 0, "--widest", 100, "--share", 0.3, "--without", "test", "--budget", 12)
    done = hynt("complete", run, "--missing", "--out", tmp_path / "p.parquet", *options)
    assert done.code == 0
    assert f"12 proposals in {tmp_path / 'p.parquet'}" in done.out
    assert "hidden facts say something of" in done.out
    rows = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert [row["rank"] for row in rows] == list(range(1, 13))
    found = hynt("complete", run, "--missing", "--out", tmp_path / "p.parquet", *options, "--json").json
    assert found["proposals"] == 12
    assert (found["oversight_rate"], found["expected_true"]) == (None, None)  # too little is held out here
    assert "should be true" not in done.out
    assert found["checked"] == sum(row["confirmed"] is not None for row in rows)
    assert found["confirmed"] == sum(bool(row["confirmed"]) for row in rows)
    graph = hynt("data", "import", tmp_path / "p.parquet", "--format", "parquet", "--out", tmp_path / "again", "--json")
    assert graph.json["importing"]["kept"] == 12


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--share", 1, "--relations", "born in"), "no entity lacks a relation that enough of its peers have"),
        (
            ("--share", 0.3, "--without", "test", "--threshold", 1, "--widest", 1e-9),
            "answers were not sure enough: a lower --threshold",
        ),
    ],
)
def test_no_proposals_are_accounted_for(run, hynt, tmp_path, options, word):
    done = hynt("complete", run, "--missing", "--out", tmp_path / "p.parquet", *options)
    assert done.code == 0
    assert "0 proposals" in done.out
    assert word in done.out
    assert "proposed fact" not in done.out


def test_batches_are_as_large_as_the_page_says():
    assert (completing.BATCH, completing.BATCH * completing.PART) == (16_384, 131_072)
