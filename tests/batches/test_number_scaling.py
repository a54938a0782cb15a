"""Min–max scales: there and back, order kept, nothing clamped, and refusals that say what to do."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError, UsageError
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Relation, Vocabulary

VOCABULARY = Vocabulary(
    ("a",), (Relation("likes", "entity"), Relation("height", "number"), Relation("people", "number", scale="log"))
)
HEIGHT, PEOPLE = 1, 2


def table(relation: int, values: list[float], qualifier_values: list[float] | None = None) -> FactTable:
    """Facts (a, relation, value), the last with qualifiers of the same relation."""
    n, more = len(values), qualifier_values or []
    zeros = np.zeros(n, dtype=np.int32)
    offsets = np.zeros(n + 1, dtype=np.int64)
    offsets[-1] = len(more)
    return FactTable(
        zeros,
        zeros + relation,
        zeros,
        np.array(values, dtype=np.float64),
        pa.array(map(repr, values), pa.string()),
        offsets,
        np.full(len(more), relation, dtype=np.int32),
        np.zeros(len(more), dtype=np.int32),
        np.array(more, dtype=np.float64),
        pa.array(map(repr, more), pa.string()),
    )


def ids(relation: int, values: np.ndarray) -> np.ndarray:
    return np.full(len(values), relation)


sensible = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-6)
values_lists = st.lists(sensible, min_size=1, max_size=20)


@given(values_lists, values_lists)
def test_scaling_is_invertible_and_keeps_order_also_outside_the_range(fitted, others):
    scaling = NumberScaling.fit([table(HEIGHT, fitted)], VOCABULARY)
    values = np.array(fitted + others)
    scaled = scaling.scale(ids(HEIGHT, values), values)
    inside = scaled[: len(fitted)]
    assert inside.min() == 0.0
    assert inside.max() == (1.0 if len(set(fitted)) > 1 else 0.0)
    back = scaling.unscale(ids(HEIGHT, values), scaled)
    np.testing.assert_allclose(back, values, rtol=1e-12, atol=1e-12 * np.abs(values).max())
    order = np.argsort(values, kind="stable")
    assert (np.diff(scaled[order]) >= 0).all()
    np.testing.assert_array_equal(scaled, scaling.linear(ids(HEIGHT, values), values))


@given(st.lists(st.floats(1e-6, 1e12), min_size=2, max_size=20))
def test_a_log_scale_is_invertible_while_linear_stays_linear(values):
    fitted = [table(PEOPLE, values)]
    log = NumberScaling.fit(fitted, VOCABULARY, log_relations=["people"])
    plain = NumberScaling.fit(fitted, VOCABULARY)
    array = np.array(values)
    scaled = log.scale(ids(PEOPLE, array), array)
    np.testing.assert_allclose(log.unscale(ids(PEOPLE, array), scaled), array, rtol=1e-9)
    np.testing.assert_array_equal(log.linear(ids(PEOPLE, array), array), plain.scale(ids(PEOPLE, array), array))
    assert scaled.min() == 0.0


def test_equal_ratios_are_equal_steps_on_a_log_scale():
    scaling = NumberScaling.fit([table(PEOPLE, [1.0, 100.0])], VOCABULARY, log_relations=["people"])
    values = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(scaling.scale(ids(PEOPLE, values), values), [0, 0.5, 1, 1.5])


def test_qualifier_values_count_and_values_outside_are_not_clamped():
    scaling = NumberScaling.fit([table(HEIGHT, [10.0, 20.0], [30.0])], VOCABULARY)
    values = np.array([10.0, 30.0, 50.0, -10.0])
    np.testing.assert_allclose(scaling.scale(ids(HEIGHT, values), values), [0, 1, 2, -1])


@pytest.mark.parametrize("only", [8.0, -8.0, 0.25, 0.0])
def test_a_constant_relation_is_as_wide_as_its_value_or_one_and_an_unseen_one_passes_unchanged(only):
    scaling = NumberScaling.fit([table(HEIGHT, [only, only])], VOCABULARY)
    values = np.array([only, only + 16])
    np.testing.assert_array_equal(scaling.scale(ids(HEIGHT, values), values), [0, 16 / max(abs(only), 1)])
    np.testing.assert_array_equal(scaling.scale(ids(PEOPLE, values), values), values)


def test_one_large_value_to_learn_from_makes_no_other_one_too_far():
    train, test = table(PEOPLE, [1.26e17]), table(PEOPLE, [1.195e18])
    scaling = NumberScaling.fit([train], VOCABULARY, checked=[test])
    assert scaling.linear(ids(PEOPLE, np.zeros(1)), np.array([1.195e18])) == pytest.approx(8.484, abs=1e-3)


def test_a_value_that_is_not_positive_is_refused_when_the_log_scale_is_chosen_even_if_only_the_test_split_has_it():
    train, test = table(PEOPLE, [1.0, 2.0]), table(PEOPLE, [3.0, -4.5])
    with pytest.raises(DataError) as caught:
        NumberScaling.fit([train], VOCABULARY, log_relations=["people"], checked=[test])
    assert str(caught.value) == (
        "the relation 'people' cannot have a log scale: it has the value -4.5. Leave it on the linear scale."
    )
    NumberScaling.fit([train], VOCABULARY, checked=[test])


def test_a_log_scale_for_a_relation_without_numbers_is_refused():
    with pytest.raises(UsageError, match="'likes' is not a relation with numbers, so it has no log scale"):
        NumberScaling.fit([table(HEIGHT, [1.0])], VOCABULARY, log_relations=["likes"])


def test_what_a_log_scale_reads_but_errors_cannot_be_measured_of_is_refused_at_the_start():
    train = table(PEOPLE, [1.0, 1e9])
    for value in (1e200, 1e300):
        with pytest.raises(DataError, match=rf"the value {value!r}, too far from those".replace("+", r"\+")):
            NumberScaling.fit([train], VOCABULARY, ["people"], checked=[table(PEOPLE, [value])])
    NumberScaling.fit([train], VOCABULARY, ["people"], checked=[table(PEOPLE, [1e45])])


def test_values_too_far_apart_are_refused():
    with pytest.raises(DataError, match="the values of 'height' lie too far apart to scale"):
        NumberScaling.fit([table(HEIGHT, [-1.7e308, 1.7e308])], VOCABULARY)


@given(values_lists)
def test_saving_as_json_loses_no_bit(values):
    fitted = [table(HEIGHT, values), table(PEOPLE, [abs(value) + 1 for value in values])]
    scaling = NumberScaling.fit(fitted, VOCABULARY, log_relations=["people"])
    text = json.dumps(scaling.to_mapping(VOCABULARY))
    loaded = NumberScaling.from_mapping(json.loads(text), VOCABULARY)
    for name in ("offset", "width", "is_log", "log_offset", "log_width"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(scaling, name))


@pytest.mark.parametrize(
    "entry",
    [{"offset": 0.0}, {"offset": 0.0, "width": 0.0}, {"offset": "0", "width": 1.0}, {"offset": 0.0, "width": 1e999}],
)
def test_a_spoilt_scaling_is_refused_with_its_place(entry):
    mapping = {"height": entry, "people": {"offset": 0.0, "width": 1.0}}
    with pytest.raises(DataError, match=r"^scaling\.height: expected finite numbers offset, width with widths above 0"):
        NumberScaling.from_mapping(mapping, VOCABULARY)


def test_a_scaling_of_another_graph_is_refused():
    with pytest.raises(DataError, match="disagree about the number relation 'people'"):
        NumberScaling.from_mapping({"height": {"offset": 0.0, "width": 1.0}}, VOCABULARY)
