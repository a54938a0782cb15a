"""What all charts share, drawn by matplotlib or as SVG: places, ticks, their texts, colours, widths of words."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files

from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_moment, format_number, format_quantity
from hynt.graph.units.conversion import kept, shown, shown_difference
from hynt.graph.units.dates import to_calendar


@dataclass(frozen=True)
class Scale:
    """From values to places along an axis of a drawing."""

    low: float
    high: float
    start: float = 0.0
    end: float = 1.0
    log: bool = False
    unit: str = ""

    def at(self, value: float) -> float:
        """Where a value stands; one beyond the ends stands at the end."""
        low, high, value = (_log(one) if self.log else one for one in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values between the ends; on a logarithmic axis powers of ten, or twice and five times them too."""
        low, high = (shown(one, self.unit)[0] for one in (self.low, self.high))  # round as people read them
        return [kept(value, self.unit) for value in self._round(low, high, count)]

    def _round(self, low: float, high: float, count: int) -> list[float]:
        if not self.log:
            return round_steps(low, high, count)
        first, last = math.ceil(_log(low)), math.floor(_log(high))
        powers = [10.0**power for power in range(first, last + 1, max(1, math.ceil((last - first + 1) / count)))]
        if len(powers) > 2:
            return powers
        found = [digit * 10.0**power for power in range(first - 1, last + 1) for digit in (1, 2, 5)]
        inside = [value for value in found if low <= value <= high]
        return inside if len(inside) > 2 else round_steps(low, high, count)

    def text(self, value: float) -> str:
        """What stands beside a tick."""
        value, (span, unit) = shown(value, self.unit)[0], shown_difference(self.high - self.low, self.unit)
        return axis_text(value, unit, abs(value) if self.log else span)


def round_steps(low: float, high: float, count: int = 5) -> list[float]:
    """Between `low` and `high`, about `count` values whose distance is 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.75)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) + 0.0 for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))


# Numbers as they stand on an axis: short, and alike along the axis.

_WORDS = ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " k"))
_FEW_YEARS = 3.0
_LONG_NUMBER = 1e5


def axis_text(value: float, unit: str, span: float) -> str:
    """A tick: `2010`, `2010-06` where the axis spans few years, `1.5 M`, `0.25`."""
    if unit == DATE_UNIT:
        return _date(value, span)
    size = max(abs(value), span)
    if size < _LONG_NUMBER:
        return format_number(_rounded(value, span))
    for factor, word in _WORDS:
        if size >= factor:
            return f"{format_number(_rounded(value / factor, span / factor))}{word if value else ''}"
    return format_number(value)


def unit_text(unit: str) -> str:
    """A unit as it stands behind the name of an axis: `years`, `m²`; nothing for dates and plain numbers."""
    if unit in ("", "1", DATE_UNIT):
        return ""
    return format_quantity(2.0, shown(2.0, unit)[1]).removeprefix("2").strip()


def _date(value: float, span: float) -> str:
    if span >= _FEW_YEARS or math.isclose(value, round(value), abs_tol=1e-9):
        return format_moment(float(round(value)))
    try:
        year, month, day, _ = to_calendar(value)
    except OverflowError:
        return format_number(value)
    return f"{year}-{month:02d}" if span > 0.25 else f"{year}-{month:02d}-{day:02d}"


def _rounded(value: float, span: float) -> float:
    """Without the noise of arithmetic: to a thousandth of what the axis spans."""
    if span <= 0:
        return value
    return round(value, max(0, 3 - math.floor(math.log10(span))))


# The light colours of pages are those of pictures too.


def _light_colours() -> dict[str, str]:
    sheet = files("hynt.reporting").joinpath("assets/page.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", sheet[: sheet.index("@media")]))


COLOURS = _light_colours()
"""By the names that the style sheet gives them: ink, soft, line, accent, …"""


# How long a line of text is, without a font at hand: pages are drawn by whichever font the reader has.

_CHARACTERS = {
    0.30: "ijlIJ'",
    0.34: " ,./:;\\|·’",
    0.41: "frt!-()[]²³",
    0.53: 'sz?*_`"°–',
    0.64: "abcdeghknopquvxyEFLPSTY0123456789${}€",
    0.70: "ABCKRVXZ",
    0.79: "DGHNOQU&",
    0.86: "wM#+<=>^~",
    1.00: "mW@%…—",
}
_WIDTHS = {character: width for width, characters in _CHARACTERS.items() for character in characters}
"""In parts of the size, rounded up, of DejaVu Sans: the font of pictures, and wider than most fonts of pages."""
_OTHER, _WIDE, _BOLD = 0.78, 1.15, 1.13


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Inches that a line of text of so many points takes."""
    return sum(map(_width, text)) * size / 72 * (_BOLD if bold else 1.0)


def _width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _WIDTHS.get(unicodedata.normalize("NFD", character)[0], _OTHER)  # é is as wide as e


def fitted(text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """A line of text, cut where it would be longer than so many inches."""
    if text_width(text, size, bold=bold) <= inches:
        return text
    kept, cut = 0, len(text)
    while kept < cut:  # the longest start that fits with the mark of a cut behind it
        middle = (kept + cut + 1) // 2
        if text_width(text[:middle].rstrip() + "…", size, bold=bold) <= inches:
            kept = middle
        else:
            cut = middle - 1
    return text[:kept].rstrip() + "…"
