"""The units that people read: kept in SI, shown and taken as people write."""

from __future__ import annotations

import json
import pickle

import pytest

import hynt
from hynt.errors import DataError
from hynt.formats.declarations import read_declarations
from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_difference, format_estimate, format_quantity
from hynt.graph.storage import load_graph
from hynt.graph.units.conversion import KeptUnit, display_of, in_display_unit, kept, showing_si, with_display
from hynt.reporting.scales import Scale, unit_text


@pytest.mark.parametrize(
    ("value", "unit", "display", "text"),
    [
        (377_915e6, "m2", "km2", "377,915 km²"),
        (0.00135, "m3/year", "L/year", "1.35 L/year"),
        (0.0068, "1", "percent", "0.68 %"),
        (0.0068, "1", "‰", "6.8 ‰"),
        (0.03599, "1/year", "‰/year", "35.99 ‰/year"),
        (3.6e15, "J", "TWh", "1 TWh"),
        (933.473, "K", "°C", "660.323 °C"),
        (0.00521, "1", "1/100000", "521 per 100,000"),
        (5.0, "USD", "USD", "5 USD"),
    ],
)
def test_numbers_are_shown_as_people_write_them(value, unit, display, text):
    unit = with_display(unit, display)
    assert format_quantity(value, unit) == text
    assert kept(in_display_unit(value, unit)[0], unit) == pytest.approx(value, rel=1e-15)
    with showing_si():
        assert in_display_unit(value, unit) == (value, str(unit))


def test_a_difference_knows_no_zero_point():
    assert format_difference(5.0, with_display("K", "°C")) == "5 °C"
    assert format_difference(1234.5, with_display("m", "km")) == "1.23 km"
    assert format_difference(2.0, DATE_UNIT) == "2 years"


def test_a_unit_of_another_kind_is_refused():
    with pytest.raises(DataError, match="numbers in m2 cannot be shown in kg"):
        with_display("m2", "kg")


def test_a_kept_unit_is_the_text_it_was():
    unit = with_display("m2", "km2")
    assert unit == "m2"
    assert {unit: 1}["m2"] == 1
    assert json.dumps(unit) == '"m2"'
    again = pickle.loads(pickle.dumps(unit))
    assert isinstance(again, KeptUnit)
    assert again.display == "km2"


@pytest.mark.parametrize(
    ("value", "unit", "width", "text"),
    [
        (81.1943, "year", 12.2, "81.2 years"),
        (81.1943, "year", 120.0, "81 years"),
        (5_834_117.0, "1", 1e9, "5,800,000"),  # two digits at least
        (377_123_456_789.0, KeptUnit("m2", "km2"), 4e11, "380,000 km²"),
        (0.012345, "1", 0.01, "0.0123"),
        (1996.37, DATE_UNIT, 18.0, "1996"),
        (1996.37, DATE_UNIT, 3.7, "1996-05"),
        (-0.63, DATE_UNIT, 3.7, "2-05 BCE"),
        (1996.37, DATE_UNIT, 0.3, "1996-05-15"),
        (0.0, "1", 5.0, "0"),
    ],
)
def test_digits_follow_the_interval(value, unit, width, text):
    assert format_quantity(value, unit, width) == text


@pytest.mark.parametrize(
    ("value", "unit", "interval", "known", "text"),
    [
        (81.1943, "year", (75.0, 87.2), (27.79, 88.2), "81.2 years"),  # the interval says it
        (75.9426, "year", None, (27.79, 88.2), "76 years"),  # without one, what is known does
        (0.7594, "1", None, (0.6, 0.9), "0.76"),
        (1996.37, DATE_UNIT, None, (1800.0, 2024.0), "1996"),
        (0.6312, "percent", (-7.7, 9.0), (-29.4, 10.2), "0.6 %"),  # ends of either sign
        (0.6312, "percent", (0.6, 9.0), None, "0.63 %"),
        (272.94, KeptUnit("K", "°C"), (272.94, 281.3), None, "−0.2 °C"),
        (75.9426, "year", None, (76.0, 76.0), "76 years"),
        (75.9426, "year", None, None, "76 years"),
        (0.0, "year", None, None, "0 years"),
    ],
)
def test_no_digits_are_shown_that_nobody_is_sure_of(value, unit, interval, known, text):
    assert format_estimate(value, unit, interval, known) == text


def test_ticks_are_round_as_people_read_them():
    axis = Scale(250.0, 400.0, unit=with_display("K", "°C"))
    assert [axis.text(tick) for tick in axis.ticks(5)] == ["0", "50", "100"]
    assert unit_text(with_display("m2", "km2")) == "km²"


def test_the_source_says_what_people_read(tmp_path):
    (tmp_path / "facts").mkdir()
    rows = [{"head": "Japan", "relation": "area", "tail": {"number": 377915, "unit": "km2"}}]
    rows += [{"head": "Japan", "relation": "power", "tail": {"number": 8.4e10}}]
    (tmp_path / "facts" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    declared = "id\tkind\tunit\tdisplay\npower\tnumber\tkWh\tTWh\n"
    (tmp_path / "facts" / "relations.tsv").write_text(declared)
    hynt.import_graph(tmp_path / "facts", "jsonl", out=tmp_path / "graph")
    graph = load_graph(tmp_path / "graph")
    assert {relation.name: (relation.unit, display_of(relation.unit)) for relation in graph.relations} == {
        "power": ("J", "TWh"),
        "area": ("m2", "km2"),
    }
    assert graph.manifest.display_units == {"power": "TWh", "area": "km2"}
    (tmp_path / "facts" / "relations.tsv").write_text(declared.replace("TWh", "km"))
    with pytest.raises(DataError, match=r"relations\.tsv:2: numbers in kWh cannot be shown in km"):
        read_declarations(tmp_path / "facts")


def test_world_shows_what_people_write():
    world = load_graph("world")
    told = {hynt.graph.sentences.Sentences(world).fact(fact) for fact in world.facts() if fact.head == "country/Japan"}
    assert "Japan · area · 377,915 km²" in told
    assert any(" · 1.35 L/year (" in one for one in told)
    units = {relation.name: display_of(relation.unit) for relation in world.relations}
    assert units["melting point"] == "°C"
    assert units["electricity consumption"] == "TWh/year"
    assert units["birth rate"] == "‰/year"
