"""The picture of a trend shows every value, with the same axes in each panel, and is the same every time."""

from __future__ import annotations

import csv
import io
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from hynt.graph.fact import DATE_UNIT
from hynt.reporting.scales import TEAL, axis_text, picture, unit_text
from hynt.reporting.trend_chart import series_chart, trend_figure
from hynt.results import csv_text
from hynt.trends.trends import COLUMNS, Predicted, Series, Trend

SVG = "{http://www.w3.org/2000/svg}"


def made(
    heads: int = 1,
    *,
    factor: float = 1.0,
    band: bool = True,
    training_range=(0.0, 10.0),
    span=(1990.0, 2020.0),
    long: str = "",
) -> Trend:
    at = np.linspace(1990, 2020, 5)
    series = []
    for head in range(heads):
        curve = (1.0 + head + np.arange(5.0)) * factor**head
        known = np.array([2.0, 3.0, 4.0]) * factor**head
        ends = (curve - 0.5, curve + 0.5) if band else (None, None)
        split = ("train", "valid", "train")
        series.append(
            Series(
                f"e{head}",
                f"Head, number {head} $x${long}",
                Predicted(curve, *ends),
                np.array([1991.0, 2000.0, 2010.0]),
                known,
                split,
                np.array([True, False, True]),
                Predicted(known + 0.1, known - 1, known + 1),
                (),
            )
        )
    return Trend(
        "r",
        f"total fertility rate{long}",
        "1",
        "t",
        "point in time",
        DATE_UNIT,
        f"sex female{long}",
        at,
        tuple(series),
        0.9,
        "this relation",
        training_range,
        span,
        (),
    )


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5, 7])
def test_a_panel_a_head_with_shared_axes(heads):
    figure = trend_figure(made(heads))
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == [f"Head, number {head} $x$" for head in range(heads)]
    assert len({axes.get_ylim() for axes in panels}) == len({axes.get_xlim() for axes in panels}) == 1
    for axes in panels:
        trained_on, held_out = (found for found in axes.collections if isinstance(found, PathCollection))
        assert len(trained_on.get_offsets()) == 2
        assert held_out.get_offsets().tolist() == [[2000.0, 3.0]]


def test_no_name_breaks_the_picture():
    drawn = picture(trend_figure(made(2, long="\x1b[31m\u202e\uffff--><script>")), ".svg").decode()
    assert not {"\x1b", "\u202e", "\uffff"}.intersection(drawn)
    assert not list(ElementTree.fromstring(drawn).iter(f"{SVG}script"))


def test_the_legend_names_what_is_drawn_and_nothing_else():
    def named(trend):
        (legend,) = trend_figure(trend).legends
        return [text.get_text() for text in legend.get_texts()]

    assert named(made()) == ["prediction", "90% interval", "known, trained on", "known, held out", "range in training"]
    far = made(training_range=(-1e9, 1e9))
    assert named(far) == ["prediction", "90% interval", "known, trained on", "known, held out"]
    assert named(made(band=False))[1] == "known, trained on"


def test_the_range_is_told_where_it_would_flatten_the_rest():
    figure = trend_figure(made(training_range=(0.0, 1e6)))
    assert any("values in training: 0 to 1,000,000" in text.get_text() for text in figure.texts)
    assert figure.axes[0].get_ylim()[1] < 10


def test_heads_of_different_orders_share_a_logarithmic_axis():
    assert trend_figure(made(3, factor=100.0)).axes[0].get_yscale() == "log"
    assert trend_figure(made(3)).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    "span,solid,dashed",
    [
        ((1990.0, 2020.0), 5, []),
        ((1980.0, 2030.0), 5, []),
        ((1990.0, 2012.0), 3, [3]),
        ((1995.0, 2006.0), 2, [2, 3]),
        ((1900.0, 1950.0), 0, [5]),
        (None, 0, [5]),
    ],
)
def test_the_curve_is_dashed_where_training_has_no_value(span, solid, dashed):
    lines = [
        line
        for line in trend_figure(made(span=span)).axes[0].lines
        if len(line.get_xdata()) != 2 or line.get_color() == TEAL
    ]
    assert len(lines[0].get_xdata()) == solid
    assert [len(line.get_xdata()) for line in lines[1 : 1 + len(dashed)]] == dashed


def test_a_page_shows_the_same():
    trend = made(2, training_range=(1.6, 99.0), span=(1995.0, 2006.0))
    root = ElementTree.fromstring(series_chart("t", trend, trend.series[1]))
    title, told = (root.find(f"{SVG}{name}").text for name in ("title", "desc"))
    assert title == "Head, number 1 $x$: total fertility rate (sex female)"
    assert told == "The predicted curve runs from 2 (1990) to 6 (2020). Known values: 2 trained on, 1 held out."
    looks = Counter(one.get("class") for one in root.iter())
    assert (looks["band"], looks["trained"], looks["held"], looks["limit"]) == (1, 2, 1, 1)
    assert (looks["line after"], looks["line after beyond"]) == (1, 2), "dashed where training has no value"
    assert "2000: 3, held out" in [one.text for one in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("trend", [made(), made(3), made(3, long="W" * 200), made(long="W" * 200)], ids=range(4))
def test_words_stay_inside_the_picture(trend):
    figure = trend_figure(trend)
    figure.draw_without_rendering()
    box = figure.bbox
    for axes in figure.axes:
        assert axes._left_title.get_window_extent().x1 <= axes.bbox.x1 + 5
    for one in [*figure.texts, *figure.legends]:
        extent = one.get_window_extent()
        assert box.x0 <= extent.x0
        assert extent.x1 <= box.x1
        assert box.y0 <= extent.y0
        assert extent.y1 <= box.y1


def test_the_same_trend_gives_the_same_file():
    svg = picture(trend_figure(made(2)), ".svg")
    assert svg == picture(trend_figure(made(2)), ".svg")
    assert svg.startswith(b"<?xml")
    assert picture(trend_figure(made()), ".png").startswith(b"\x89PNG")


def test_the_table_has_every_digit():
    trend = made(2)
    rows = list(csv.DictReader(io.StringIO(csv_text(trend.rows()))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 2 * (5 + 3)
    for row, own in zip(rows, trend.rows(), strict=True):
        assert float(row["predicted"]) == own["predicted"]
        assert row["value"] == ("" if own["value"] is None else repr(own["value"]))
        assert row["trained_on"] == {None: "", True: "true", False: "false"}[own["trained_on"]]


@pytest.mark.parametrize(
    "value,unit,span,text",
    [
        (2010.0, DATE_UNIT, 40, "2010"),
        (2010.4, DATE_UNIT, 40, "2010"),
        (2010.5, DATE_UNIT, 1, "2010-07"),
        (2010.5, DATE_UNIT, 0.1, "2010-07-02"),
        (1.5e6, "1", 4e6, "1.5 M"),
        (0.0, "1", 4e6, "0"),
        (2e9, "1", 4e9, "2 B"),
        (0.30000000000000004, "1", 1.0, "0.3"),
        (-20.0, "percent", 80.0, "−20"),
        (250.0, "m", 500.0, "250"),
        (2e5, "m", 2e5, "200 k"),
        (1e-10, "m", 2e-10, "1 × 10⁻¹⁰"),
    ],
)
def test_ticks(value, unit, span, text):
    assert axis_text(value, unit, span) == text


def test_units_on_axes():
    assert [unit_text(unit) for unit in ("", "1", DATE_UNIT, "year", "m2", "percent")] == [
        "",
        "",
        "",
        "years",
        "m²",
        "%",
    ]
