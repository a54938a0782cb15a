"""How charts look that matplotlib draws, and how they become files; what they share with pages is in `scales`.

matplotlib is an extra, and imported only where something is drawn.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.reporting.scales import COLOURS, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


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
        raise UsageError("a picture needs matplotlib.", where=option, advice="Install it: pip install 'hynt[plot]'.")


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
    """The ticks of a scale, and their texts."""
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
