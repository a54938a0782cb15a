"""Conformal intervals: they cover as promised on data of any shape, per relation and pooled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt import number
from hynt.batches.number_scaling import NumberScaling
from hynt.calibration.intervals import (
    LEVELS,
    Radii,
    conformal_radius,
    fit_conditional_radii,
    fit_radii,
    furthest_ends,
    never_negative,
    training_spread,
)
from hynt.calibration.reach import BINS, AskedNumbers, Reach, ResidualScale
from hynt.errors import DataError
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import TAIL
from hynt.graph.vocabulary import Relation, Vocabulary


@given(st.integers(1, 200), st.sampled_from(LEVELS), st.integers(0, 2**31))
def test_the_radius_is_the_order_statistic_of_the_definition(count, level, seed):
    residuals = np.random.default_rng(seed).exponential(size=count)
    radius = conformal_radius(residuals, level)
    rank = next((k for k in range(1, count + 1) if k >= (count + 1) * level - 1e-9), None)
    if rank is None:
        assert radius == math.inf
    else:
        assert radius == np.sort(residuals)[rank - 1]
        assert np.mean(residuals <= radius) >= level


@pytest.mark.parametrize("shape", ["normal", "heavy", "skewed", "ties"])
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_coverage_is_what_was_promised_whatever_the_errors_look_like(shape, level):
    chance = np.random.default_rng(3)
    draw = {
        "normal": lambda n: np.abs(chance.normal(size=n)),
        "heavy": lambda n: np.abs(chance.standard_cauchy(size=n)),
        "skewed": lambda n: chance.lognormal(sigma=2, size=n),
        "ties": lambda n: chance.integers(0, 50, size=n).astype(float),
    }[shape]
    covered = [np.mean(draw(200) <= conformal_radius(draw(99), level)) for _ in range(400)]
    assert np.mean(covered) >= level - 0.01
    if shape != "ties":
        assert np.mean(covered) <= level + 1 / 100 + 0.01


def test_relations_with_many_values_have_their_own_radius_and_the_others_share():
    """Forty rare relations with very different spreads: one normalised radius covers them as promised."""
    chance = np.random.default_rng(5)
    spread = np.concatenate([[0.01, 5.0], np.exp(chance.uniform(-6, 6, 40))])
    few = np.repeat(np.arange(2, 42), 8)
    relation = np.concatenate([np.repeat([0, 1], 400), few])

    def residuals():
        return np.abs(chance.normal(size=len(relation))) * spread[relation]

    covered = {"own": [], "shared": []}
    for _ in range(60):
        radii = fit_radii(relation, residuals(), spread)
        row = radii.at(0.9)
        assert radii.is_own[row].tolist() == [True, True] + [False] * 40
        assert radii.count.tolist() == [400, 400] + [8] * 40
        inside = residuals() <= radii.radius[row, relation]
        covered["own"].append(inside[:800].mean())
        covered["shared"].append(inside[800:].mean())
    assert np.mean(covered["own"]) == pytest.approx(0.9, abs=0.015)
    assert np.mean(covered["shared"]) == pytest.approx(0.9, abs=0.015)


def test_where_too_little_is_known_there_is_no_radius():
    radii = fit_radii(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]), np.ones(3))
    assert np.isinf(radii.radius[radii.at(0.9)]).all()
    assert radii.radius[radii.at(0.5)].tolist() == [2.0, 2.0, 2.0]


def test_radii_read_back_as_they_were_written():
    vocabulary = Vocabulary((), (Relation("a", "number"), Relation("b", "entity"), Relation("c", "number")))
    chance = np.random.default_rng(0)
    relation = np.repeat([0, 2], [50, 10])
    radii = fit_radii(relation, chance.exponential(size=60), np.ones(3))
    again = Radii.from_mapping(radii.to_mapping(vocabulary), vocabulary, "calibration.json")
    numeric = vocabulary.relation_is_number
    assert np.array_equal(again.radius[:, numeric], radii.radius[:, numeric])
    assert np.array_equal(again.is_own[:, numeric], radii.is_own[:, numeric])
    assert np.array_equal(again.count, radii.count)
    with pytest.raises(DataError, match="not those of this graph"):
        Radii.from_mapping({"a": {}}, vocabulary, "calibration.json")


def test_the_spread_of_training_numbers(towns, predictor):
    spread = training_spread(towns, [towns.split("train")], predictor.loaded.scaling)
    heights = np.array([fact.tail.value for fact in towns.facts("train") if fact.relation == "height"])
    scaled = (heights - heights.min()) / (heights.max() - heights.min())
    expected = np.abs(scaled - np.sort(scaled)[len(scaled) // 2]).mean()
    assert spread[towns.vocabulary.relation_ids["height"]] == pytest.approx(expected)
    assert spread[towns.vocabulary.relation_ids["P19"]] == 1.0


def values_graph(**values):
    facts = [(f"h{index}", name, one) for name, many in values.items() for index, one in enumerate(many)]
    return graph_from_facts({"train": facts})


def test_what_is_never_negative_is_told_by_the_training_numbers():
    years = [number(1900.0 + index, DATE_UNIT) for index in range(20)]
    balances = [index - 1 for index in range(20)]
    graph = values_graph(seats=range(20), balance=balances, few=range(9), born=years)
    found = never_negative(graph.vocabulary, [graph.split("train")])
    assert {graph.relations[index].name for index in np.flatnonzero(found)} == {"seats"}


def test_intervals_end_at_zero_where_nothing_is_negative():
    graph = values_graph(seats=range(11), balance=range(-5, 6))
    vocabulary, scaling = graph.vocabulary, NumberScaling.fit([graph.split("train")], graph.vocabulary)
    seats, balance = (vocabulary.relation_ids[name] for name in ("seats", "balance"))
    relation = np.array([seats, seats, seats, balance])
    value = np.array([1.0, 8.0, -0.5, -4.0])
    size = (len(LEVELS), vocabulary.relation_count)
    ends = never_negative(vocabulary, [graph.split("train")])
    radii = Radii(np.full(size, 0.3), np.zeros(size, bool), np.zeros(size[1], int), ends)
    low, high = radii.interval(scaling, relation, scaling.scale(relation, value), 0.9)
    assert low == pytest.approx([0.0, 5.0, -0.5, -7.0])  # an answer below zero stays inside
    assert high == pytest.approx([4.0, 11.0, 2.5, -1.0])
    low, high = radii.ends(scaling, relation, scaling.scale(relation, value), 0.9)
    assert high - low == pytest.approx([6.0] * 4)  # uncut


def test_intervals_end_near_the_training_numbers():
    """A tenth of the range beyond them; on a log scale, below, a tenth of the range of logarithms. Dates may go on for
    as long again, and a sixth of the numbers that would be enough says six times less of the range.
    """
    few, years = range(5), [number(1900.0 + index, DATE_UNIT) for index in range(40)]
    graph = values_graph(
        share=range(41), people=[10.0**index for index in range(1, 6)] * 8, few=few, born=years, once=[7]
    )
    vocabulary, tables = graph.vocabulary, [graph.split("train")]
    scaling = NumberScaling.fit(tables, vocabulary, ["people"])
    names = ("share", "people", "few", "born", "once")
    share, people, few, born, once = (vocabulary.relation_ids[name] for name in names)
    limits = furthest_ends(graph, tables, scaling)
    assert limits[:, share] == pytest.approx([-4.0, 44.0])
    assert limits[:, people] == pytest.approx([10**0.6, 1e5 + 0.1 * (1e5 - 10)])
    assert limits[:, few] == pytest.approx([-24.0, 28.0])
    assert limits[:, born] == pytest.approx([1861.0, 1978.0])
    assert np.isinf(limits[:, once]).all()
    relation, value = np.array([share, share, people, few]), np.array([40.0, 60.0, 1e4, 2.0])
    size = (len(LEVELS), vocabulary.relation_count)
    ends = never_negative(vocabulary, tables)
    radii = Radii(np.full(size, 9.0), np.zeros(size, bool), np.zeros(size[1], int), ends, limits=limits)
    low, high = radii.interval(scaling, relation, scaling.scale(relation, value), 0.9)
    assert low[:3] == pytest.approx([0.0, 0.0, 10**0.6])
    assert high == pytest.approx([44.0, 60.0, limits[1, people], 28.0])  # an answer further out stays inside


def test_what_lies_beyond_every_interval_is_missed_by_all(towns):
    table, zeros, relations = towns.split("train"), np.zeros(200, np.int64), towns.vocabulary.relation_count
    row = np.arange(200) % len(table)
    asked = AskedNumbers(table, row, zeros + TAIL, zeros, np.zeros(200), Reach(*np.ones((2, 200))), np.ones(200, bool))
    scale = ResidualScale.none(towns.vocabulary, np.zeros((relations, BINS - 1)), np.ones(relations))
    inside, beyond = (
        fit_conditional_radii(asked, np.linspace(0.0, 1.0, 200), scale, np.arange(200) < count).radius[2, 0]
        for count in (0, 10)
    )
    assert beyond > inside
