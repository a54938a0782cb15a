"""Training on several graphs at once and asking about one that was left out, on graphs of a few facts."""

from __future__ import annotations

import sys

import numpy as np
import torch

from benchmarks.general_checkpoint import (
    FIGURES,
    ROWS,
    Lengths,
    Trainings,
    _ranges,
    _ranges_hold,
    left_out,
    main,
    part,
    side_by_side,
    table,
)
from benchmarks.generated_graph import long_graph
from benchmarks.result_file import ResultFile, Row, read_results
from tests.town_graph import town_graph
from tests.training.small_graph import small_graph

TINY = (
    "model.dimension=8",
    "model.layers=1",
    "model.heads=2",
    "model.feedforward=8",
    "model.bins=11",
    "batch_size=16",
    "schedule.epoch_steps=2",
)


def test_graphs_lie_side_by_side_without_touching():
    one, other = small_graph(), town_graph()
    both = side_by_side({"people": one, "towns": other})
    assert len(both.split("train")) == len(one.split("train")) + len(other.split("train"))
    assert both.vocabulary.relation_count == len(one.relations) + len(other.relations)
    facts = list(both.facts("train"))
    assert facts[0].head == f"people: {next(iter(one.facts('train'))).head}"
    last = list(other.facts("train"))[-1]
    assert (facts[-1].head, facts[-1].relation) == (f"towns: {last.head}", f"towns: {last.relation}")


def test_a_part_is_a_neighbourhood_and_names_nobody_else():
    graph = long_graph(60, 3)
    assert part(graph, None) is part(graph, 10_000) is graph
    small = part(graph, 20)
    train, asked = small.split("train"), small.split("valid")
    assert 20 <= len(train) <= 25
    assert set(small.vocabulary.entities) == {fact.head for fact in small.facts("train")} | {
        one for fact in small.facts("train") for one in _entities(fact)
    }
    assert len(asked) <= len(graph.split("valid"))
    assert {one.name for one in small.entities} < {one.name for one in graph.entities}
    assert part(graph, 20) == small


def test_a_part_asks_for_no_number_beyond_its_own():
    graph = small_graph()
    small = part(graph, 60)
    least, most = _ranges(small.split("train"), small.vocabulary)
    heights = small.vocabulary.relation_ids["height"]
    asked = small.split("valid")
    kept = asked.tail_number[asked.relation == heights]
    whole = graph.split("valid")
    assert ((kept >= least[heights]) & (kept <= most[heights])).all()
    assert not _ranges_hold(whole, graph.vocabulary, (most, least)).all()
    assert _ranges_hold(whole, graph.vocabulary, (least - 1e9, most + 1e9)).all()


def _entities(fact):
    return {one for one in (fact.tail, *(pair.value for pair in fact.qualifiers)) if isinstance(one, str)}


def test_a_graph_that_was_left_out_is_asked_every_way(tmp_path):
    graphs = {"people": small_graph(), "towns": town_graph(), "made": long_graph(60, 3)}
    rows = dict(left_out("towns", graphs, Lengths(1, 1, 0.3, 40), Trainings(tmp_path, torch.device("cpu"), TINY)))
    assert rows["zero-shot"]["facts"] < sum(len(graphs[name].split("train")) for name in ("people", "made"))
    assert set(rows) == {"graph", *ROWS}
    assert set(FIGURES) <= set(rows["zero-shot"]) & set(rows["tuned"])
    assert rows["tuned"] != rows["from scratch"]
    assert table({"towns": rows}).count("\n") == 7


def test_what_goes_wrong_is_written_in_its_place(tmp_path, monkeypatch):
    trainings = Trainings(tmp_path, torch.device("cpu"), TINY)
    usual = trainings.run

    def broken(graph, *more):
        if any(":" in one for one in graph.vocabulary.entities):  # several graphs side by side
            raise RuntimeError("CUDA error: an illegal memory access")
        return usual(graph, *more)

    monkeypatch.setattr(trainings, "run", broken)
    rows = dict(left_out("towns", {"people": small_graph(), "towns": town_graph()}, Lengths(1, 1), trainings))
    assert rows["zero-shot"] == {"error": "RuntimeError: CUDA error: an illegal memory access"}
    assert np.isfinite([rows["from scratch"][name] for name in FIGURES]).all()
    assert "towns, zero-shot: RuntimeError" in table({"towns": rows})


def test_a_process_that_dies_is_told_and_what_was_written_stays(tmp_path, monkeypatch, capsys):
    small_graph().save(tmp_path / "people")
    (tmp_path / "people" / "train.parquet").write_bytes(b"damaged")
    out, before = tmp_path / "general.json", {"zero-shot": {"link.all.mrr": 0.5}}
    ResultFile("x", [Row(name, [], "cpu", measured=before) for name in ("towns", "people")]).write(out)
    arguments = ["--graph", f"people={tmp_path / 'people'}", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["general_checkpoint", *arguments])
    main()
    rows = {row.name: row.measured for row in read_results(out).rows}
    assert rows["towns"] == before
    assert rows["people"].pop("process")["error"].startswith("ended with 1")
    assert rows["people"] == before
    assert "people, process: ended with 1" in capsys.readouterr().out
