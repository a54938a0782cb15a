"""`hynt predict`, `similar`, `embeddings` and `calibrate` as a user runs them, and every wrong use of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
import torch

from hynt.graph.storage import save_graph
from hynt.training.run import start, train
from tests.cli.conftest import leftovers
from tests.town_graph import town_graph
from tests.training.small_graph import contents, small_graph, tiny_settings

CPU = torch.device("cpu")
BORN = ("--head", "Person 2", "--relation", "born in", "--tail", "?")


@pytest.fixture
def run(town_run, tmp_path):
    return shutil.copytree(town_run, tmp_path / "run")


def test_a_table_for_people(run, hynt):
    done = hynt("predict", run, *BORN, "--top", "70")
    assert done.code == 0
    assert "Person 2 · born in · ?" in done.out
    assert "Ogdenville" in done.out
    assert "train" in done.out
    assert "of 66 candidates" in done.out
    assert "note: calibrating on the validation split, once for this run" in done.err


def test_a_number_for_people(run, hynt):
    shown = hynt("predict", run, "--head", "p2", "--relation", "height", "--tail", "?").out
    assert "90% interval" in shown
    assert "training range  150 cm to 208 cm" in shown  # as the source has it
    assert shown.splitlines()[1] == "  in the graph, valid: 152 cm"
    in_si = hynt("predict", run, "--head", "p2", "--relation", "height", "--tail", "?", "--si").out
    assert "training range  1.5 m to 2.08 m" in in_si


def test_what_the_graph_holds_comes_first_and_guesses_are_folded(run, hynt):
    shown = hynt("predict", run, *BORN).out.splitlines()
    assert shown[1].startswith("  in the graph, train: Ogdenville; rank ")
    assert "  new: none with probability 0.5 or more" in shown
    assert any("guesses below probability 0.5: the first of them" in line for line in shown)
    assert not any("guess " in line for line in shown)  # none of them in a table
    whole = hynt("predict", run, *BORN, "--top", "3").out
    assert whole.count("│ guess") + whole.count("│ in train") == 3
    said = hynt("predict", run, *BORN, "--json").json
    assert [(one["id"], one["splits"]) for one in said["stored"]] == [("t2", ["train"])]
    assert said["new_from"] == 0.5


def test_json_is_one_object_and_can_be_saved(run, hynt, tmp_path):
    arguments = ("--head", "p2", "--relation", "spouse", "--tail", "p9", "--qualifier", "date=1992-06", "--json")
    done = hynt("predict", run, *arguments, "--qualifier", "place=?", "--top", "2", "--save", tmp_path / "answer.json")
    found = done.json
    assert found["question"] == "Person 2 · spouse · Person 9 (date 1992-06; place ?)"
    assert (found["hole"], found["kind"], found["model"], found["graph"]) == (
        "value of qualifier 2",
        "entity",
        "hynt",
        "towns",
    )
    assert set(found["answers"][0]) == {"rank", "id", "name", "probability", "score", "known", "new"}
    assert len(found["answers"]) == 2
    assert json.loads((tmp_path / "answer.json").read_text()) == found
    hidden = hynt("predict", run, *arguments, "--qualifier", "?=t2").json
    assert hidden["kind"] == "relation"


def test_the_command_and_python_say_the_same(run, hynt):
    from hynt.front.run import load

    said = hynt("predict", run, *BORN, "--json", "--device", "cpu").json
    assert said["answers"] == load(run, "cpu").predict(("p2", "P19", "?")).to_dict()["answers"]


def test_candidates(run, hynt, tmp_path):
    (tmp_path / "list.txt").write_text("Springfield\n\nt3\n", encoding="utf-8")

    def ids(*wishes):
        options = [part for wish in wishes for part in ("--candidates", wish)]
        return {answer["id"] for answer in hynt("predict", run, *BORN, "--json", *options).json["answers"]}

    assert ids("type") == {"t0", "t1", "t2", "t3"}
    assert ids("type", "unknown") == {"t0", "t1", "t3"}
    assert ids(tmp_path / "list.txt") == {"t0", "t3"}


def test_an_unknown_name_is_refused_before_torch_is_loaded(run):
    script = (
        "import sys\n"
        "from hynt.cli.application import run\n"
        f"code = run(['predict', {str(run)!r}, '--head', 'Persn 2', '--relation', 'born in', '--tail', '?'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "the graph has no entity called 'Persn 2'" in done.stderr
    assert "The nearest are 'Person 2'" in done.stderr


@pytest.mark.parametrize(
    "arguments,word",
    [
        ([], "the question is empty."),
        (["--head", "p2", "--relation", "born in"], "the question has no tail."),
        (["--head", "p2", "--relation", "born in", "--tail", "t2"], "the question has no blank."),
        (["--head", "?", "--relation", "born in", "--tail", "?"], "the question has 2 blanks: head and tail."),
        (["--head", "p2", "--relation", "bron in", "--tail", "?"], "no relation called 'bron in'"),
        (["--head", "p2", "--relation", "?", "--tail", "Springfield"], "2 entities seen as a tail are called"),
        ([*BORN, "--qualifier", "place"], "'place' is not a qualifier."),
        ([*BORN, "--qualifier", "date=soon"], "'soon' is not a date."),
        ([*BORN, "--candidates", "nowhere.txt"], "the list of candidates cannot be read: No such file"),
        ([*BORN, "--level", "0.7"], "there are no intervals of 0.7."),
        ([*BORN, "--top", "0"], "--top"),
        ([*BORN, "--save", "/nowhere/at/all.json"], "there is no folder"),
    ],
)
def test_wrong_questions_leave_with_2_and_write_nothing(run, hynt, arguments, word):
    before = contents(run)
    refused = hynt("predict", run, *arguments)
    assert refused.code == 2
    assert word in refused.err
    assert refused.out == ""
    assert contents(run) == before


def test_a_kind_that_the_model_cannot_answer(hynt, tmp_path):
    run = train(start(town_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path
    refused = hynt("predict", run, *BORN)
    assert refused.code == 2
    assert "the model 'relation-mean' cannot answer an entity as tail." in refused.err
    assert "number at tail" in refused.err
    refused = hynt("embeddings", run, "--out", tmp_path / "vectors.parquet")
    assert refused.code == 2
    assert "keeps no vectors" in refused.err
    assert not (tmp_path / "vectors.parquet").exists()


@pytest.mark.parametrize(
    "verb", [("predict", *BORN), ("similar", "Person 2"), ("embeddings", "--out", "vectors.parquet")]
)
@pytest.mark.parametrize(
    "name", ["weights.safetensors", "config.toml", "scaling.json", "manifest.json", "graph/train.parquet"]
)
def test_a_run_whose_files_were_changed(run, hynt, verb, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(content)
    before = contents(run)
    refused = hynt(verb[0], run, *verb[1:])
    assert refused.code == 2
    assert name.rpartition("/")[2] in refused.err
    assert contents(run) == before
    assert not (tmp_path / "vectors.parquet").exists()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("verb", [("predict", *BORN), ("similar", "person 2"), ("calibrate",)])
def test_a_graph_that_is_not_the_runs(run, hynt, verb):
    save_graph(small_graph(), run / "graph", overwrite=True)
    refused = hynt(verb[0], run, *verb[1:])
    assert refused.code == 2
    assert "the graph is not the one this run was made with" in refused.err


def test_no_run_there(hynt, tmp_path):
    refused = hynt("predict", tmp_path, *BORN, "--json")
    assert refused.code == 2
    assert "there is no run at" in refused.json["error"]["what"]


def test_similar(run, hynt):
    found = hynt("similar", run, "Person 2", "--top", "3", "--json").json
    assert found["entity"] == {"id": "p2", "name": "Person 2", "type": ""}
    assert [other["rank"] for other in found["similar"]] == [1, 2, 3]
    assert "most like Person 2" in hynt("similar", run, "p2").out
    few, all_of_them = (hynt("similar", run, "Shelbyville", "--top", top).out for top in (1, 100))
    assert "id" not in few.split()
    assert {"id", "t0", "f0"} <= set(all_of_them.split())  # both are called Springfield
    refused = hynt("similar", run, "Persn 2")
    assert refused.code == 2
    assert "'Person 2'" in refused.err


def test_embeddings(run, hynt, tmp_path):
    import pyarrow.parquet as pq

    done = hynt("embeddings", run, "--out", tmp_path / "vectors.parquet")
    assert "66 vectors of 16 numbers" in done.out
    assert pq.read_table(tmp_path / "vectors.parquet").num_rows == 66
    for place, word in ((tmp_path, "is a folder"), (tmp_path / "no" / "file.parquet", "there is no folder")):
        refused = hynt("embeddings", run, "--out", place)
        assert refused.code == 2
        assert word in refused.err


def test_calibrate_says_what_was_fitted_and_measured(run, hynt):
    found = hynt("calibrate", run, "--split", "test", "--json").json
    assert found["calibration"]["link"]["temperature"] > 0
    assert found["measured"]["reads_of_split"] == 1
    assert set(found["measured"]["number"]["levels"]) == {"0.5", "0.8", "0.9", "0.95", "0.99"}
    shown = hynt("calibrate", run, "--split", "test").out
    assert "calibration error before" in shown
    assert "coverage" in shown
    for split, word in (("train", "trained on train"), ("tset", "no split 'tset'")):
        refused = hynt("calibrate", run, "--split", split)
        assert refused.code == 2
        assert word in refused.err


def test_a_run_trained_on_valid_is_not_calibrated(hynt, tmp_path):
    settings = tiny_settings(train_on="train+valid")
    run = train(start(town_graph(), settings, tmp_path / "run", CPU), CPU).path
    assert "not calibrated: the run was trained on the validation split" in hynt("calibrate", run).out
    assert hynt("calibrate", run, "--split", "test").code == 2
    assert "note: probabilities are not calibrated" in hynt("predict", run, *BORN).out
