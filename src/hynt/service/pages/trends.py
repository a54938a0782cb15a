"""Trends as a page shows them: a chart for each head, and the values as a table that a script can walk along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_difference, format_quantity
from hynt.graph.units.conversion import with_display
from hynt.markup import Markup
from hynt.reporting.trend_chart import series_chart, series_plot, series_title, together_chart
from hynt.service.http.problems import Fault
from hynt.service.pages.answers import field_of, refusal
from hynt.service.pages.questions import AskedForm, address
from hynt.service.served_run import ServedRun
from hynt.trends.trends import Series, Trend

POINTS = 80
MOST_HEADS = 6
SIZE = (560.0, 300.0)
SMALL = (330.0, 220.0)
TOGETHER = (640.0, 320.0)


_PLAIN = ("relation", "over", "start", "end")
"""Fields whose name in the form is their name in the question."""


@dataclass(frozen=True)
class TrendForm:
    """The fields of the form, as people filled them in."""

    heads: tuple[str, ...]  # each once; empty fields are left out
    left_out: tuple[str, ...]  # heads beyond those that are drawn
    relation: str
    over: str
    start: str
    end: str
    qualifiers: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, given: Sequence[tuple[str, str]]) -> TrendForm:
        """From the parameters of an address; the first of each counts."""
        heads = tuple(dict.fromkeys(value.strip() for name, value in given if name == "head" and value.strip()))
        said = {name: value.strip() for name, value in reversed(given) if name in _PLAIN}
        relation, over, start, end = (said.get(name, "") for name in _PLAIN)
        pairs = AskedForm.read(given).filled.qualifiers
        return cls(heads[:MOST_HEADS], heads[MOST_HEADS:], relation, over, start, end, pairs)

    def named(self, name: Callable[..., str]) -> TrendForm:
        """With names in the place of ids."""
        own = AskedForm("", self.relation, "", self.qualifiers).named(name)
        over = name(self.over, is_relation=True)
        heads = tuple(map(name, self.heads))
        return replace(self, heads=heads, relation=own.relation, over=over, qualifiers=own.qualifiers)

    def put(self, place: str, text: str) -> TrendForm:
        """The same with another value in one field, by its name in `_place`."""
        if place in _PLAIN:
            return replace(self, **{place: text})  # type: ignore[arg-type]
        if place.startswith("h"):
            heads = (text if place == f"h{number}" else head for number, head in enumerate(self.heads))
            return replace(self, heads=tuple(heads))
        return replace(self, qualifiers=AskedForm(qualifiers=self.qualifiers).put(place, text).qualifiers)

    @property
    def is_whole(self) -> bool:
        return bool(self.heads and self.relation)

    @property
    def missing(self) -> list[str]:
        """What a form that is begun still lacks."""
        lacking = [name for name, given in (("head", self.heads), ("relation", self.relation)) if not given]
        begun = len(lacking) == 1 or any((self.over, self.start, self.end, self.qualifiers))
        return lacking if begun else []

    @property
    def asked(self) -> dict[str, Any]:
        """As the served run is asked."""
        return {
            "heads": list(self.heads),
            "relation": self.relation,
            "over": self.over or None,
            "start": self.start or None,
            "end": self.end or None,
            "points": POINTS,
            "qualifiers": [{"relation": name, "value": value} for name, value in self.qualifiers],
        }

    @property
    def address(self) -> str:
        """Where this very trend is drawn."""
        pairs = [part for pair in self.qualifiers for part in zip(("qualifier", "value"), pair, strict=True)]
        return address(
            "/trends", [*(("head", one) for one in self.heads), *((one, getattr(self, one)) for one in _PLAIN), *pairs]
        )


async def explained_fault(served: ServedRun, form: TrendForm, fault: Fault) -> dict[str, Any]:
    """A fault with the field it is about, and trends that may have been meant."""
    place = _place(form, fault)
    told = refusal(fault)
    if place == "relation" and not told["near"]:
        some = await served.relations("", "number", 0, 12)
        held = [one for one in some["relations"] if one["facts"]][:6]
        told["heading"] = "Relations with numbers"
        told["near"] = [{"name": one["name"], "told": "", "value": one["id"]} for one in held]
    near = [one | {"address": form.put(place, one["value"]).address} for one in told["near"]]
    return {**told, "place": place, "near": near}


def _place(form: TrendForm, fault: Fault) -> str:
    """The field: h0 and so on for heads, relation, over, 0r and 0v for what tells series apart."""
    pointer = fault.pointer or ""
    if pointer == "#/heads":
        named = [index for index, head in enumerate(form.heads) if f"'{head}'" in fault.detail]
        return f"h{named[0] if named else 0}"
    return pointer.removeprefix("#/") if pointer.removeprefix("#/") in _PLAIN else field_of(pointer)


def panels(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is drawn and said about each head."""
    size = SIZE if len(found["heads"]) == 1 else SMALL
    trend = Trend.from_dict(found)
    return [
        _panel(trend, one, number, size) | {"told": _fit_sentence(found, head)}
        for number, (one, head) in enumerate(zip(trend.series, found["heads"], strict=True))
    ]


def together(found: Mapping[str, Any]) -> Markup | None:
    """All heads on the same axes; None where there is one head alone."""
    return together_chart("together", Trend.from_dict(found), TOGETHER) if len(found["heads"]) > 1 else None


def _panel(trend: Trend, one: Series, number: int, size: tuple[float, float]) -> dict[str, Any]:
    plot = series_plot(trend, one, size)
    low, high = (end if end is not None else [None] * len(trend.at) for end in (one.curve.low, one.curve.high))
    return {
        "identity": f"trend-{number}",
        "title": series_title(trend, one),
        "name": one.name,
        "id": one.id,
        "chart": series_chart(f"trend-{number}", trend, one, size),
        "notes": one.notes,
        "curve": [
            {
                "at": trend.at_text(at),
                "value": _rounded(value, trend.unit),
                "low": None if least is None else _rounded(least, trend.unit),
                "high": None if most is None else _rounded(most, trend.unit),
                "x": f"{plot.x.at(at):.2f}",
                "y": f"{plot.y.at(value):.2f}",
            }
            for at, value, least, most in zip(trend.at.tolist(), one.curve.value.tolist(), low, high, strict=True)
        ],
        "top": f"{plot.y.end:.2f}",
        "bottom": f"{plot.y.start:.2f}",
        "known": [
            {
                "at": trend.at_text(at),
                "value": trend.text(value),
                "split": split,
                "trained_on": trained_on,
                "predicted": _rounded(predicted, trend.unit),
            }
            for at, value, split, trained_on, predicted in zip(
                one.at.tolist(),
                one.known.tolist(),
                one.split,
                one.trained_on.tolist(),
                one.predicted.value.tolist(),
                strict=True,
            )
        ],
    }


def _rounded(value: float, unit: str) -> str:
    """To a few digits: a curve is no table of constants."""
    return format_quantity(value if unit == DATE_UNIT else float(f"{value:.5g}"), unit)


def _fit_sentence(found: Mapping[str, Any], head: Mapping[str, Any]) -> str:
    """How well the curve meets what it was not trained on, in a sentence."""
    trained = "1 value was" if head["trained_on"] == 1 else f"{head['trained_on']:,} values were"
    if not head["held_out"]:
        return f"{trained} trained on; none of this series was held out."
    told = f"{trained} trained on, {head['held_out']:,} held out"
    if head["mean_error_held_out"] is not None:
        unit = with_display(found["unit"], found.get("display_unit", ""))
        told += f"; mean error of those {format_difference(head['mean_error_held_out'], unit)}"
    if head["held_out_inside"] is not None:
        told += f", {head['held_out_inside']} of {head['held_out']} inside the interval"
    return f"{told}."
