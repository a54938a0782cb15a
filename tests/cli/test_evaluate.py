"""`hynt evaluate`: the JSON of the protocol, the count of readings, and refusals."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from hynt.cli.output import print_table
from hynt.evaluation.tables import comparison_tables
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture
def run(tmp_path):
    torch.set_num_threads(1)
    return train(start(small_graph(), tiny_settings(), tmp_path / "run", CPU), CPU).path


def test_json_has_the_shape_of_the_protocol(run, hynt, tmp_path):
    found = hynt("evaluate", run, "--json", "--device", "cpu", "--save", tmp_path / "result.json").json
    ranking = {"mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "amri", "count"}
    for task in ("link", "relation"):
        for scope in ("triplet", "all"):
            assert set(found[task][scope]) == ranking
    for scope in ("triplet", "all"):
        assert set(found["number"][scope]) == {"rmse", "mae", "vs_median", "count"}
    assert {entry["relation"] for entry in found["number"]["per_relation"]} == {"height", "year"}
    said = found["protocol"]
    assert said["model"] == "hynt"
    assert said["graph"] == "small"
    assert said["split"] == "test"
    assert said["trained_on"] == "train"
    assert said["scaled_on"] == "train"
    assert said["ties"] == "realistic"
    assert said["filter"] == "train+valid+test"
    assert said["seed"] == 0
    assert json.loads((tmp_path / "result.json").read_text()) == found


def test_readings_of_a_split_are_counted(run, hynt):
    counts = [hynt("evaluate", run, "--json", "--device", "cpu").json["protocol"]["reads_of_split"] for _ in range(2)]
    assert counts == [1, 2]
    assert hynt("evaluate", run, "--split", "valid", "--json").json["protocol"]["reads_of_split"] == 1
    assert "times this split was read: 3" in hynt("evaluate", run).out


def test_a_table_for_people(run, hynt):
    shown = hynt(
        "evaluate", run, "--task", "link,number", "--ties", "hynt", "--type-constrained", "--no-references"
    ).out
    assert "MRR" in shown
    assert "RMSE (scaled)" in shown
    assert "link type constrained" in shown
    assert "ties hynt" in shown
    assert "relation, triplet" not in shown  # that task was not asked for
    assert "numbers by relation" in shown


def test_each_question_can_be_kept(run, hynt, tmp_path):
    import pyarrow.parquet as pq

    hynt("evaluate", run, "--questions", tmp_path / "questions.parquet", "--json")
    assert pq.read_table(tmp_path / "questions.parquet").num_rows > 0


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["--split", "train"], "trained on train"),
        (["--split", "tset"], "no split 'tset'"),
        (["--task", "links"], "unknown task 'links'"),
        (["--save", "/nowhere/at/all.json"], "there is no folder"),
    ],
)
def test_wrong_wishes_are_told_and_not_counted(run, hynt, arguments, word):
    refused = hynt("evaluate", run, *arguments)
    assert refused.code == 2
    assert word in refused.err
    assert hynt("evaluate", run, "--json").json["protocol"]["reads_of_split"] == 1


def test_a_tampered_run_is_refused(run, hynt):
    before = (run / "reads.json").read_bytes()
    content = bytearray((run / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "weights.safetensors").write_bytes(content)
    refused = hynt("evaluate", run)
    assert refused.code == 2
    assert "the file was changed: its hash is not the manifest's" in refused.err
    assert (run / "reads.json").read_bytes() == before


def test_trivial_models_stand_beside_the_run(run, hynt):
    found = hynt("evaluate", run, "--json").json["references"]
    assert set(found) == {"frequency", "relation-mean", "relation-median", "neighbour-mean"}
    assert set(found["frequency"]) == {"link", "relation"}
    assert set(found["relation-mean"]) == {"number"}
    assert 0 < found["frequency"]["link"]["all"]["mrr"] <= 1
    assert "frequency" in hynt("evaluate", run).out
    assert "references" not in hynt("evaluate", run, "--json", "--no-references").json


def test_intervals_hold_the_metric(run, hynt):
    found = hynt("evaluate", run, "--json", "--intervals", "--no-references").json
    for task, metric in (("link", "mrr"), ("relation", "hits@1"), ("number", "rmse")):
        low, high = found["intervals"][task]["all"][metric]
        assert low <= found[task]["all"][metric] <= high


def test_results_break_down_into_parts_that_add_up(run, hynt):
    found = hynt("evaluate", run, "--json", "--breakdown", "relation,position,qualifiers,frequency,leakage").json
    for task, groupings in found["breakdowns"].items():
        for rows in groupings.values():
            assert sum(row["count"] for row in rows) == found[task]["all"]["count"]
    assert "frequency" not in found["breakdowns"]["relation"]
    assert "link by position" in hynt("evaluate", run, "--breakdown", "position").out
    refused = hynt("evaluate", run, "--breakdown", "colour")
    assert refused.code == 2
    assert "results cannot be broken down by 'colour'" in refused.err


def test_numbers_of_other_facts_change_links_that_numbers_helped(run, hynt):
    found = hynt("evaluate", run, "--json", "--no-references", "--shuffle-literals", "--compare", run).json
    assert found["protocol"]["literals"] == "shuffled"
    assert "number" not in found
    asked = found["comparison"]["link"]["all"]["questions"]
    assert asked["first_better"] + asked["second_better"] > 0
    assert sum(asked.values()) == found["link"]["all"]["count"]


def test_a_table_of_literals_is_made_of_shuffled_numbers_where_training_or_the_question_says_so(tmp_path):
    from hynt.runs.opening import load_run

    def table(run, **options):
        return next(value for name, value in load_run(run, **options).model.named_buffers() if "literal" in name)

    settings = tiny_settings("kbln", model={"dimension": 8}, schedule={"epochs": 1}, with_statistics=False)
    given = train(start(small_graph(), settings, tmp_path / "given", CPU), CPU).path
    shuffled = train(start(small_graph(), replace(settings, literals="shuffled"), tmp_path / "dealt", CPU), CPU).path
    assert not torch.equal(table(given), table(shuffled))
    assert torch.equal(table(given, shuffle_literals=True), table(shuffled))


def test_runs_on_two_graphs_are_not_compared_and_nothing_is_read(run, hynt, tmp_path):
    other = train(start(small_graph(people=30), tiny_settings(), tmp_path / "other", CPU), CPU).path
    done = hynt("evaluate", run, "--compare", other)
    assert done.code == 2
    assert "different graphs (entities: changed; " in done.err
    assert "--compare" in done.err
    assert hynt("evaluate", run, "--json", "--no-references").json["protocol"]["reads_of_split"] == 1


def test_two_runs_are_compared_question_by_question(run, hynt, tmp_path):
    other = train(start(small_graph(), tiny_settings(seed=1), tmp_path / "other", CPU), CPU).path
    found = hynt("evaluate", run, "--json", "--no-references", "--compare", other).json
    mrr = found["comparison"]["link"]["all"]["mrr"]
    assert mrr["first"] == pytest.approx(found["link"]["all"]["mrr"])
    assert mrr["difference"] == pytest.approx(mrr["first"] - mrr["second"])
    assert mrr["low"] <= mrr["difference"] <= mrr["high"]
    assert "the other" in hynt("evaluate", run, "--no-references", "--compare", other).out


def test_a_difference_that_rounds_to_nothing_has_no_sign():
    console = Console(file=io.StringIO(), width=120)
    found = {"first": 1.21, "second": 1.23, "difference": -0.02, "low": -0.26, "high": -0.04, "p_value": 0.07}
    (table,) = comparison_tables({"comparison": {"relation": {"all": {"mean_rank": found}}}})
    print_table(console, table.columns, table.rows, table.title)
    assert "│ 1.2      │ 1.2       │ 0.0        │ -0.3 … 0.0" in console.file.getvalue()


def test_a_model_that_reads_triplets_only_is_said_to_be_asked_those(hynt, tmp_path):
    settings = tiny_settings("transea", schedule={"epochs": 1, "period": 1})
    run = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path
    told = hynt("evaluate", run, "--task", "link,number", "--device", "cpu").out
    assert "link, triplet" in told
    assert "link, all" not in told
    found = hynt("evaluate", run, "--json", "--device", "cpu").json
    assert found["link"]["all"] == found["link"]["triplet"]
    left = found["protocol"]["unanswered"]["link"]
    told = " ".join(told.split())
    assert f"link: only components of triplets were asked; transea does not answer the other {left:,} questions" in told


def test_numbers_that_a_mean_beats_are_told_in_words(hynt, tmp_path):
    """One step at a rate of nothing: the model has learned nothing."""
    settings = tiny_settings(schedule={"epochs": 1, "period": 1}, optimiser={"learning_rate": 1e-12})
    run = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path
    found = hynt("evaluate", run, "--json", "--device", "cpu").json
    (rmse,) = [note for note in found["notes"] if note.startswith("numbers are worse than ") and "RMSE" in note]
    best = min(
        ("relation-mean", "relation-median", "neighbour-mean"),
        key=lambda name: found["references"][name]["number"]["all"]["rmse"],
    )
    own, mark = found["number"]["all"]["rmse"], found["references"][best]["number"]["all"]["rmse"]
    assert rmse == f"numbers are worse than {best}: RMSE {own:.4f} against {mark:.4f} over all components."
    assert rmse[1:] in " ".join(hynt("evaluate", run, "--device", "cpu").out.split())
