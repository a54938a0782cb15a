"""What all charts share, drawn by matplotlib or as SVG: places, ticks, their texts, colours, widths of words.

How charts look that matplotlib draws, and how they become files, is here too. matplotlib is an extra, and imported only
where something is drawn.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt import markup
from hynt.errors import UsageError, not_installed
from hynt.graph.fact import DATE_UNIT
from hynt.graph.sentences import format_moment, format_number, format_quantity
from hynt.graph.units.conversion import in_display_unit, kept, shown_difference
from hynt.graph.units.dates import to_calendar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


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
        low, high = (in_display_unit(one, self.unit)[0] for one in (self.low, self.high))  # round as people read them
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
        value, (span, unit) = in_display_unit(value, self.unit)[0], shown_difference(self.high - self.low, self.unit)
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
    return format_quantity(2.0, in_display_unit(2.0, unit)[1]).removeprefix("2").strip()


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


def asset(name: str) -> str:
    """A file of the style of pages."""
    return (files("hynt.reporting") / "assets" / name).read_text(encoding="utf-8")


def shared_style() -> str:
    """What the report and the pages of a service have in common."""
    return asset("page.css") + asset("charts.css")


def _light_colours() -> dict[str, str]:
    sheet = asset("page.css")
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
    """The width in inches of a line of text of `size` points."""
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
    """A line of text from data, cut where it would be wider than `inches`."""
    text = markup.shown(text).replace("\n", " ")
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


INK, GREY, FAINT = (COLOURS[name] for name in ("ink", "soft", "line"))
TEAL, ORANGE, BLUE, RED = (COLOURS[name] for name in ("accent", "number-fill", "entity-line", "bad"))
SUFFIXES = (".png", ".svg")
PIXELS_PER_INCH = 160

_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "hynt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "text.color": INK,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": GREY,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def check_drawable(option: str) -> None:
    """Refuses, before any work is done, where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise not_installed("matplotlib", "plot", what="a picture", where=option)


@contextmanager
def hynt_style() -> Iterator[None]:
    """Within the block, charts look like hynt's."""
    from matplotlib import rc_context

    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script that no font here has
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, apart from any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Figure, suffix: str) -> bytes:
    """The figure as a file: the same bytes for the same figure."""
    kind = suffix.lower().lstrip(".")
    file = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with hynt_style():
        figure.savefig(file, format=kind, dpi=PIXELS_PER_INCH, facecolor="white", metadata=metadata)
    return file.getvalue()


def bare(axes: Axes, *, grid: str = "y") -> None:
    """Only what carries meaning: no box, faint lines along one direction."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(True, axis=grid)  # type: ignore[arg-type]


def set_ticks(axis: Axis, scale: Scale, count: int) -> None:
    found = scale.ticks(count)
    axis.set_ticks([], minor=True)
    axis.set_ticks(found, [scale.text(value) for value in found])


def suffix_of(path: Path, known: tuple[str, ...], option: str) -> str:
    """The suffix of a file to write, which says what is written; others are refused."""
    suffix = path.suffix.lower()
    if suffix not in known:
        raise UsageError(
            f"{path.name} does not say what to write.", where=option, advice=f"Let it end in {', '.join(known)}."
        )
    return suffix
