"""Charts and HTML: text from data can never become markup, and marks stand where their values say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.conversion import with_display
from hynt.markup import Markup, element, html, joined, shown
from hynt.reporting.charts_svg import (
    Marked,
    coverage_chart,
    curve_chart,
    distribution,
    interval_chart,
    plot_area,
    reliability_chart,
    share_bar,
    spread_chart,
)
from hynt.reporting.scales import Scale, round_steps

SVG = "{http://www.w3.org/2000/svg}"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.values = [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data):
        self.text += data


def parsed(markup: str) -> Tags:
    found = Tags()
    found.feed(markup)
    found.close()
    return found


@given(st.text())
def test_no_text_becomes_markup(text):
    made = parsed(element("p", element("b", text), title=text))
    assert made.tags == ["p", "b"]
    assert made.values == [shown(text)]
    assert made.text == shown(text)


def test_what_turns_text_around_is_written_out():
    assert shown("a\u202eb\x1b") == "a\\u202eb\\x1b"
    assert shown("a\uffffb") == "a\\uffffb", "no XML may hold it"
    assert shown("Zürich 東京 می‌خواهم") == "Zürich 東京 می‌خواهم", "names in any script stay as they are"


def test_attributes_are_named_as_html_does():
    made = element("input", class_="a", aria_label='"x"', required=True, disabled=False, title=None, max=1.5)
    assert made == '<input class="a" aria-label="&quot;x&quot;" required max="1.5">'
    assert joined([Markup("<br>"), "<", None]) == "<br>&lt;"
    assert html("<") == "&lt;"


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_lie_between_the_ends_and_are_few(low, width):
    ticks = round_steps(low, low + width)
    assert len(ticks) <= 9
    assert all(low - width * 1e-6 - 1e-9 <= tick <= low + width * (1 + 1e-6) + 1e-9 for tick in ticks)


def test_axis_ends_and_middle():
    axis = Scale(10, 20, 0, 100)
    assert [axis.at(value) for value in (10, 15, 20, 99, -99)] == [0, 50, 100, 100, 0]
    assert Scale(1, 100, 0, 100, log=True).at(10) == pytest.approx(50)
    assert Scale(1, 1e6, 0, 100, log=True).ticks() == [1, 100, 10000, 1e6]
    assert Scale(3, 3, 0, 100).at(3) == 50, "a range of one value has its middle"


def test_an_axis_says_its_ticks():
    def said(low, high, unit="", **kind):
        axis = Scale(low, high, unit=unit, **kind)
        return [axis.text(value) for value in axis.ticks(4)]

    assert said(1980, 2020, DATE_UNIT) == ["1980", "1990", "2000", "2010", "2020"]
    assert said(-100, 100, DATE_UNIT) == ["101 BCE", "51 BCE", "1 BCE", "50", "100"]
    assert said(0, 4.2e9) == ["0", "1 B", "2 B", "3 B", "4 B"]
    assert said(0.7, 60, log=True) == ["1", "2", "5", "10", "20", "50"]
    assert said(1, 1e9, log=True) == ["1", "1,000", "1 M", "1 B"]


def described(markup: Markup) -> tuple[ElementTree.Element, str, str]:
    """The drawing, its title and its description; fails where it is no well-formed XML."""
    root = ElementTree.fromstring(markup)
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {told.get('id')}"
    return root, title.text, told.text


def test_distribution_counts_every_number_once():
    values = [1.0, 1.5, 2.0, 9.0, 10.0]
    root, title, told = described(distribution("d", "Heights <of>", values, "cm", bins=9))
    assert (title, told) == ("Heights <of>", "5 numbers from 1 cm to 10 cm.")
    counts = [int(one[0].text.split(" ")[0]) for one in root.iter(f"{SVG}rect") if one.get("class") == "bar"]
    assert sum(counts) == len(values)


def test_answer_interval_and_known_values_stand_on_the_spread():
    marked = Marked("cm", 12.0, (11.0, 13.0), [9.0])
    root, _, told = described(spread_chart("d", "t", [1.0, 5.0, 10.0], [3, 2], marked))
    assert told == "5 numbers from 1 cm to 10 cm. The answer is 12 cm. Its interval reaches from 11 cm to 13 cm."
    assert len([one for one in root.iter() if one.get("class") == "known"]) == 1
    span = next(one for one in root.iter(f"{SVG}rect") if one.get("class") == "span")
    answer = next(one for one in root.iter(f"{SVG}line") if one.get("class") == "answer")
    middle = float(span.get("x")) + float(span.get("width")) / 2
    assert float(answer.get("x1")) == pytest.approx(middle, abs=0.02)


def test_a_spread_tells_stored_numbers_whole_and_answers_as_sure_as_they_are():
    """Beside "1,400,000 km²" the chart said 1,395,770 km², and 17,098,200 of the greatest country's 17,098,242."""
    edges, interval = [360e6, 400e9, 17_098_242e6], (110_654e6, 17_606_100e6)
    _, _, told = described(
        spread_chart("d", "t", edges, [3, 2], Marked(with_display("m2", "km2"), 1_395_770e6, interval), log=True)
    )
    assert told == (
        "5 numbers from 360 km² to 17,098,242 km², on a logarithmic scale. The answer is 1,400,000 km². "
        "Its interval reaches from 110,000 km² to 17,600,000 km²."
    )
    _, _, told = described(spread_chart("d", "t", [27.79, 60.0, 89.5], [3, 2], Marked("year", 82.2108)))
    assert told == "5 numbers from 27.79 years to 89.5 years. The answer is 82 years."


def test_distribution_over_many_orders_is_logarithmic():
    root, _, told = described(distribution("d", "t", [1.0, 10.0, 100.0, 1e6], bins=6))
    assert told.endswith("on a logarithmic scale.")
    places = [float(one.get("x")) for one in root.iter(f"{SVG}rect")]
    assert max(places) - min(places) > 200
    assert "logarithmic" not in described(distribution("d", "t", [5.0, 5.0]))[2]


def test_reliability_says_what_it_shows():
    bins = [{"low": 0.0, "high": 0.1, "count": 7, "confidence": 0.05, "accuracy": 0.25}]
    root, _, told = described(reliability_chart("r", "t", {"bins_before": bins, "bins_after": bins}))
    assert told == "With calibration: of 7 answers given 5 %, 25 % were right."
    dots = [one for one in root.iter(f"{SVG}circle") if one.get("class") == "dot after"]
    plot = plot_area((0.0, 1.0), (0.0, 1.0))
    assert (float(dots[0].get("cx")), float(dots[0].get("cy"))) == pytest.approx(plot.point(0.05, 0.25), abs=0.01)


def test_other_charts_are_described():
    assert described(coverage_chart("c", "t", {"0.9": {"coverage": 0.914}, "0.5": {"coverage": None}}))[2] == (
        "90 % intervals hold 91.4 %."
    )
    told = described(curve_chart("l", "t", [(1, 4.0), (2, 2.0), (3, 3.0)], "loss", mark=3))[2]
    assert told == "From 4 at epoch 1 to 3 at epoch 3; lowest 2, highest 4."
    rows = [("run", 0.5, [0.4, 0.6], "own"), ("trivial", 0.1, None, "trivial")]
    assert described(interval_chart("i", "t", rows, "MRR"))[2] == "run 0.5000 (0.4000 to 0.6000); trivial 0.1000."
    assert described(interval_chart("i", "t", [("run", 0.0, None, "own")], "MRR"))[2] == "run 0.0000."


def test_share_bar_is_as_wide_as_its_share():
    for share, width in ((0.25, "25"), (1.7, "100"), (None, "0")):
        assert re.findall(r'width="([0-9.]+)"', share_bar(share)) == ["100", width]
