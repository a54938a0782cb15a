"""A trend says what the predictor says, beside what the graph knows; what cannot be followed is told."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from hynt.errors import UsageError
from hynt.front.run import load
from hynt.graph.sentences import format_difference
from hynt.training.run import start, train
from hynt.trends.trends import COLUMNS, trend
from tests.training.small_graph import tiny_settings
from tests.trends.seasons_graph import seasons_graph

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def seasons_run(tmp_path_factory):
    torch.set_num_threads(1)
    settings = tiny_settings(schedule={"epochs": 8, "period": 8})
    return train(start(seasons_graph(), settings, tmp_path_factory.mktemp("seasons") / "run", CPU), CPU).path


@pytest.fixture(scope="module")
def seasons(seasons_run, tmp_path_factory):
    return load(shutil.copytree(seasons_run, tmp_path_factory.mktemp("copy") / "run"), "cpu")


def test_the_curve_is_what_the_predictor_answers(seasons):
    found = trend(seasons, ["Springfield", "t2"], "temperature", points=7, level=0.8)
    assert found.at.tolist() == np.linspace(1990, 2019, 7).tolist()
    for one in found.series:
        for place, at in enumerate(found.at.tolist()):
            asked = seasons.predict((one.id, "temperature", "?", [("point in time", at)]), level=0.8)[0]
            assert asked.value == one.curve.value[place]
            assert asked.interval == (one.curve.low[place], one.curve.high[place])
    assert found.training_range == asked.training_range
    assert found.interval_from == asked.interval_from


def test_known_values_carry_their_split_and_the_answer_to_their_own_question(seasons):
    found = trend(seasons, "Shelbyville", "place in the league")
    (one,) = found.series
    assert one.at.tolist() == [float(year) for year in range(1990, 2020)]
    assert one.known.tolist() == [1.0 + (1 + year) % 4 for year in range(1990, 2020)]
    assert {split: one.split.count(split) for split in one.split} == {"train": 24, "valid": 3, "test": 3}
    assert one.trained_on.tolist() == [split == "train" for split in one.split]
    assert one.notes == ("10 of 30 known values carry 'observers' as well: the curve is asked without",)
    own = seasons.predict(("t1", "rank", "?", [("point in time", 1991), ("observers", 4)]))[0]
    assert own.value == one.predicted.value[1]
    alone = seasons.predict(("t1", "rank", "?", [("point in time", 1990)]))[0]
    assert alone.value == one.curve.value[0]
    inside, held_out = one.covered
    assert held_out == 6
    assert inside == sum(
        not one.trained_on[row] and one.predicted.low[row] <= one.known[row] <= one.predicted.high[row]
        for row in range(30)
    )
    assert one.mean_error(trained_on=False) == pytest.approx(
        np.mean([abs(one.known[row] - one.predicted.value[row]) for row in range(30) if not one.trained_on[row]])
    )


def test_the_series_with_most_values_is_taken_and_another_can_be_chosen(seasons):
    found = trend(seasons, "Springfield", "temperature")
    assert found.condition == ""
    assert found.notes == (
        "10 known values of other series left out (time of day night); a qualifier chooses another series",
    )
    assert found.series[0].notes == ("1 known value without just one 'point in time' left out",)
    night = trend(seasons, "Springfield", "temperature", qualifiers=[("time of day", "night")])
    assert night.condition == "time of day night"
    assert night.series[0].known.tolist() == [5.0] * 10
    assert (night.at[0], night.at[-1]) == (1992.0, 2019.0)
    asked = seasons.predict(("t0", "temperature", "?", [("point in time", 1992), ("time of day", "night")]))[0]
    assert asked.value == night.series[0].curve.value[0]


def test_a_number_among_the_qualifiers_can_be_fixed(seasons):
    found = trend(seasons, "t1", "rank", qualifiers=[("observers", 4)], points=2)
    (one,) = found.series
    assert found.condition == "observers 4"
    assert one.at.tolist() == [1991.0, 1993.0, 1995.0, 1997.0, 1999.0]
    assert one.notes == ()
    assert one.curve.value.tolist() == [one.predicted.value[0], one.predicted.value[-1]]


def test_the_axis_can_be_said(seasons):
    found = trend(seasons, "t0", "temperature", start="2000-07", end=2030, points=3)
    assert found.at[-1] == 2030
    assert found.at_text(found.at[0]) == "2000-07-01"
    (one,) = found.series
    assert one.at.min() == 2001
    assert "11 known values beyond the axis left out" in one.notes
    assert found.training_span == (1990.0, 2019.0)
    assert "training has values from 1990 to 2019 only: the curve beyond is a guess" in found.notes
    beside = trend(seasons, "t0", "rank", over="observers")
    assert (beside.over, beside.at[0], beside.at[-1]) == ("observers", 3.0, 4.0)


def test_a_head_without_values_is_asked_all_the_same(seasons):
    found = trend(seasons, ["state", "t1"], "temperature", points=2)
    assert found.series[0].notes == ("the graph knows no such value",)
    assert found.series[0].covered == (0, 0)
    assert found.series[0].mean_error(trained_on=True) is None
    assert len(found.series[0].curve.value) == 2


def test_tables_agree(seasons):
    found = trend(seasons, "t3", "temperature", points=4)
    table, plain = found.to_pandas(), found.to_dict()
    assert tuple(table.columns) == COLUMNS
    assert table["kind"].tolist() == ["curve"] * 4 + ["known"] * 30
    assert table["predicted"].tolist() == [row["predicted"] for row in plain["rows"]]
    assert plain["heads"][0] | {"notes": 0} == {
        "id": "t3",
        "name": "Brockway",
        "trained_on": 24,
        "held_out": 6,
        "held_out_inside": found.series[0].covered[0],
        "notes": 0,
        "mean_error_trained_on": found.series[0].mean_error(trained_on=True),
        "mean_error_held_out": found.series[0].mean_error(trained_on=False),
    }
    assert plain["rows"][0]["value"] is None
    assert plain["rows"][4]["split"] == "train"


def test_differences_in_words():
    assert format_difference(0.123456, "m") == "0.123 m"
    assert format_difference(1.5, "date") == "1.5 years"


@pytest.mark.parametrize(
    "heads,relation,options,word",
    [
        ([], "temperature", {}, "a trend needs at least one head."),
        (["t0", "Springfield"], "temperature", {}, "a head was given twice."),
        (["t9"], "temperature", {}, "the graph has no entity called 't9'."),
        (["t0"], "temprature", {}, "the graph has no relation called 'temprature'."),
        (["t0"], "in", {}, "'in' holds entities, and a trend is one of numbers."),
        (["t0"], "area", {}, "no fact of 'area' carries a date as a qualifier."),
        (["t0"], "temperature", {"over": "time of day"}, "'time of day' holds entities, and an axis needs numbers."),
        (["t0"], "temperature", {"over": "observers"}, "no fact of 'temperature' carries the qualifier 'observers'."),
        (["t0"], "temperature", {"over": "nothing"}, "the graph has no relation called 'nothing'."),
        (["t0"], "temperature", {"start": 2000, "end": 1990}, "the trend would go from 2000 to 1990."),
        (["t0"], "temperature", {"start": "soon"}, "'soon' is not a date."),
        (["t0"], "temperature", {"points": 1}, "a curve cannot have 1 points."),
        (["t0"], "temperature", {"level": 0.7}, "there are no intervals of 0.7."),
        (["t0"], "temperature", {"qualifiers": [("point in time", 2000)]}, "is the axis, and was given as a qualifier"),
        (["t0"], "temperature", {"qualifiers": [("time of day", "?")]}, "the question has 2 blanks"),
        (["x"] * 65, "temperature", {}, "65 heads are too many."),
    ],
)
def test_what_cannot_be_followed_is_told(seasons, heads, relation, options, word):
    with pytest.raises(UsageError) as problem:
        trend(seasons, heads, relation, **options)
    assert word in problem.value.what
    assert problem.value.advice


def test_values_at_one_time_only_need_a_span(tmp_path):
    from hynt.graph.lookup import NameLookup
    from hynt.trends.plan import TrendPlanner
    from tests.town_graph import town_graph

    planner = TrendPlanner(town_graph(), NameLookup(town_graph()))
    with pytest.raises(UsageError, match="holds entities"):
        planner.plan(["p0"], "spouse")
    with pytest.raises(UsageError, match="Its facts carry no numbers at all"):
        planner.plan(["p0"], "height")


def test_models_that_cannot_are_refused_and_those_without_qualifiers_say_so(tmp_path):
    run = train(start(seasons_graph(), tiny_settings("frequency"), tmp_path / "frequency", CPU), CPU).path
    with pytest.raises(UsageError, match="'frequency' cannot answer a number as tail"):
        trend(load(run, "cpu"), "t0", "temperature")
    run = train(start(seasons_graph(), tiny_settings("relation-mean"), tmp_path / "mean", CPU), CPU).path
    found = trend(load(run, "cpu"), "t0", "temperature")
    assert "this model does not look at qualifiers" in found.notes
    assert len(set(found.series[0].curve.value.tolist())) == 1


def test_a_run_without_calibration_has_no_band(tmp_path):
    run = train(start(seasons_graph(), tiny_settings(train_on="train+valid"), tmp_path / "run", CPU), CPU).path
    found = trend(load(run, "cpu"), "t0", "temperature")
    (one,) = found.series
    assert one.curve.low is None
    assert one.covered is None
    assert one.trained_on.sum() == 27
    assert "there is no interval: the run was trained on the validation split" in found.notes
    assert found.to_dict()["rows"][0]["low"] is None
