"""The report: what it says is what was measured, the test split is read once, and nothing outside of it is needed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from hynt.calibration.held_out import SPLIT
from hynt.cli.application import run as command
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.metrics import SCOPES
from hynt.evaluation.tables import best_trivial, worse_than_trivial
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.reporting.report import graph as report_graph
from hynt.reporting.report.measurements import FirstOnes, first_ones, measured, reliability, surest_and_least
from hynt.reporting.report.metrics import headlines, paper_figures
from hynt.reporting.report.page import NAVIGATION, make_report
from hynt.reporting.report.trust import FITTED_ON, measurements_path
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train
from tests.browser.hostile_names import hostile_graph
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    settings = tiny_settings(schedule={"epochs": 6, "period": 6})
    return train(start(hostile_graph(), settings, tmp_path_factory.mktemp("report") / "run", CPU), CPU).path


@pytest.fixture
def run(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture(scope="module")
def made(trained, tmp_path_factory):
    """A predictor and its report."""
    predictor = load(shutil.copytree(trained, tmp_path_factory.mktemp("made") / "run"), "cpu")
    return predictor, make_report(predictor, entity=predictor.names.entity("p12"))


def attribute_names(page: str) -> set[str]:
    """Of all elements, as a browser finds them: text that looks like an attribute is none."""
    found: set[str] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.update(name for name, _ in attributes)
    parser.feed(page)
    return found


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_figures_are_those_of_the_evaluator(made):
    predictor, report = made
    loaded = predictor.loaded
    found = Evaluator(loaded.graph, loaded.scaling, "test", device=CPU, literals=loaded.literals).evaluate(loaded.model)
    told = text_of(report.page)
    for path in ("link.all.mrr", "link.triplet.hits@10", "relation.all.mrr", "number.all.rmse", "number.triplet.mae"):
        assert f"{found.metric(path):.4f}" in told, path
    low, high = report.measurements["intervals"]["link"]["all"]["mrr"]
    assert f"{low:.4f} – {high:.4f}" in told
    assert low < found.metric("link.all.mrr") < high
    for name in ("frequency", "relation-mean", "neighbour-mean"):
        assert name in told


def test_what_a_trivial_row_does_better_is_said_in_words(made):
    report = made[1]
    measured_, told = report.measurements, text_of(report.page)
    warnings = worse_than_trivial(measured_["evaluation"], measured_["references"])
    assert told.count(" are worse than ") == len(warnings)
    for warning in warnings:
        assert warning[1:] in told
    better = replaced(measured_, "number", {"rmse": 0.0, "mae": 0.0, "vs_median": 0.0})
    assert not [one for one in worse_than_trivial(better, measured_["references"]) if one.startswith("numbers")]
    worse = replaced(measured_, "number", {"rmse": 9.0, "mae": 9.0})
    name, mark = best_trivial(measured_["references"], "number", "rmse")
    sentence = f"numbers are worse than {name}: RMSE 9.0000 against {mark:.4f} over all components."
    assert sentence in worse_than_trivial(worse, measured_["references"])
    page = str(headlines({**measured_, "evaluation": worse}))
    assert f"worse than {name}: {mark:.3f}" in page
    only_triplets = replaced(measured_, "link", {"mrr": 0.0}, count=-1)
    (link,) = [one for one in worse_than_trivial(only_triplets, measured_["references"]) if one.startswith("links")]
    assert link.endswith("over components of the triplet.")


def test_a_model_that_answers_triplets_alone_is_compared_on_them(tmp_path):
    settings = tiny_settings("transea", schedule={"epochs": 1, "period": 1})
    run = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path
    report = make_report(load(run, "cpu"))
    metrics = report.page.split('<section id="metrics"')[1].split("</section>")[0]
    assert "Components of the triplet" in metrics
    assert "All components" not in metrics
    assert "over components of the triplet; the line through the dot" in text_of(metrics)
    trivial = report.measurements["references"]["frequency"]["link"]
    assert trivial["all"]["count"] != trivial["triplet"]["count"]
    assert f"{trivial['triplet']['mrr']:.3f}" in text_of(report.page.split("<main")[0])


def replaced(measurements, task, marks, count=0):
    """The evaluation with other marks of a task, and `count` more questions over all components."""
    found = measurements["evaluation"][task]
    scopes = {scope: {**found[scope], **marks} for scope in SCOPES}
    scopes["all"]["count"] += count
    return {**measurements["evaluation"], task: {**found, "per_relation": [], **scopes}}


def test_page_stands_alone(made):
    page = made[1].page
    assert not re.findall(r"<(?:script|link|img|iframe|object|embed|form)\b", page)
    assert set(re.findall(r"https?://[^\"' <)]+", page)) == {"http://www.w3.org/2000/svg"}, "a name space, not a place"
    assert not [name for name in attribute_names(page) if name.startswith("on") or name in ("style", "src", "action")]
    assert "default-src 'none'" in page.split("</head>")[0].replace("&#x27;", "'")
    assert "@import" not in page
    assert "url(" not in page
    identities = re.findall(r' id="([^"]+)"', page)
    assert len(identities) == len(set(identities))


def test_names_are_escaped(made):
    page = made[1].page
    assert "&lt;/title&gt;&lt;/style&gt;&lt;/svg&gt;&lt;h1&gt;owned" in page
    assert "<h1>owned" not in page
    assert "<b>already" not in page
    assert "employer &lt;b&gt;" in page
    assert page.count("<style>") == 1


def test_split_is_read_once_however_often_the_report_is_made(run):
    predictor = load(run, "cpu")
    first, reused = measured(predictor, "test")
    assert (reused, first["reads_of_split"], predictor.loaded.run.reads("test")) == (False, 1, 1)
    again = make_report(load(run, "cpu"))
    assert again.reused
    assert load(run, "cpu").loaded.run.reads("test") == 1
    assert re.fullmatch(r"<report: [\d,]+ kB, \d+ sections, figures measured before>", repr(again))
    assert again.page == make_report(predictor).page, "kept figures make the same page"
    forced = make_report(predictor, again=True)
    assert (forced.reused, forced.measurements["reads_of_split"]) == (False, 2)
    assert "read twice to measure this run" in forced.page
    predictor.loaded.run.count_read("test")  # somebody evaluates the run
    later = make_report(predictor)
    assert later.reused
    assert "read 3 times to measure this run" in later.page
    assert "3; these figures are of reading 2" in later.page
    on_valid = make_report(predictor, "valid")
    assert on_valid.measurements["split"] == SPLIT == FITTED_ON
    assert "fitted on this very split" in on_valid.page
    assert "fitted on this very split" not in later.page
    assert predictor.loaded.run.reads("test") == 3


def test_kept_figures_of_other_weights_are_not_used(run):
    measured(load(run, "cpu"), "test")
    path = measurements_path(run, "test")
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "split": "elsewhere"}), encoding="utf-8")
    assert command(["report", str(run), "--out", str(run.parent / "r.html")]) == 2, "a changed file is refused"
    path.unlink()
    assert command(["report", str(run), "--out", str(run.parent / "r.html")]) == 0


def test_reliability_bins_hold_every_answer(made):
    predictor, report = made
    for found in first_ones(predictor, "test"):
        bins = reliability(found.after, found.correct)
        assert sum(one["count"] for one in bins) == len(found.after)
        assert sum(one["count"] * one["accuracy"] for one in bins) == pytest.approx(found.correct.sum())
        assert all(one["low"] <= one["confidence"] <= one["high"] for one in bins)
        kept = report.measurements["reliability"][found.task]
        assert kept["bins_after"] == bins
    accuracy = report.measurements["evaluation"]["link"]["all"]["hits@1"]
    links: FirstOnes = first_ones(predictor, "test")[0]
    assert links.correct.mean() == pytest.approx(accuracy, abs=0.02), "all questions are asked of so small a split"


def test_surest_answers_are_ordered_and_mixed(made):
    predictor, _ = made
    links = first_ones(predictor, "test")[0]
    found = surest_and_least(predictor, "test", links)
    most, least = ([row["probability"] for row in found[name]] for name in ("most", "least"))
    assert most == sorted(most, reverse=True)
    assert least == sorted(least)
    assert most[0] == pytest.approx(links.after.max())
    assert least[0] == pytest.approx(links.after.min())
    for row in found["most"]:
        assert row["question"].count("?") >= 1
        assert row["correct"] == (row["answer"] == row["truth"])


def test_probability_of_a_surest_answer_is_what_predict_says(made):
    """Where nothing else is known, the page's probability is the predictor's own."""
    predictor, _ = made
    links = first_ones(predictor, "test")[0]
    tails = [index for index in range(len(links.first)) if links.questions.position[index] == 2]
    index = next(one for one in tails if links.questions.relation[one] == predictor.names.relation("P108"))
    (fact,) = predictor.graph.split("test").take(links.questions.row[[index]]).facts(predictor.graph.vocabulary)
    answers = predictor.predict((fact.head, fact.relation, "?", fact.qualifiers), top=3)
    known = [one for one in answers if one.id == fact.tail or not one.known]
    assert predictor.graph.vocabulary.entities[links.first[index]] == known[0].id
    assert links.after[index] == pytest.approx(known[0].probability, rel=1e-5)


def test_a_relation_is_listed_with_what_it_means():
    facts = [("Ann", "height", 1.7), ("Ann", "knows", "Bob")]
    graph = graph_from_facts({"train": facts}, relation_descriptions={"height": "how <tall>"})
    page = str(report_graph._relations(graph, graph.split("train")))
    assert '<th scope="row">height<small>how &lt;tall&gt;</small></th>' in page
    assert '<th scope="row">knows</th>' in page


def test_facts_are_drawn_without_matplotlib(made, monkeypatch):
    predictor, _ = made
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    section = report_graph.neighbourhood_section(predictor.graph, predictor.names.entity("p1"))
    assert "<svg" in section
    assert "Person 1 · born in · Shelbyville" in section


def test_a_graph_without_numbers_or_a_run_without_calibration(tmp_path):
    torch.set_num_threads(1)
    settings = tiny_settings(schedule={"epochs": 2, "period": 2}, train_on="train+valid")
    folder = train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path
    report = make_report(load(folder, "cpu"))
    assert "trained on the validation split" in report.page
    assert "trends" not in report.sections, "no date is a qualifier there"
    assert command(["report", str(folder), "--split", "valid", "--out", str(tmp_path / "r.html")]) == 2


def test_command_writes_and_says(run, capfd):
    out = run.parent / "page.html"
    assert command(["report", str(run), "--out", str(out), "--entity", "Person 1", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["bytes"] == out.stat().st_size
    assert (found["split"], found["reads_of_split"], found["reused"]) == ("test", 1, False)
    assert found["sections"][0] == "metrics"
    assert "Facts around Person 1" in out.read_text(encoding="utf-8")
    assert command(["report", str(run), "--out", str(out)]) == 0
    assert "the split was not read again; times it was read: 1" in capfd.readouterr().out


@pytest.mark.parametrize(
    "options, word",
    [
        (["--out", "page.pdf"], "page.pdf is not a page"),
        (["--out", "nowhere/page.html"], "there is no folder nowhere"),
        (["--out", "page.html", "--split", "train"], "no report is made of 'train'"),
        (["--out", "page.html", "--entity", "Persn 1"], "The nearest are 'Person 1'"),
    ],
)
def test_wrong_use_is_told_before_any_reading(run, options, word, capfd, monkeypatch):
    monkeypatch.chdir(run.parent)
    assert command(["report", str(run), *options]) == 2
    assert word in capfd.readouterr().err
    assert not (run.parent / "page.html").exists()
    assert load(run, "cpu").loaded.run.reads("test") == 0


def test_paper_speaks_of_its_own_graphs_only():
    assert paper_figures("HN-YG", "train", "test")["number"]["all"] == {"rmse": 0.0694}
    assert paper_figures("WD50K", "train+valid", "test")["link"]["all"]["mrr"] == 0.3834
    assert paper_figures("WD50K", "train", "test")["link"]["all"]["mrr"] == 0.3599
    assert paper_figures("HN-YG", "train", "valid") == {}
    assert paper_figures("world", "train", "test") == {}


def test_paper_row_stands_beside_a_graph_of_its_name(run):
    predictor = load(run, "cpu")
    graph = replace(predictor.graph, manifest=replace(predictor.graph.manifest, name="HN-YG"))
    predictor.loaded = replace(predictor.loaded, graph=graph)
    page = make_report(predictor).page
    assert "hynt, the paper" in page
    assert "0.2035" in page


@pytest.mark.parametrize(
    "model, without", [("frequency", {"trends"}), ("relation-mean", {"answers"}), ("kbln", set()), ("transea", set())]
)
def test_every_kind_of_model_has_a_report(model, without, tmp_path):
    """Models that answer no numbers, or nothing else, that learn nothing by steps, or in two phases."""
    torch.set_num_threads(1)
    graph = hostile_graph()
    settings = resolve_settings(SettingsRequest(model, None, 1), graph, on_gpu=False)
    folder = train(start(graph, settings, tmp_path / "run", CPU), CPU, compiled=False).path
    report = make_report(load(folder, "cpu"))
    assert {name for name, _ in NAVIGATION} - set(report.sections) == without
