"""The script that draws the paper's figures from a run: what it finds is so, and it leaves everything behind."""

from __future__ import annotations

import pytest
import torch

from benchmarks.paper_figures import chosen_heads, main, table_text, wanted_figures
from benchmarks.qualifier_changes import ask_all, gains, pairs, told
from benchmarks.result_file import read_measured
from hynt.front.run import load
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import tiny_settings
from tests.trends.seasons_graph import seasons_graph

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    torch.set_num_threads(1)
    place, settings = tmp_path_factory.mktemp("runs"), tiny_settings(schedule={"epochs": 15, "period": 15})
    return {
        name: train(start(graph(), settings, place / name, CPU), CPU).path
        for name, graph in (("seasons", seasons_graph), ("towns", town_graph))
    }


def test_everything_is_left_behind(runs, tmp_path):
    main([str(runs["seasons"]), "--out", str(tmp_path / "new" / "folder"), "--device", "cpu"])
    names = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert {"trend-1.png", "trend-1.svg", "trend-1.csv", "trend-2.png", "paper_figures.json", "qualifiers.md"} <= names
    found = read_measured(tmp_path / "new" / "folder" / "paper_figures.json")
    assert {figure["relation"] for figure in found["figures"].values()} == {"temperature", "rank"}
    assert [len(figure["heads"]) for figure in found["figures"].values()] == [2, 2]
    assert found["left_out"]["ranking"] == "the graph lacks the relation"
    assert found["model"] == "hynt"


def test_heads_have_the_most_values(runs):
    predictor = load(runs["seasons"], "cpu")
    assert chosen_heads(predictor, "temperature", ["Q1"]) == ["t0", "t1"]
    assert chosen_heads(predictor, "temperature", ["t3", "Q1"]) == ["t3"]
    assert set(wanted_figures(predictor)) == {"trend-1", "trend-2"}


def test_questions_are_judged_as_the_predictor_answers_them(runs):
    predictor = load(runs["towns"], "cpu")
    asked = ask_all(predictor, float("inf"))
    counts = asked.counts()
    assert counts["questions"] == 2 * 24  # 12 weddings in valid and 12 in test, heads and tails
    assert counts["asked_all"]
    assert counts["right_with_qualifiers"] - counts["right_without"] == counts["gained"] - counts["lost"]
    for number in range(6):
        row = told(predictor, asked, number)
        ids = row["ids"]
        ends = ("?", ids["tail"]) if ids["position"] == "head" else (ids["head"], "?")
        whole = predictor.predict((ends[0], ids["relation"], ends[1], ids["qualifiers"]))[0]
        bare = predictor.predict((ends[0], ids["relation"], ends[1]))[0]
        assert (row["prediction"], row["probability"]) == (whole.name, whole.probability)
        assert (row["prediction_without_qualifiers"], row["probability_without"]) == (bare.name, bare.probability)
    for couple in pairs(asked, 5):
        first, second = (told(predictor, asked, number) for number in couple)
        assert first["question"] == second["question"]
        assert first["right"] == first["prediction"] != second["right"] == second["prediction"]
    for number in gains(asked, 5):
        row = told(predictor, asked, number)
        assert row["prediction"] == row["right"] != row["prediction_without_qualifiers"]


def test_time_that_is_up_is_told(runs):
    asked = ask_all(load(runs["towns"], "cpu"), 0.0)
    assert asked.counts() == {
        "questions": 0,
        "right_with_qualifiers": 0,
        "right_without": 0,
        "gained": 0,
        "lost": 0,
        "changed": 0,
        "asked_all": False,
    }


def test_the_table_in_words():
    row = {
        "question": "London · country · ?",
        "qualifiers": ["start time 927", "end time 1707"],
        "prediction": "England|x",
        "probability": 0.912,
        "prediction_without_qualifiers": "United Kingdom",
        "probability_without": 0.5,
    }
    assert table_text([[row]]).splitlines()[2] == (
        "| London · country · ? | start time 927; end time 1707 | England/x (91%) | United Kingdom (50%) |"
    )


def test_a_graph_without_numbers_gets_the_table_alone(tmp_path):
    from hynt.formats.from_python import graph_from_facts

    facts = {"train": [], "valid": [], "test": []}
    for index in range(40):
        split = ("train", "train", "valid", "test")[index % 4]
        facts["train"].append((f"p{index}", "knows", f"p{(index + 1) % 40}"))
        facts[split].append((f"p{index}", "plays", f"role {index % 3}", [("in", f"film {index % 5}")]))
    settings = tiny_settings(schedule={"epochs": 2, "period": 2})
    run = train(start(graph_from_facts(facts, name="roles"), settings, tmp_path / "run", CPU), CPU).path
    main([str(run), "--out", str(tmp_path / "out"), "--device", "cpu", "--limit-seconds", "100"])
    found = read_measured(tmp_path / "out" / "paper_figures.json")
    assert found["figures"] == {}
    assert set(found["left_out"]) == {"fertility-paper", "fertility", "ranking"}
    assert found["qualifiers"]["questions"] == 40
    assert (tmp_path / "out" / "qualifiers.md").read_text(encoding="utf-8").startswith("| question |")
