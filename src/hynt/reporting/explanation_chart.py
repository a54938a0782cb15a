"""The picture of an explanation: how the answer changes without each part, and beside it where the model looked."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hynt.asking.answers import NumberAnswer, RankedAnswer
from hynt.explanation.explanations import Explanation, Influence
from hynt.graph.units.conversion import shown_difference
from hynt.reporting.scales import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    TEAL,
    axis_text,
    bare,
    fitted,
    hynt_style,
    new_figure,
    round_steps,
    unit_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PARTS = 16
_WIDTH, _ROW = 8.4, 0.34  # inches
_LOOKS = {"removed": 1.0, "hidden": 0.45}  # how solid a bar is


def explanation_figure(explanation: Explanation) -> Figure:
    """A bar for each part, the most influential first; with attention, two columns of shares on the right."""
    shown = explanation.influences[:MOST_PARTS]
    with hynt_style():
        title = textwrap.wrap(explanation.answers.question, 70, max_lines=3, placeholder=" …")
        top, bottom = 0.62 + 0.24 * len(title), 0.95
        height = top + bottom + _ROW * max(1, len(shown))
        figure = new_figure(_WIDTH, height)
        looked = explanation.attention is not None
        bars = figure.add_axes(
            (2.95 / _WIDTH, bottom / height, (3.35 if looked else 5.0) / _WIDTH, _ROW * max(1, len(shown)) / height)
        )
        _bars(bars, explanation, shown)
        if looked:
            side = figure.add_axes(
                (6.6 / _WIDTH, bottom / height, 1.5 / _WIDTH, _ROW * max(1, len(shown)) / height), sharey=bars
            )
            _attention(side, shown)
        _words(figure, explanation, title, height, len(explanation.influences) - len(shown))
    return figure


def _bars(axes: Axes, explanation: Explanation, shown: Sequence[Influence]) -> None:
    bare(axes, grid="x")
    axes.spines["bottom"].set_visible(False)
    axes.axvline(0, color=GREY, linewidth=1.0, zorder=3)
    changes = [
        one.probability_change if one.probability_change is not None else one.value_change or 0.0 for one in shown
    ]
    for place, (one, change) in enumerate(zip(shown, changes, strict=True)):
        colour = TEAL if explanation.about is None else ORANGE if change < 0 else BLUE
        axes.barh(place, change, height=0.62, color=colour, alpha=_LOOKS[one.change], linewidth=0, zorder=2)
    axes.set_yticks(range(len(shown)), [_named(one) for one in shown])
    axes.tick_params(axis="y", colors=INK, pad=8)
    axes.set_ylim(max(1, len(shown)) - 0.5, -0.5)
    span = max([abs(change) for change in changes], default=1.0) or 1.0
    low, high = min([0.0, *changes]), max([0.0, *changes])
    axes.set_xlim(low - 0.06 * span if low < 0 else -0.12 * span, high + 0.06 * span if high > 0 else 0.12 * span)
    _axis(axes, explanation, span)


def _axis(axes: Axes, explanation: Explanation, span: float) -> None:
    ticks = round_steps(*axes.get_xlim(), 4)
    if explanation.about is not None:
        axes.set_xticks(ticks, [_signed(f"{abs(value) * 100:.3g}", value) for value in ticks])
        axes.set_xlabel(f"change in the probability of {fitted(explanation.about.name, 1.5, 9)}, in points")
        return
    unit = unit_text(_number(explanation).unit) or ("years" if _number(explanation).unit == "date" else "")
    there, (far, _) = _number(explanation).unit, shown_difference(span, _number(explanation).unit)
    texts = [axis_text(abs(shown_difference(value, there)[0]), "", far) for value in ticks]
    axes.set_xticks(ticks, [_signed(text, value) for text, value in zip(texts, ticks, strict=True)])
    axes.set_xlabel(f"change in the answer{f', in {unit}' if unit else ''}")


def _attention(axes: Axes, shown: Sequence[Influence]) -> None:
    """Shares as numbers on squares that are the darker the more was looked there."""
    from matplotlib.patches import Rectangle

    axes.set_xlim(0, 2)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(left=False, labelleft=False, labelbottom=False)
    for column, name in enumerate(("context_attention", "prediction_attention")):
        axes.text(column + 0.5, len(shown) - 0.3, name.replace("_", "\n"), ha="center", va="top", size=8, color=GREY)
        for place, one in enumerate(shown):
            share = getattr(one, name)
            if share is None:
                continue
            axes.add_patch(
                Rectangle((column + 0.08, place - 0.4), 0.84, 0.8, color=TEAL, alpha=0.06 + 0.74 * share, linewidth=0)
            )
            axes.text(
                column + 0.5,
                place,
                f"{share:.0%}",
                ha="center",
                va="center_baseline",
                size=8,
                color="white" if share > 0.6 else INK,
            )


def _words(figure: Figure, explanation: Explanation, title: Sequence[str], height: float, left_out: int) -> None:
    from matplotlib.patches import Patch

    left, y = 0.25 / _WIDTH, 0.2
    for line in title:
        figure.text(left, 1 - y / height, fitted(line, _WIDTH - 0.5, 12, bold=True), size=12, weight="bold", va="top")
        y += 0.24
    figure.text(left, 1 - (y + 0.04) / height, _answer(explanation), size=9, color=GREY, va="top")
    handles = [
        Patch(facecolor=INK, alpha=_LOOKS[change] * 0.8, label=label)
        for change, label in (("removed", "removed from the fact"), ("hidden", "hidden, as the asked part is"))
        if any(one.change == change for one in explanation.influences)
    ]
    if handles:
        figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(left, 0.1 / height), ncols=2, borderaxespad=0.0
        )
    if left_out:
        figure.text(1 - left, 0.14 / height, f"{left_out} more parts not drawn", size=8, color=GREY, ha="right")


def _answer(explanation: Explanation) -> str:
    first = explanation.answers[0]
    if isinstance(first, RankedAnswer):
        about = explanation.about
        assert about is not None
        if about.id == first.id:
            return f"first answer: {fitted(first.name, 5.0, 9)} ({first.probability:.1%})"
        told = f"first answer: {fitted(first.name, 2.0, 9)} ({first.probability:.1%})"
        return f"{told} · explained: {fitted(about.name, 2.0, 9)}, rank {about.rank} ({about.probability:.1%})"
    told = f"answer: {first.text(first.value)}"
    if first.interval is not None:
        low, high = (first.text(end) for end in first.interval)
        told += f" · {first.level:.0%} interval: {low} to {high}"
    return told


def _number(explanation: Explanation) -> NumberAnswer:
    first = explanation.answers[0]
    assert isinstance(first, NumberAnswer)
    return first


def _named(one: Influence) -> str:
    """A qualifier speaks for itself; what else there is needs its place beside it."""
    if one.change == "removed":
        return fitted(one.says or one.part, 2.5, 8)
    return fitted(f"{one.part}: {one.says}", 2.5, 8)


def _signed(text: str, value: float) -> str:
    return text if value == 0 else f"{'+' if value > 0 else '−'}{text}"
