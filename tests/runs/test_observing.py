"""A stored fact is judged without itself, on every path; an open question reads every fact of the graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import hynt
from hynt.asking.question import ask
from hynt.auditing.judges import AuditFolder
from hynt.calibration.held_out import held_out, read_numbers
from hynt.errors import UsageError
from hynt.evaluation.evaluator import Evaluator
from hynt.explanation.explaining import folds_of_answers
from hynt.front.auditing import audit
from hynt.graph.changes import fact_hashes
from hynt.graph.fact_table import POSITION_GROUPS, RELATION, TAIL, concatenate
from hynt.reporting.report.measurements import first_ones
from hynt.runs import observing
from hynt.runs.observing import FOLDS, folds_of
from hynt.runs.scoring import read_tiles
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(inductive_run):
    return hynt.load(inductive_run, "cpu")


def row_of(run, split, relation):
    """The first fact of a relation in a split."""
    table = run.graph.split(split)
    return int(np.flatnonzero(table.relation == run.graph.vocabulary.relation_ids[relation])[0])


def asked_of(run, facts, table, row, position):
    """What the run says of a component of one fact when just these facts are observed."""
    found = []
    loaded = observing.observing(run.loaded, facts)
    is_number = run.graph.vocabulary.relation_is_number[table.relation[row]] and position == TAIL

    def work(tile):
        scores = tile.relations() if position == RELATION else tile.numbers() if is_number else tile.entities()
        found.append(scores[0].clone())

    read_tiles(loaded, table, np.array([row]), np.array([position]), CPU, work)
    return found[0].numpy()


def everything(run):
    return concatenate(list(run.graph.splits.values()))


def without_own_fold(run, table, row):
    whole = everything(run)
    own = folds_of(table, run.graph.vocabulary)[row]
    return whole.where(folds_of(whole, run.graph.vocabulary) != own)


def both(run, split, row, position):
    """What is said of a stored fact with its fold left out, and with the fact in view; they must not agree."""
    table = run.graph.split(split)
    blind = asked_of(run, without_own_fold(run, table, row), table, row, position)
    seeing = asked_of(run, everything(run), table, row, position)
    assert not np.allclose(blind, seeing, atol=1e-6)
    return blind, seeing


def unscaled(run, relation, scaled):
    return run.loaded.scaling.unscale(np.array([run.graph.vocabulary.relation_ids[relation]]), np.array([scaled]))[0]


def test_folds_follow_content_alone(run):
    whole, vocabulary = everything(run), run.graph.vocabulary
    folds = folds_of(whole, vocabulary)
    assert set(folds.tolist()) <= set(range(FOLDS))
    assert len(set(folds.tolist())) > 5
    few = np.arange(0, len(whole), 3)
    assert np.array_equal(folds_of(whole.take(few), vocabulary), folds[few])


def test_an_open_question_reads_every_fact(run):
    row = row_of(run, "test", "height")
    _, seeing = both(run, "test", row, TAIL)
    (fact,) = run.graph.split("test").take(np.array([row])).facts(run.graph.vocabulary)
    answer = run.predict(fact.head, "height", "?", {"year": fact.qualifiers[0].value.value})[0]
    assert answer.value == round(unscaled(run, "height", seeing))  # heights are whole


def test_calibration_of_numbers_judges_without_the_fact(run):
    row = row_of(run, "valid", "height")
    blind, _ = both(run, "valid", row, TAIL)
    found = read_numbers(run.loaded, "valid", CPU).questions
    at = np.flatnonzero((found.row == row) & (found.position == TAIL))[0]
    assert found.predicted[at] == pytest.approx(unscaled(run, "height", blind), rel=1e-6)


@pytest.mark.parametrize(("task", "position"), [("link", TAIL), ("relation", RELATION)])
def test_calibration_of_probabilities_judges_without_the_fact(run, task, position, monkeypatch):
    row = row_of(run, "valid", "married")
    blind, seeing = both(run, "valid", row, position)
    tiles = []

    def watched(*given, **told):
        def work(tile):
            tiles.append(tile.entities() if task == "link" else tile.relations())
            given[-1](tile)

        read_tiles(*given[:-1], work, **told)

    monkeypatch.setattr("hynt.calibration.held_out.read_tiles", watched)
    assert len(held_out(run.loaded, "valid", task, CPU)[POSITION_GROUPS[position]])
    scores = torch.cat(tiles).numpy()
    assert np.abs(scores - blind).max(1).min() < 1e-5
    assert np.abs(scores - seeing).max(1).min() > 1e-5


def test_a_report_judges_without_the_fact(run, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "hynt.reporting.report.measurements.read_tiles",
        lambda *given, fold, **more: (seen.append(fold), read_tiles(*given, fold=fold, **more)),
    )
    list(first_ones(run, "test"))
    assert seen
    assert all(np.array_equal(one, folds_of(run.graph.split("test"), run.graph.vocabulary)) for one in seen)


def test_a_trend_judges_known_values_without_them(run):
    row = row_of(run, "valid", "height")
    blind, seeing = both(run, "valid", row, TAIL)
    (fact,) = run.graph.split("valid").take(np.array([row])).facts(run.graph.vocabulary)
    (series,) = run.trends([fact.head], "height", over="year", points=3).series
    at = np.flatnonzero(series.at == fact.qualifiers[0].value.value)[0]
    said = unscaled(run, "height", blind)
    assert said != pytest.approx(unscaled(run, "height", seeing), rel=1e-6)
    assert series.predicted.value[at] == round(said)  # heights are whole


def test_the_rank_of_a_stored_answer_is_told_without_the_fact(run):
    table, graph = run.graph.split("train"), run.graph
    row = row_of(run, "train", "born in")
    blind, _ = both(run, "train", row, TAIL)
    (fact,) = table.take(np.array([row])).facts(graph.vocabulary)
    (stored,) = run.predict(fact.head, "born in", "?").stored
    sharp = blind.astype(np.float64) * run.calibration.inverse_temperature("link", TAIL)
    own = graph.vocabulary.entity_ids[fact.tail]
    assert stored.judged_without
    assert stored.probability == pytest.approx(np.exp(sharp[own] - np.logaddexp.reduce(sharp)), rel=1e-5)
    assert stored.rank == 1 + int((sharp > sharp[own]).sum())


def test_an_explanation_of_a_stored_answer_is_made_without_the_fact(run):
    table, graph = run.graph.split("train"), run.graph
    row = row_of(run, "train", "born in")
    blind, _ = both(run, "train", row, TAIL)
    (fact,) = table.take(np.array([row])).facts(graph.vocabulary)
    found = run.explain(fact.head, "born in", "?", answer=fact.tail)
    sharp = blind.astype(np.float64) * run.calibration.inverse_temperature("link", TAIL)
    stored = graph.vocabulary.entity_ids[fact.tail]
    expected = np.exp(sharp[stored] - np.logaddexp.reduce(sharp))
    assert found.about.probability == pytest.approx(expected, rel=1e-5)
    assert any("the graph holds this answer" in note for note in found.notes)
    other = next(name for name in graph.vocabulary.entities if name.startswith("town") and name != fact.tail)
    assert not any("the graph holds" in note for note in run.explain(fact.head, "born in", "?", answer=other).notes)


def test_an_explanation_of_a_stored_number_is_made_without_the_fact(run):
    row = row_of(run, "valid", "height")
    both(run, "valid", row, TAIL)
    (fact,) = run.graph.split("valid").take(np.array([row])).facts(run.graph.vocabulary)
    asked = ask(run.graph, fact.head, "height", "?", [("year", fact.qualifiers[0].value.value)], run.names)
    own = folds_of(run.graph.split("valid"), run.graph.vocabulary)[row]
    assert folds_of_answers(run, asked, None) == {own}
    told = run.explain(fact.head, "height", "?", {"year": fact.qualifiers[0].value.value})
    assert any("the graph holds this answer" in note for note in told.notes)


def test_an_audit_by_the_run_itself_trains_nothing_and_judges_without_the_fact(run, inductive_run, tmp_path):
    found = audit(inductive_run, device="cpu", work=tmp_path / "work", folds=4)
    assert found.plan.by_states
    assert all(part.by_run for part in found.parts)
    assert set(found.plan.split[found.fact].tolist()) == {0, 1, 2}
    plan, vocabulary = found.plan, run.graph.vocabulary
    for part in found.parts:
        known = {tuple(one) for one in fact_hashes(plan.observed(part.fold), vocabulary).tolist()}
        judged = {tuple(one) for one in fact_hashes(plan.learned.take(part.facts), vocabulary).tolist()}
        assert judged
        assert not judged & known
    height = vocabulary.relation_ids["height"]
    part = next(one for one in found.parts if (plan.table.relation[one.facts] == height).any())
    fact = int(part.facts[plan.table.relation[part.facts] == height][0])
    blind = asked_of(run, plan.observed(part.fold), plan.table, fact, TAIL)
    numbers = AuditFolder(tmp_path / "work").judged(part.name).number
    at = np.flatnonzero((numbers.fact == fact) & (numbers.position == TAIL))[0]
    assert numbers.predicted[at] == pytest.approx(unscaled(run, "height", blind), rel=1e-6)


def test_proposals_that_hide_a_split_do_not_observe_it(run, monkeypatch):
    seen = []
    real = observing.observing
    monkeypatch.setattr(observing, "observing", lambda loaded, table: seen.append(len(table)) or real(loaded, table))
    run.propose(["height"], without=["test"], threshold=0.0, budget=2, share=0.1)
    train, valid = (len(run.graph.split(name)) for name in ("train", "valid"))
    assert seen == [train + valid, train]  # the second to learn from validation how far answers can be trusted


def test_states_are_made_once_for_a_graph_and_once_for_a_fold(run, monkeypatch):
    made = []
    real = type(run.loaded.model).encode
    monkeypatch.setattr(type(run.loaded.model), "encode", lambda self, *given: made.append(1) or real(self, *given))
    fresh = replace(run.loaded, observed=observing.observing(run.loaded, everything(run)).observed)
    for _ in range(2):
        read_numbers(fresh, "valid", CPU)
        held_out(fresh, "valid", "link", CPU)
    assert len(made) == len(np.unique(folds_of(run.graph.split("valid"), run.graph.vocabulary)))


def test_a_large_graph_keeps_the_states_of_one_fold_at_a_time(run, monkeypatch):
    monkeypatch.setattr(observing, "NODES_KEPT", 1)
    observed = observing.observing(run.loaded, everything(run)).observed
    first, second = observed.without([1]), observed.without([2])
    assert observed.without([2]) is second
    assert observed.without([1]) is not first


def test_a_model_that_reads_no_observed_facts_is_asked_as_it_is(tmp_path):
    loaded = hynt.load(
        train(start(small_graph(), tiny_settings(schedule={"epochs": 1}), tmp_path / "r", CPU), CPU).path
    )
    assert loaded.loaded.observed is None
    assert observing.stored_folds(loaded.loaded, loaded.graph.split("valid")) is None
    assert observing.without_folds(loaded.loaded, [1]) is loaded.loaded
    with pytest.raises(UsageError, match="a run of 'hynt' answers about the graph it was trained on and"):
        loaded.on(small_graph(seed=1))


def test_an_evaluation_observes_the_training_split_and_may_leave_out_duplicates(run):
    graph, model = run.graph, run.loaded.model
    twice = concatenate([graph.split("train"), graph.split("test").take(np.array([0, 1]))])
    repeated = replace(graph, splits={**graph.splits, "train": twice})
    plain, same, fewer = (
        Evaluator(one, run.loaded.scaling, without_duplicates=without)
        for one, without in ((graph, False), (repeated, False), (repeated, True))
    )
    assert [len(one.observed_facts) for one in (plain, same, fewer)] == [len(twice) - 2, len(twice), len(twice) - 2]
    found = [one.evaluate(model).to_mapping() for one in (plain, same, fewer)]
    errors = [one["number"]["all"]["rmse"] for one in found]  # the median they are set beside is that of all of train
    assert errors[0] == errors[2] != errors[1]
    assert [one["protocol"]["observed"] for one in found[1:]] == ["train", "train without duplicates of asked facts"]
    assert run.evaluate(references=False, without_duplicates=True).to_dict()["link"] == found[0]["link"]
