"""The study goes on where it was stopped, and its table says what validation prefers and what was not run."""

from __future__ import annotations

import json

from benchmarks.laptop_study import (
    DEFAULTS,
    joined,
    page,
    rows_wanted,
    shortened,
    study,
    study_at_once,
    table,
    write_defaults,
)
from benchmarks.result_file import RAW, ResultFile, Row, Run, read_results
from hynt.graph.storage import save_graph
from hynt.training.default_model import Case
from tests.conftest import ROOT
from tests.training.small_graph import small_graph


def test_a_study_runs_what_is_missing_and_tells_what_is_left(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graph")
    graphs, out = {"small": str(tmp_path / "graph")}, tmp_path / "study.json"
    first = list(study(graphs, rows_wanted(graphs, "500", "0.005", "transea"), "cpu", [], out))
    assert len(first) == 1
    assert list(study(graphs, rows_wanted(graphs, "500", "0.005", "transea"), "cpu", [], out)) == []
    found = read_results(out)
    plan = found.row("plan").measured
    assert plan["graphs"]["small 500"]["splits"]["train"] > 50
    plan["planned"].append("small 500 3 cpu hynt")
    text = table(found)
    assert "| small 500 | 0.005 | cpu | transea | link MRR" in text
    assert "not run: small 500 3 cpu hynt" in text


def test_rows_at_once_go_on_where_they_were_stopped_and_one_that_fails_ends_no_other(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graph")
    graphs = {"small": str(tmp_path / "graph"), "gone": str(tmp_path / "gone")}
    wanted, out = rows_wanted(graphs, "500", "0.005", "transea"), tmp_path / "study.json"
    assert list(study_at_once(graphs, wanted, [], out, jobs=2, limit=1.0)) == []  # no row would end in time
    assert "not run: gone 500 0.005 cpu transea, small 500 0.005 cpu transea" in table(read_results(out))
    lines = sorted(study_at_once(graphs, wanted, [], out, jobs=2))
    assert len(lines) == 2
    assert "gone 500 0.005 cpu transea: failed: ended with" in lines[0]
    assert "there is no" in lines[0]
    found = read_results(out)
    row = found.row("small 500 0.005 cpu transea")
    assert row.fingerprint
    assert row.device.startswith("cpu, 1 threads")
    assert row.commands == [
        "python -m benchmarks.laptop_study run --graph small=small --facts 500 --minutes 0.005 --models transea "
        "--device cpu --out study.json"
    ]
    assert found.row("plan").measured["graphs"]["small 500"]["splits"]["train"] > 50
    assert list(study_at_once(graphs, wanted, [], out, jobs=2)) == []


def test_rows_and_plans_of_two_files_become_one():
    def study_of(part, value):
        plan = Row("plan", [], "cpu", measured={"planned": [f"{part} row"], "graphs": {part: {"facts": value}}})
        return ResultFile("models", [plan, Row("shared", [], "cpu", measured={"value": value}), Row(part, [], "cpu")])

    both = joined(study_of("one", 1), study_of("two", 2))
    assert [row.name for row in both.rows] == ["plan", "shared", "one", "two"]
    assert both.row("plan").measured == {
        "planned": ["one row", "two row"],
        "graphs": {"one": {"facts": 1}, "two": {"facts": 2}},
    }
    assert both.row("shared").measured == {"value": 2}
    assert "\nnot run: one row, two row" in table(both)


def test_rows_are_shipped_with_what_tables_ask_for():
    metrics = {"test": {"link": {"all": {"mrr": 0.5, "hits@3": 0.6, "hits@10": 0.7}}}}
    run = Run(0, metrics, {"train": 9.0}, {"epochs": 3}, [[1, 2.0, 0.4]], {"height": {"rmse": 1.0}})
    row = Row("one", [], "cpu", "abcdef0", "hynt", changes=["a=1"], settings={"seed": 0}, runs=[run])
    (short,) = shortened(ResultFile("models", [row])).rows
    assert (short.commit, short.changes, short.settings) == ("abcdef0", ["a=1"], {})
    assert short.runs == [Run(0, {"test": {"link": {"all": {"mrr": 0.5, "hits@10": 0.7}}}}, run.seconds, run.cost)]


def test_settings_of_a_study_are_kept_in_its_rows_and_decide_no_default(tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graph")
    graphs, out = {"small": str(tmp_path / "graph")}, tmp_path / "study.json"
    wanted = rows_wanted(graphs, "500", "0.005", "transea")
    (line,) = study(graphs, wanted, "cpu", ["scale_on=all-splits"], out)
    name = "small 500 0.005 cpu transea scale_on=all-splits"
    assert line.startswith(name)
    row = read_results(out).row(name)
    assert row.settings["scale_on"] == "all-splits"
    assert row.commands[0].endswith("--device cpu --set scale_on=all-splits --out study.json")
    assert "| small 500 |" not in table(read_results(out))


def test_defaults_are_what_validation_places_first_where_several_were_tried(tmp_path):
    def row(graph, model, link):
        metrics = {split: {"link": {"triplet": {"mrr": link}}} for split in ("valid", "test")}
        measured = {"minutes": 3.0, "on": "cpu"}
        return Row(f"{graph} {model}", [], "cpu", model=model, graph=graph, runs=[Run(0, metrics)], measured=measured)

    sizes = {"splits": {"train": 400, "valid": 50}, "number_tails": 100}
    plan = Row("plan", [], "cpu", measured={"planned": [], "graphs": dict.fromkeys(("one", "two", "three"), sizes)})
    rows = [row("one", "hynt", 0.3), row("one", "transea", 0.4), row("two", "hynt", 0.3), plan]
    rows += [row("three", "hynt", 0.3), row("three", "transea", 0.32)]  # by chance, on 100 questions
    both = row("one", "hynt and transea", 0.9)
    both.measured["several_as_one"] = 2
    write_defaults(ResultFile("models", [*rows, both]), tmp_path / "defaults.json")
    found, by_chance = json.loads((tmp_path / "defaults.json").read_text(encoding="utf-8"))
    assert Case(**found) == Case("one", "cpu", 3.0, 400, 0.25, "transea")
    assert Case(**by_chance) == Case("three", "cpu", 3.0, 400, 0.25, "hynt")


def test_the_shipped_defaults_are_those_of_the_shipped_study(tmp_path):
    write_defaults(read_results(RAW / "laptop-study.json"), tmp_path / "defaults.json")
    assert (tmp_path / "defaults.json").read_text(encoding="utf-8") == DEFAULTS.read_text(encoding="utf-8")


def test_the_page_has_the_table_of_the_shipped_study():
    written = (ROOT / "docs" / "results" / "laptop.md").read_text(encoding="utf-8")
    assert page(read_results(RAW / "laptop-study.json")) in written, "say: python -m benchmarks.laptop_study page"
