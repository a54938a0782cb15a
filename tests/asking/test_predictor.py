"""What a question gets: ranks, probabilities, known facts, numbers with intervals, in every kind of table."""

from __future__ import annotations

import datetime
import shutil

import numpy as np
import pytest
import torch

import hynt
from hynt.asking.predictor import Predictor
from hynt.errors import DataError, UsageError
from hynt.front.run import load
from hynt.graph.units.dates import decimal_year
from hynt.runs.scoring import ReadTile
from hynt.training.run import start, train
from tests.town_graph import town_graph
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


def test_entities_come_ranked_with_probabilities_that_add_up(predictor):
    found = predictor.predict(head="p2", relation="born in", tail="?", top=1000)
    assert found.kind == "entity"
    assert found.candidates == len(found) == predictor.graph.vocabulary.entity_count
    assert [answer.rank for answer in found] == list(range(1, len(found) + 1))
    assert [answer.score for answer in found] == sorted((answer.score for answer in found), reverse=True)
    assert sum(answer.probability for answer in found) == pytest.approx(1.0)
    assert found.calibrated
    assert found.notes == ()
    (known,) = [answer for answer in found if answer.known]
    assert (known.id, known.name, known.known) == ("t2", "Ogdenville", ("train",))


def test_the_temperature_is_in_the_probabilities(predictor):
    found = predictor.predict(head="p2", relation="born in", tail="?", top=1000)
    scores = np.array([answer.score for answer in found]) / predictor.calibration.tasks["link"]["temperature"]
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    assert np.allclose([answer.probability for answer in found], expected)


def test_relations_are_answered_beside_entities_and_numbers(predictor):
    beside_entity = predictor.predict(head="p2", relation="?", tail="t2", top=3)
    assert beside_entity.kind == "relation"
    assert beside_entity.candidates == len(predictor.graph.relations)
    beside_number = predictor.predict(head="p0", relation="?", tail="150 cm")
    assert [(answer.id, answer.known) for answer in beside_number] == [("height", ("train",))]
    assert beside_number[0].probability == pytest.approx(1.0)
    qualifier = predictor.predict(("p0", "spouse", "p7", [("?", "t0")]), top=2)
    assert qualifier.hole == "relation of qualifier 1"


def test_a_number_out_of_reach_of_every_relation_is_refused(predictor):
    with pytest.raises(UsageError, match="far outside the training range of every relation"):
        predictor.predict(head="p0", relation="?", tail="1e9")
    reachable = predictor.predict(head="p0", relation="spouse", tail="p7", qualifiers=[("?", 1995)])
    assert [answer.id for answer in reachable] == ["date"]  # no height is near 1995 m


def test_a_number_has_unit_interval_range_and_what_is_known(predictor):
    found = predictor.predict(head="p2", relation="height", tail="?")
    (answer,) = found
    assert found.kind == "number"
    assert answer.unit == "m"
    assert answer.interval[0] < answer.value < answer.interval[1]
    assert answer.level == 0.9
    assert answer.interval_from == "all relations"
    assert answer.training_range == (1.5, 2.08)
    assert [(known.value, known.splits) for known in answer.known] == [(1.52, ("valid",))]
    wide = predictor.predict(head="p2", relation="height", tail="?", level=0.95)[0].interval
    assert wide[0] <= answer.interval[0]
    assert wide[1] >= answer.interval[1]
    with pytest.raises(UsageError, match=r"no intervals of 0.7.*0.5, 0.8, 0.9, 0.95, 0.99"):
        predictor.predict(head="p2", relation="height", tail="?", level=0.7)


def test_dates_are_asked_and_answered_as_dates(predictor):
    found = predictor.predict(("p2", "spouse", "p9", [("date", "?"), ("place", "t2")]))
    answer = found.to_dict()["answers"][0]
    assert answer["unit"] == "date"
    assert int(answer["text"][:4]) == int(answer["value"]), "as precise as its interval"
    assert answer["known"] == [{"value": decimal_year(1992, 6), "splits": ["valid"]}]
    given = [("date", datetime.date(1992, 6, 1)), ("place", "?")]
    assert predictor.predict(("p2", "spouse", "p9", given))[0].known in (("valid",), ())
    text = [("date", "1992-06"), ("place", "?")]
    same = [predictor.predict(("p2", "spouse", "p9", pairs)).to_dict()["answers"] for pairs in (given, text)]
    assert same[0] == same[1]


def test_every_kind_of_table_says_the_same(predictor):
    ranked = predictor.predict(head="p2", relation="born in", tail="?", top=4)
    number = predictor.predict(head="p2", relation="height", tail="?")
    for found in (ranked, number):
        rows = found.to_dict()["answers"]
        assert found.to_polars().to_dicts() == rows
        assert found.to_pandas().to_dict("records") == rows
    assert str(ranked).splitlines()[0] == "Person 2 · born in · ?"
    assert "90% interval" in str(number)


def test_candidates_narrow_what_is_answered(predictor, tmp_path):
    def ids(**wish):
        return [answer.id for answer in predictor.predict(head="p2", relation="born in", tail="?", top=99, **wish)]

    assert set(ids(candidates="type")) == {"t0", "t1", "t2", "t3"}
    assert set(ids(candidates=["type", "unknown"])) == {"t0", "t1", "t3"}
    assert set(ids(candidates=["Ogdenville", "Springfield"])) == {"t0", "t2"}
    assert "t2" not in ids(candidates="unknown")
    assert set(ids(candidates=[["t0", "p1"], "type"])) == {"t0"}
    relations = predictor.predict(head="p2", relation="?", tail="t2", candidates="type", top=99)
    assert {answer.id for answer in relations} == {"P19", "P108", "P26", "height"}
    values = predictor.predict(("p2", "spouse", "p9", [("place", "?")]), candidates="type", top=99)
    assert {answer.id for answer in values} == {"t0", "t1", "t2"}


@pytest.mark.parametrize(
    "wish,word",
    [
        (["Atlantis"], "no entity called 'Atlantis'"),
        ([["p1"], "type"], "no candidate is left"),
        ("kind", "no entity called 'kind'"),
    ],
)
def test_candidates_that_cannot_be_are_told(predictor, wish, word):
    with pytest.raises(UsageError, match=word):
        predictor.predict(head="p2", relation="born in", tail="?", candidates=wish)


def test_numbers_have_no_candidates(predictor):
    with pytest.raises(UsageError, match="a number has no candidates"):
        predictor.predict(head="p2", relation="height", tail="?", candidates="type")


def test_wrong_calls_are_told(predictor):
    with pytest.raises(UsageError, match="the question was given twice"):
        predictor.predict(("p2", "born in", "?"), head="p2")
    with pytest.raises(UsageError, match="is not a fact"):
        predictor.predict("p2 born in ?")
    with pytest.raises(UsageError, match="0 answers cannot be given"):
        predictor.predict(("p2", "born in", "?"), top=0)


def test_a_fact_object_is_a_question(predictor):
    fact = hynt.fact("p2", "P19", "?")
    assert predictor.predict(fact).to_dict() == predictor.predict(head="p2", relation="P19", tail="?").to_dict()


@pytest.mark.parametrize(
    "model,question,word",
    [
        ("relation-mean", ("p2", "born in", "?"), "'relation-mean' cannot answer an entity as tail."),
        ("relation-mean", ("p2", "?", "t2"), "'relation-mean' cannot answer a relation as relation."),
        ("frequency", ("p2", "height", "?"), "'frequency' cannot answer a number as tail."),
    ],
)
def test_a_kind_that_the_model_cannot_answer_is_refused(model, question, word, tmp_path):
    run = train(start(town_graph(), tiny_settings(model), tmp_path / "run", CPU), CPU).path
    with pytest.raises(UsageError) as problem:
        load(run, "cpu").predict(question)
    assert problem.value.what == f"the model {word}"
    assert "It answers: " in problem.value.advice


def test_models_without_vectors_answer_and_say_what_they_do_not_read(tmp_path):
    run = train(start(town_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path
    predictor = load(run, "cpu")
    found = predictor.predict(("p2", "height", "?", [("place", "t1")]))
    assert found.notes[-1] == "this model does not look at qualifiers"
    assert predictor.predict(("p2", "height", "?"))[0].interval is not None
    with pytest.raises(UsageError, match="'relation-mean' keeps no vectors for entities"):
        predictor.similar("p2")


def test_log_scales_take_no_number_below_zero_and_no_answer_beyond_all_bounds(tmp_path, monkeypatch):
    run = train(start(town_graph(), tiny_settings(log_relations=["height"]), tmp_path / "run", CPU), CPU).path
    predictor = load(run, "cpu")
    low, high = predictor.predict(("p2", "height", "?"))[0].interval
    assert 0 < low < high  # even, on the scale of logarithms, around the answer
    with pytest.raises(UsageError, match=r"'height' has the value -1.0, which its scale cannot take"):
        predictor.predict(("?", "height", -1))
    with pytest.raises(UsageError, match="far outside the training range"):
        predictor.predict(("p2", "?", "-1 m"))
    monkeypatch.setattr(ReadTile, "numbers", lambda tile: torch.full((len(tile.which),), 1e9))
    with pytest.raises(DataError, match="is not a finite number"):
        predictor.predict(("p2", "height", "?"))


def test_literal_models_read_numbers_as_the_graph_spells_them(tmp_path):
    settings = tiny_settings(model={**tiny_settings().model.__dict__, "numbers": "discrete"})
    run = train(start(town_graph(), settings, tmp_path / "run", CPU), CPU).path
    predictor = load(run, "cpu")
    from hynt.evaluation.evaluator import evaluate

    loaded = predictor.loaded
    found = evaluate(loaded.model, loaded.graph, loaded.scaling, "test", ["number"], literals=loaded.literals)
    numbers = found.per_question["number"]
    facts = list(loaded.graph.facts("test"))
    at = next(index for index in range(len(numbers)) if numbers.position[index] == 4)
    fact = facts[int(numbers.row[at])]
    answer = predictor.predict((fact.head, fact.relation, fact.tail, [("date", "?"), fact.qualifiers[1]]))[0]
    assert answer.value == numbers.predicted[at]


def test_an_unfinished_run_answers_and_says_so(tmp_path):
    from hynt.interruption import Stopper
    from hynt.runs.checkpoint import Interrupted, Watcher

    stopper = Stopper()

    class Stop(Watcher):
        def epoch_done(self, record):
            stopper.asked = record.epoch == 2

    folder = start(town_graph(), tiny_settings(), tmp_path / "run", CPU)
    with pytest.raises(Interrupted):
        train(folder, CPU, Stop(), stopper)
    found = load(folder.path, "cpu").predict(("p2", "born in", "?"))
    assert "training is not finished" in found.notes[0]
    assert not (folder.path / "calibration.json").exists()


def test_load_is_public(trained):
    run = hynt.load(trained, "cpu")
    assert isinstance(run, Predictor)
    assert run.predict(("p2", "born in", "?")) == load(trained, "cpu").predict(("p2", "born in", "?"))


def test_an_answer_is_shown_as_what_its_relation_can_be(trained, tmp_path, monkeypatch):
    """Heights are never negative in training: no answer is, and no end of an interval. A date may be BCE."""
    predictor = load(shutil.copytree(trained, tmp_path / "run"), "cpu")
    monkeypatch.setattr(ReadTile, "numbers", lambda tile: torch.full((len(tile.which),), -4.0))
    (found,) = predictor.predict(("p2", "height", "?"))
    assert found.value == 0.0
    assert found.interval[0] == 0.0 <= found.interval[1]
    (date,) = predictor.predict(("p2", "spouse", "p9", [("date", "?"), ("place", "t2")]))
    assert date.value < date.training_range[0]
