"""The paper's tables by one command: its figures, ours beside them from raw files, and the commands that make rows."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks.paper import __main__ as command_line
from benchmarks.paper import beyond
from benchmarks.paper.beyond import BEYOND, literals, paired
from benchmarks.paper.grids import markdown, plain
from benchmarks.paper.printed import BASELINES, PAPER
from benchmarks.paper.running import command_of, leaks, measure_graphs, sizes
from benchmarks.paper.tables import SUMMED, RawFiles, not_run, paper_grids, row_grid, schedule_of
from benchmarks.result_file import Outcomes, ResultFile, Row, Run, read_results
from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.storage import save_graph
from hynt.models.registry import MODELS
from tests.training.small_graph import small_graph


def row(name, graph, model, mrr, seeds=(0,), **more):
    metrics = {"mrr": mrr, "hits@1": mrr / 2, "hits@3": mrr, "hits@10": 2 * mrr, "count": 10}
    runs = [Run(seed, {"test": {"link": {"triplet": metrics, "all": metrics}}}, {"train": 3.0}) for seed in seeds]
    return Row(name, ["python"], "cpu", None, model, graph, split="test", runs=runs, **more)


def written(folder, **files):
    for name, rows in files.items():
        ResultFile("Rows.", rows).write(folder / f"{name.replace('_', '-')}.json")
    return RawFiles(folder)


def test_every_table_of_the_paper_has_its_rows():
    assert sorted(PAPER) == [1, 2, *range(4, 14)]  # the third has no figures
    for section in PAPER[2].sections:
        assert list(section.rows) == [*BASELINES, "hynt"]
    assert set(BASELINES) <= set(MODELS)
    assert PAPER[2].sections[1].rows["hynt"] == [".2035", ".3147", ".2237", ".1474"]
    assert PAPER[6].sections[1].rows["transea"] == [".0778", "-"]
    figures = sum(one != "-" for table in PAPER.values() for s in table.sections for r in s.rows.values() for one in r)
    assert figures == 712


def test_the_graph_that_can_be_had_whole_has_the_papers_sizes():
    records = paper_grids(1, RawFiles())[0].records
    assert [one["ours"] for one in records if one["graph"] == "HN-YG"] == [
        one["paper"] for one in records if one["graph"] == "HN-YG"
    ]


def test_ours_stand_beside_the_papers_and_what_was_not_run_is_said(tmp_path):
    short = {"runs": [Run(0, {"test": {"link": {"triplet": {"mrr": 0.1, "count": 3}}}}, {}, {"budget_limited": True})]}
    raw = written(
        tmp_path,
        baselines_hn_yg=[
            row("HN-YG transea", "HN-YG", "transea", 0.13),
            row("HN-YG stare", "HN-YG", "stare", 0.19),
            Row(**{**vars(row("HN-YG gran", "HN-YG", "gran", 0.1)), **short}),
        ],
        paper_hn_yg=[row("HN-YG transea", "HN-YG", "transea", 0.135, seeds=(0, 1))],
    )
    grid = paper_grids(2, raw)[1]
    shown = {one[0]: one[1:] for one in grid.rows}
    assert grid.columns == ["", "MRR", "difference", "H@10", "H@3", "H@1", "seeds"]
    assert shown["transea"][:2] == [".1350 ± .0000 (.1397)", "−.0047"]  # what --run made comes first
    assert shown["transea"][-1] == "2"
    assert shown["stare"][:2] == [".1900 (.1826)", "+.0074"]
    assert shown["kbln"] == ["not run (.1540)", "–", "not run (.2231)", "not run (.1690)", "not run (.1161)", "–"]
    assert shown["gran \\*"][0] == ".1000 (.1951)"
    assert "HN-FB-S, triplets: nothing was run." in markdown(paper_grids(2, raw))
    assert "\\*" not in plain([grid])


def test_figures_of_another_split_have_no_difference(tmp_path):
    raw = written(tmp_path, baselines_hn_wk_resplit=[row("HN-WK-resplit ram", "HN-WK-resplit", "ram", 0.2)])
    grid = paper_grids(2, raw)[0]
    assert "difference" not in grid.columns
    assert {one["difference"] for one in grid.records} == {None}
    shown = {one[0]: one[1:] for one in row_grid("HN-WK-resplit", raw).rows}
    assert shown["ram"][0] == ".2000 (.1696)", "nothing is near what was measured on another split"


def test_a_graph_at_a_glance_says_what_is_near_and_how_the_others_were_trained(tmp_path):
    curve = [[3, 1.0, 0.11], [7, 2.0, 0.09]]
    cost = {"epochs": 7, "planned_epochs": 5000, "budget_limited": True, "test_facts": 3000}
    cost["best"] = {"epoch": 3, "metric": "link.all.mrr", "value": 0.11}
    cut = Run(0, {"test": {"link": {"triplet": {"mrr": 0.05, "count": 3}}}}, {}, cost, curve)
    raw = written(
        tmp_path,
        baselines_hn_yg=[
            row("HN-YG transea", "HN-YG", "transea", 0.1297, seeds=(0, 1)),
            row("HN-YG stare", "HN-YG", "stare", 0.1725),
            Row("HN-YG nalp", ["python"], "cpu", None, "nalp", "HN-YG", split="test", runs=[cut]),
        ],
    )
    grid = row_grid("HN-YG", raw)
    shown = {one[0]: one[1:] for one in grid.rows}
    assert list(grid.columns)[1:3] == ["link MRR, triplets", "relation MRR, triplets"]
    assert shown["transea"] == ["**.1297** (.1397)", "–", "–", "– (.0778)", "–", ""]
    assert shown["stare"][0] == ".1725 (.1826)"
    assert shown["nalp"][0] == ".0500 (.0838)"
    assert shown["nalp"][-1] == "7 of 5,000 epochs; best at 3 (.110; end .090); asked of 3,000 test facts"
    still = Run(0, {}, {}, cost | {"best": {"epoch": 7, "value": 0.09}}, curve)
    searched = Row("a", [], "cpu", runs=[still], measured={"searched": [{}, {}]})
    assert schedule_of(searched).startswith("7 of 5,000 epochs; 2 settings tried; best at the end; ")
    assert [one["row"] for one in grid.records if one["is_near"]] == ["transea"]


def test_what_was_not_run_is_listed_in_one_place(tmp_path):
    both = [row(f"HN-FB {name}", "HN-FB", name, 0.3) for name in PAPER[10].sections[0].rows if name != "kbln"]
    lines = not_run(written(tmp_path, baselines_hn_fb=both))
    assert "HN-FB, table 10: `kbln`" in lines
    assert "HN-FB-S, tables 2, 4, 5, 6: all rows" in lines
    shuffled = {"changes": ["literals=shuffled"]}
    pair = [row("a", "HN-YG", "kbln", 0.2), row("b", "HN-YG", "kbln", 0.1, **shuffled)]
    lines = beyond.not_run(written(tmp_path, evidence_literals=pair))
    assert "HN-YG: all but `kbln` (trained with others' numbers)" in lines
    assert "world: all models (trained with others' numbers; probabilities and intervals; " in "\n".join(lines)


def test_literals_are_compared_with_the_same_settings_only(tmp_path):
    given = row("HN-YG kbln", "HN-YG", "kbln", 0.15, changes=["a=1", "literals=given"])
    other = row("HN-YG kbln again", "HN-YG", "kbln", 0.3, changes=["a=2"])
    shuffled = row("HN-YG kbln, literals shuffled", "HN-YG", "kbln", 0.14, changes=["a=1", "literals=shuffled"])
    raw = written(tmp_path, evidence_literals=[other, given, shuffled])
    shown = {one[0]: one[1:] for one in literals(raw)[0].rows}
    assert shown["kbln"] == [".1500", ".1400", "−.0100", "not run"]
    assert shown["transea"] == ["not run", "not run", "–", "not run"]


def test_calibration_is_told_of_rows_and_of_runs_that_were_opened(tmp_path):
    known = {"link": {"before": 0.2, "after": 0.03}, "number": {"all": {"coverage": 0.91, "mean_width": 0.25}}}
    run = Run(0, {"test": {}}, calibration=known)
    mine = Row("HN-YG ram", [], "cpu", None, "ram", "HN-YG", split="test", runs=[run])
    opened = {
        "graph": "world",
        "model": "hynt",
        "measured": {"link": {f"calibration_error_{when}": 0.1 for when in ("before", "after")}},
    }
    runs = Row("a", [], "cpu", measured={"runs": [opened, {"run": "b", "error": "there is no run"}]})
    (grid,) = BEYOND["calibration"][1](written(tmp_path, paper_hn_yg=[mine], interval_coverage_small=[runs]))
    assert grid.rows == [
        ["HN-YG", "ram", ".2000 → .0300", "–", "91.0 %", ".250"],
        ["world", "hynt (small)", ".1000 → .1000", "–", "–", "–"],
    ]


def test_groups_stand_side_by_side_and_leaks_apart(tmp_path):
    groups = {
        "leakage": [
            {"group": name, "mrr": mrr, "count": 5}
            for name, mrr in (("triplet not in training", 0.1), ("triplet in training", 0.4))
        ]
    }
    groups["qualifiers"] = [{"group": name, "mrr": 0.2, "count": 3} for name in ("0", "1", "8+")]
    run = Run(0, {"test": {}}, breakdowns={"link": groups})
    raw = written(
        tmp_path, evidence_world=[Row("world ram", [], "cpu", None, "ram", "world", split="test", runs=[run])]
    )
    (by_count,) = BEYOND["qualifiers"][1](raw)
    assert list(by_count.columns) == ["", "0 (3)", "1 (3)", "8+ (3)"]
    leaks_of = BEYOND["leakage"][1](raw)[-1]
    assert list(leaks_of.columns) == ["", "in training (5)", "not in training (5)"]
    assert leaks_of.rows == [["ram", ".4000", ".1000"]]


def outcomes(value, task="link"):
    fact = np.repeat(np.arange(len(value) // 2), 2)
    return Run(0, outcomes={task: Outcomes(fact, np.ones(len(value), dtype=bool), np.asarray(value, float)).packed()})


def test_paired_samples_tell_a_difference_from_chance():
    ranks = np.random.default_rng(0).integers(1, 50, 400)
    same = paired(outcomes(ranks), outcomes(ranks), "link")
    assert (same["difference"], same["low"], same["high"]) == (0.0, 0.0, 0.0)
    better = paired(outcomes(np.maximum(ranks - 3, 1)), outcomes(ranks), "link")
    assert better["difference"] == pytest.approx((1 / np.maximum(ranks - 3, 1)).mean() - (1 / ranks).mean())
    assert 0 < better["low"] < better["difference"] < better["high"]
    assert better["p_value"] < 0.01
    worse = paired(outcomes(ranks / 100 + 0.001, "number"), outcomes(ranks / 200 + 0.001, "number"), "number")
    assert worse["difference"] > 0
    assert paired(outcomes(ranks), outcomes(ranks[:200]), "link") is None  # not the same questions


def test_sizes_are_counted_as_the_paper_counts_and_leaks_by_triplet():
    when = [("since", number(5, literal="5"))]
    facts = {
        "train": [("a", "in", "b"), ("a", "size", number(5, literal="5")), ("a", "in", "c", when)],
        "test": [("a", "in", "b", [("as", "c")]), ("a", "in", "c", when), ("b", "size", number(5, literal="5.0"))],
    }
    graph = graph_from_facts(facts)
    found = sizes(graph)
    assert (found["facts"], found["facts with qualifiers"], found["numeric entities"]) == (6, 3, 2)
    assert (found["distinct triplets, discrete"], found["distinct triplets, numeric"]) == (2, 2)
    assert (found["distinct qualifiers, discrete"], found["distinct qualifiers, numeric"]) == (1, 1)
    assert leaks(graph) == {"test": 3, "triplet": 2, "fact": 1}


def said(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["paper", *map(str, arguments)])
    command_line.main()
    return capsys.readouterr().out


def test_the_command_lists_prints_and_refuses(monkeypatch, capsys, tmp_path):
    listed = said(monkeypatch, capsys)
    assert all(table.name in listed for table in PAPER.values())
    assert all(name in listed for name in SUMMED | BEYOND)
    assert "HN-YG, cost" in said(monkeypatch, capsys, "costs")
    with pytest.raises(SystemExit, match="rows sums up other tables"):
        said(monkeypatch, capsys, "rows", "--run")
    raw = written(tmp_path, baselines_hn_yg=[row("HN-YG ram", "HN-YG", "ram", 0.2)]).folder
    assert "ram .2000 (.1682) +.0318" in " ".join(said(monkeypatch, capsys, 2, "--raw", raw).split())
    assert "| ram | .2000 (.1682) | +.0318 |" in said(monkeypatch, capsys, "links", "--raw", raw, "--markdown")
    found = json.loads(said(monkeypatch, capsys, "links", "--raw", raw, "--json"))
    (one,) = [
        one for part in found["parts"] for one in part["figures"] if one["ours"] and one["column"].endswith("mrr")
    ]
    assert (one["row"], one["paper"], one["commands"]) == ("ram", 0.1682, ["python"])
    with pytest.raises(SystemExit, match="there is no table 'link'; there are"):
        said(monkeypatch, capsys, "link")


def test_rows_are_made_by_commands_that_serve_every_table(monkeypatch, capsys, tmp_path):
    lines = said(
        monkeypatch, capsys, 5, "--run", "--dry-run", "--rows", "gran,hynt", "--raw", tmp_path, "--seeds", "0,1"
    )
    mine = [line for line in lines.splitlines() if "graphs/HN-YG " in line]
    assert len(mine) == 2
    assert "--models gran --tasks link,relation,number --seconds-per-model whole" in mine[0]
    assert "--models hynt:hn-yg-relation" in mine[1]
    assert "'HN-YG hynt, relation'" in mine[1]
    assert all("--seeds 0,1" in line for line in mine)
    both = command_of("WD50K, train and valid", "hynt", "link", tmp_path, tmp_path)
    assert "train_on=train+valid" in both
    assert both[-1].endswith("paper-wd50k-train-and-valid.json")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_made_is_said_and_leaves_raw_files_alone(monkeypatch, capsys, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    told = said(monkeypatch, capsys, 2, "--run", "--graphs", tmp_path, "--raw", raw, "--rows", "transea")
    assert f"not made, since they are not there: rows of {tmp_path}/HN-FB-S, " in told
    assert not list(raw.iterdir())
    with pytest.raises(SystemExit, match="table 2 makes no row transe; it makes transea, "):
        said(monkeypatch, capsys, 2, "--run", "--graphs", tmp_path, "--raw", raw, "--rows", "transe")


def test_graphs_that_are_not_there_keep_their_rows(tmp_path):
    earlier = Row("HN-YG", ["python"], "cpu", measured={"sizes": {"facts": 1}, "leakage": {"test": 1}})
    ResultFile("Sizes.", [earlier]).write(tmp_path / "graphs.json")
    assert measure_graphs(tmp_path / "none", tmp_path, is_dry=False) == ["world"]
    found = read_results(tmp_path / "graphs.json")
    assert found.row("HN-YG") == earlier
    assert found.row("world").measured["sizes"]["facts"] == 33_147


@pytest.mark.slow
def test_a_row_is_made_once_and_then_printed(monkeypatch, capsys, tmp_path):
    save_graph(small_graph(people=40), tmp_path / "graphs" / "HN-YG")
    (tmp_path / "raw").mkdir()
    options = [
        "--run",
        "--graphs",
        tmp_path / "graphs",
        "--raw",
        tmp_path / "raw",
        "--rows",
        "transea",
        "--device",
        "cpu",
    ]
    options += ["--set", "schedule.epochs=2", "--set", "model.dimension=8"]
    monkeypatch.setattr(
        command_line, "commands", lambda *given: (one for one in _commands(*given) if "HN-YG" in str(one))
    )
    assert "transea ." in " ".join(said(monkeypatch, capsys, 2, *options).split())
    made = (tmp_path / "raw" / "paper-hn-yg.json").read_text()
    said(monkeypatch, capsys, 2, *options)
    assert (tmp_path / "raw" / "paper-hn-yg.json").read_text() == made
    found = read_results(tmp_path / "raw" / "paper-hn-yg.json").row("HN-YG transea")
    assert found.runs[0].outcomes["link"]


_commands = command_line.commands
