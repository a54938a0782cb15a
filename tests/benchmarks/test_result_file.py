"""Raw files of results: every one of the project has the one form, and what has not is refused in a sentence."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from benchmarks import result_file
from benchmarks.result_file import (
    RAW,
    DamagedResults,
    Outcomes,
    ResultFile,
    Row,
    Run,
    parsed,
    read_measured,
    read_results,
)


def filled():
    metrics = {"test": {"link": {"triplet": {"mrr": 0.25, "count": 4}, "all": {"mrr": 0.3, "count": 6}}}}
    runs = [Run(seed, metrics, {"train": 1.5}, {"epochs": 3}, [[1, 0.5, 0.2]]) for seed in (0, 1)]
    row = Row(
        "graph model", ["python -m benchmarks.reproduce"], "cpu", "abcdef0", "hynt", "graph", split="test", runs=runs
    )
    return ResultFile("Rows of a test.", [row])


def test_every_raw_file_has_the_one_form():
    files = sorted(RAW.glob("*.json"))
    assert len(files) > 50
    for path in files:
        text = path.read_text(encoding="utf-8")
        rows = parsed(json.loads(text), path.name).rows
        assert rows
        assert len(text) < max(250_000, 2_000 * len(rows)), path.name  # only many rows make a large file
        assert not re.search(r'"(/tmp|/home|/root|/work|~)/', text), path.name


def test_what_is_written_is_read_and_nothing_of_a_machine_is_told(tmp_path):
    path, row = tmp_path / "a.json", filled().rows[0]
    command = 'python benchmarks/device.py "graph=/home/me/graphs/HN-YG keep=/tmp/runs set=a=1"'
    other = Row("other", [command], "cpu", measured={"share": 1 / 3, "none": math.nan})
    ResultFile("Rows of a test.", [row, other]).write(path)
    found = read_results(path)
    assert found.rows[0] == row
    assert found.rows[1].commands == ['python benchmarks/device.py "graph=HN-YG keep=runs set=a=1"']
    assert found.rows[1].measured == {"share": 0.33333333, "none": None}
    assert path.read_text(encoding="utf-8").count("\n") == 4  # a line is a row


def test_seeds_of_a_row_are_joined_and_a_run_that_is_made_again_counts_once():
    first = filled()
    again = Row(**{**vars(first.rows[0]), "runs": [Run(1, {}), Run(2, {})], "commands": ["another"]})
    (row,) = first.with_row(again).rows
    assert [run.seed for run in row.runs] == [0, 1, 2]
    assert row.runs[1].metrics == {}
    assert row.commands == ["python -m benchmarks.reproduce", "another"]


def test_figures_are_means_over_seeds_and_of_what_a_model_answers():
    row = filled().rows[0]
    assert row.figure("link", "triplet", "mrr") == (0.25, 0.0, 2)
    assert row.figure("number", "triplet", "rmse") is None
    assert Row(**{**vars(row), "answers": ["link, head"]}).figure("link", "all", "mrr") is None


def damaged(change):
    content = {"schema": 1, "what": "x", "rows": [result_file._plain(filled().rows[0])]}
    change(content, content["rows"][0])
    return content


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda whole, _: whole.update(schema=2), "the schema is 2"),
        (lambda whole, _: whole.update(more=1), "nothing is called more"),
        (lambda whole, _: whole.update(what=""), "does not say what it is"),
        (lambda whole, row: whole["rows"].append(row), "several rows are called 'graph model'"),
        (lambda _, row: row.pop("device"), "device is missing"),
        (lambda _, row: row.update(commit="yesterday"), "'yesterday' is no commit"),
        (lambda _, row: row.update(commands=["see /home/me/x"]), "is no command"),
        (lambda _, row: row.update(runs=[]), "nothing was run or measured"),
        (lambda _, row: row["runs"].append(row["runs"][0]), "a seed has several runs"),
        (lambda _, row: row["runs"][0].update(speed=1), "nothing is called speed"),
        (lambda _, row: row["runs"][0]["metrics"]["test"].update(links={}), "nothing is called links"),
        (lambda _, row: row["runs"][0]["metrics"]["test"]["link"]["all"].update(mr=1), "nothing is called mr"),
        (lambda _, row: row["runs"][0]["metrics"]["test"]["link"]["all"].update(mrr=math.inf), "inf is no figure"),
        (lambda _, row: row["runs"][0]["seconds"].update(train=-1), "train took -1 seconds"),
        (lambda _, row: row["runs"][0].update(outcomes={"link": "!"}), "cannot be unpacked"),
    ],
)
def test_a_file_of_another_form_is_refused(change, told):
    with pytest.raises(DamagedResults) as refused:
        parsed(damaged(change), "a.json")
    assert told in str(refused.value)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}"])
def test_a_file_that_is_none_is_refused_and_left_alone(text, tmp_path):
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        read_results(file, advice="give another")
    assert str(left.value).endswith(": give another")
    assert text is None or file.read_text(encoding="utf-8") == text


def test_what_else_was_measured_has_a_file_of_its_own(tmp_path):
    result_file.write_measured(tmp_path / "speed.json", {"facts": 3}, "How fast.\n\nMore.", device="cpu")
    assert read_measured(tmp_path / "speed.json", "facts") == {"facts": 3}
    assert read_results(tmp_path / "speed.json").what == "How fast."
    with pytest.raises(SystemExit, match="it has no models: give another"):
        read_measured(tmp_path / "speed.json", "models", advice="give another")


@pytest.mark.parametrize("value", [[1.0, 2.5, 70000.0], [0.25, -0.5, 0.0], []])
def test_outcomes_are_packed_and_unpacked(value):
    fact = np.array([0, 0, 7][: len(value)], dtype=np.int64)
    told = Outcomes(fact, np.array([True, False, True])[: len(value)], np.array(value))
    found = Outcomes.unpacked(told.packed())
    for one, other in zip(told, found, strict=True):
        assert one.tolist() == other.tolist()
