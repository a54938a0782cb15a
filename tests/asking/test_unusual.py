"""A question that lacks what stored facts nearly always say: which, what to ask instead, and no promise about it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt import number
from hynt.asking.answers import Answers, MissingQualifier, RankedAnswer
from hynt.asking.present import _alike, _told_missing
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.graph.seen_values import UsualQualifiers
from hynt.training.run import start, train
from hynt.trends.plan import TrendPlanner
from hynt.trends.trends import trend_of
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


def test_a_number_asked_without_what_its_facts_always_say_has_no_interval(predictor):
    asked = ("p0", "spouse", "p7", [("date", "?")])
    lacking = predictor.predict(asked)
    (missing,) = lacking.missing
    assert (missing.relation, missing.name, missing.share, missing.facts) == ("place", "place", 1.0, 36)
    assert missing.offered in ("Springfield", "Shelbyville", "Ogdenville")
    assert lacking[0].interval is None
    assert "90%" not in str(lacking)
    assert lacking[0].to_dict()["text"] == str(round(lacking[0].value // 1))  # a year: no interval is sure of a day
    assert lacking.notes[0] == (
        f"there is no interval: all 36 training facts of this relation say place, and the question does not; "
        f"ask with place={missing.offered}"
    )
    whole = predictor.predict((*asked[:3], [("date", "?"), ("place", "t0")]))
    assert whole.missing == ()
    assert whole[0].interval is not None
    assert Answers.from_dict(lacking.to_dict()) == lacking


def test_ranked_answers_say_it_too_and_other_questions_do_not(predictor):
    assert [one.name for one in predictor.predict("p0", "spouse", "?").missing] == ["date", "place"]
    (told,) = [note for note in predictor.predict("p3", "spouse", "?").notes if "may be off" in note]
    assert told == (
        "probabilities may be off: all 36 training facts of this relation say date and place, and the question "
        "does not; ask with date=1993-06, place=Springfield"
    )
    assert predictor.predict("p0", "?", "t0").missing == ()
    assert predictor.predict("p0", "born in", "?").missing == ()
    assert predictor.predict("p0", "height", "?").missing == ()


def test_a_relation_asked_for_without_what_its_facts_always_say(predictor):
    found = predictor.predict("p3", "?", "p10")
    assert [one.text for one in found.stored] == ["spouse"]
    assert [(one.name, one.offered) for one in found.missing] == [("date", "1993-06"), ("place", "Springfield")]
    assert found.notes[0] == (
        "probabilities may be off: all 36 training facts of spouse say date and place, and the question does not; "
        "ask with date=1993-06, place=Springfield"
    )
    assert predictor.predict("p3", "?", "p10", [("date", "1993-06"), ("place", "t0")]).missing == ()


def test_what_is_lacking_is_told_in_one_sentence():
    when, where = MissingQualifier("p1", "when", 0.97, 200, ""), MissingQualifier("p2", "where", 1.0, 200, "Rome")
    rest = "training facts of this relation say"
    assert list(_told_missing([])) == []
    assert list(_told_missing([when])) == [f"97% of the 200 {rest} when, and the question does not"]
    both = f"nearly all 200 {rest} when and where, and the question does not; ask with where=Rome"
    assert list(_told_missing([when, where])) == [both]


def test_what_is_offered_is_what_the_graph_says_of_the_same_thing(predictor):
    """Person 3 married in Springfield in 1993: that is worth asking about, not what is commonest elsewhere."""
    (date, place) = predictor.predict("p3", "spouse", "?").missing
    assert (date.offered, place.offered) == ("1993-06", "Springfield")
    (place,) = predictor.predict("p3", "spouse", "p9", [("date", "?")]).missing  # nothing stored: what is commonest
    assert place.offered in ("Springfield", "Shelbyville", "Ogdenville")


def test_a_number_that_each_fact_has_for_itself_is_not_offered():
    facts = [("a", "near", f"b{index}", [("distance", number(index + 0.5, "km"))]) for index in range(30)]
    graph = graph_from_facts({"train": facts})
    usual = UsualQualifiers.of([graph.split("train")], graph.vocabulary)
    assert usual.common == (None,)
    many = [("a", "near", f"b{index}", [("distance", number(5, "km"))]) for index in range(30)]
    graph = graph_from_facts({"train": many})
    assert UsualQualifiers.of([graph.split("train")], graph.vocabulary).common == (5000.0,)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            ("p0", "height", "?", [("place", "t0")]),
            "there is no interval: no training fact of this relation says place",
        ),
        (
            ("p0", "born in", "?", [("place", "t0"), ("date", "1999")]),
            "probabilities may be off: no training fact of this relation says date or place",
        ),
        (("p0", "date", "?"), "there is no interval: date is the relation of no training fact, only of qualifiers"),
        (
            ("p0", "born in", "?", [("place", "t0")]),
            "probabilities may be off: no training fact of this relation says place",
        ),
    ],
)
def test_what_no_fact_says_is_told_and_nothing_is_promised_about_it(predictor, asked, told):
    """Errors of heights were not measured in places, and those of dates of weddings not on dates of people."""
    found = predictor.predict(asked)
    assert told in found.notes
    assert found.missing == ()
    if found.kind == "number":
        assert found[0].interval is None
        assert "90%" not in str(found)
        assert predictor.predict("p0", "height", "?")[0].interval is not None


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("t0", "height", "?"), "there is no interval: {} is unlike the heads of height in training: none of 36 is {}"),
        (("f0", "born in", "?"), "probabilities may be off: {} is unlike the heads of born in in training: {}"),
        (
            ("?", "spouse", "t0", [("date", "1993"), ("place", "t0")]),
            "probabilities may be off: {} is unlike the tails of spouse in training: {}",
        ),
    ],
)
def test_a_thing_of_another_kind_is_told_and_nothing_is_promised_about_it(predictor, asked, told):
    """Towns have no height: what was measured on people says nothing of them, and no qualifier would help."""
    found = predictor.predict(asked)
    start, end = (told.split("{}")[at] for at in (0, 1))
    assert [note for note in found.notes if note.startswith(start) and end in note], found.notes
    assert found.missing == ()
    if found.kind == "number":
        assert (found[0].interval, found[0].to_dict()["low"]) == (None, None)
        assert "90%" not in str(found)
        assert "there is no interval" in str(found)
    columns = list(predictor.predict_many([asked, ("p0", "height", "?")]))
    assert columns[0] == found
    assert columns[1][0].interval is not None


def test_in_world_a_country_has_no_melting_point_and_an_element_no_population():
    """The packaged run: every question of other kinds, and none of its own."""
    run = load("world", "cpu")
    for head, relation, kind in (
        ("Japan", "melting point", "country"),
        ("Iron", "area", "element"),
        ("Tokyo", "atomic number", "city"),
    ):
        found = run.predict(head, relation, "?")
        assert found[0].interval is None
        (note,) = found.notes
        assert note.startswith(f"there is no interval: {head} is unlike the heads of {relation} in training: none of ")
        assert note.endswith(f" is of type {kind}")
    for head, relation in (("Iron", "melting point"), ("Japan", "area"), ("Neon", "boiling point")):
        assert run.predict(head, relation, "?")[0].interval is not None
    valid = run.graph.split("valid")
    rows = np.arange(len(valid))
    for hidden in (TAIL, HEAD):
        assert run.loaded.entity_kinds.is_unlike(valid, rows, np.full(len(rows), hidden)).mean() < 0.01


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("p0", "spouse", "?", [("date", "2050"), ("place", "t0")]), True),
        (("p0", "spouse", "?", [("date", "1850"), ("place", "t0")]), True),
        (("p0", "spouse", "?", [("date", "1999"), ("place", "t0")]), False),
        (("p0", "spouse", "p7", [("date", "?"), ("place", "t0")]), False),
        (("p0", "?", "p7", [("date", "2050"), ("place", "t0")]), False),
    ],
)
def test_a_date_far_beyond_all_others_is_told(predictor, asked, told):
    says = f"date {asked[3][0][1]} lies beyond all training facts of this relation, 1990-06-01 to 2008-06-01"
    assert predictor.predict(asked).notes == ((f"probabilities may be off: {says}",) if told else ())


@pytest.mark.parametrize(("year", "checked"), [(1999, True), (2018, True), (2040, False), (1950, False)])
def test_no_interval_is_claimed_for_a_date_far_beyond_all_others(year, checked, tmp_path):
    """Training has 2000 to 2017; a tenth more is still like them. A trend goes on, and says where it is a guess."""
    facts = {"train": [], "valid": [], "test": []}
    for index in range(400):
        split = ("train", "train", "train", "valid", "test")[index % 5]
        when = ("when", number(2000.0 + index % 20, "date", str(2000 + index % 20)))
        facts[split].append((f"e{index % 7}", "size", number(10.0 + index % 20), [when]))
    settings = tiny_settings("relation-median")
    run = load(train(start(graph_from_facts(facts), settings, tmp_path / "run", CPU), CPU).path, "cpu")
    found = run.predict("e1", "size", "?", {"when": str(year)})
    assert (found[0].interval is not None) == checked
    told = f"there is no interval: when {year} lies beyond all training facts of this relation, 2000 to 2017"
    assert ("there is no interval" in str(found)) != checked
    assert checked or told in found.notes
    trend = trend_of(run, TrendPlanner(run.graph, run.names).plan(["e1"], "size", start=str(year), end=str(year + 25)))
    (line,) = trend.series
    assert np.isfinite(line.predicted.low).all()
    assert not any("no interval" in note for note in trend.notes)


def test_a_relation_that_is_asked_for_is_not_held_against_the_question(predictor):
    assert predictor.predict("p0", "spouse", "p7", [("date", "1990-06"), ("?", "t0")]).notes == ()


def _graph(dated):
    facts = [
        ("a", "size", number(index), [("when", number(2000 + index % 3, "date"))] if index < dated else [])
        for index in range(100)
    ]
    return graph_from_facts({"train": facts})


def test_nearly_always_is_nineteen_in_twenty():
    for dated, usual in ((95, [1.0]), (94, [])):
        graph = _graph(dated)
        found = UsualQualifiers.of([graph.split("train")], graph.vocabulary)
        assert [bool(len(found.key))] == [bool(usual)]
    graph, found = _graph(95), UsualQualifiers.of([_graph(95).split("train")], _graph(95).vocabulary)
    table = graph.split("train")
    rows = np.array([0, 99, 99])
    assert found.is_unusual(table, rows, np.array([TAIL, TAIL, RELATION])).tolist() == [False, True, False]
    assert [len(found.lacking(table, row, position)) for row, position in ((0, TAIL), (99, TAIL), (99, RELATION))] == [
        0,
        1,
        0,
    ]
    assert found.common == (2001.0,)  # as common as 2000, and later


def test_few_facts_have_no_habit():
    facts = [("a", "size", number(index), [("when", number(2000, "date"))]) for index in range(19)]
    graph = graph_from_facts({"train": facts})
    assert not len(UsualQualifiers.of([graph.split("train")], graph.vocabulary).key)


def test_ties_among_what_is_hardly_possible_are_not_told():
    def ranked(*scored):
        return tuple(
            RankedAnswer(at, name, name, probability, score, (), new=False)
            for at, (name, probability, score) in enumerate(scored, start=1)
        )

    assert _alike(ranked(("France", 0.7, 3.0), ("lamp", 1e-5, -9.0), ("plastic", 1e-5, -9.0))) == ""
    assert _alike(ranked(("France", 0.4, 3.0), ("Japan", 0.4, 3.0), ("lamp", 1e-5, -9.0))) == "France and Japan"
