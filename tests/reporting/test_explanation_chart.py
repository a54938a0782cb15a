"""The picture of an explanation names every part, and is the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.asking.answers import Answers, NumberAnswer, RankedAnswer
from hynt.explanation.explanations import AttentionWeights, Explained, Explanation, Influence
from hynt.reporting.explanation_chart import MOST_PARTS, explanation_figure
from hynt.reporting.scales import picture

NONE = (None, None, None, None, None)


def ranked(
    parts: int = 3, *, looked: bool = True, question: str = "Brazil · export partner · ?", long: str = ""
) -> Explanation:
    first = RankedAnswer(1, "a", f"Amsterdam $1{long}", 0.6, 1.0, (), False)
    answers = (first, RankedAnswer(2, "b", f"Berlin{long}", 0.3, 0.5, (), False))
    influences = tuple(
        Influence(
            f"qualifier {number}",
            f"point in time {number}{long}",
            "removed" if number % 2 else "hidden",
            "b",
            "Berlin",
            0.1,
            -0.5 + 0.3 * number,
            2,
            None,
            None,
            None,
            0.4 if looked else None,
            0.9 if looked else None,
        )
        for number in range(parts)
    )
    attention = AttentionWeights(np.full((1, 2, 2), 0.5), None, (None, 0, 1, 2), np.zeros(4)) if looked else None
    told = Answers(question, "tail", "entity", answers, 9, True)
    return Explanation(told, Explained("b", f"Berlin{long}", 0.3, 2), influences, attention, ("triplet", "q"), ())


def number(change: float = 2.0) -> Explanation:
    answer = NumberAnswer(80.0, "year", (70.0, 90.0), 0.9, "this relation", (10.0, 99.0), ())
    one = Influence("head", "Japan", "hidden", *NONE, 82.0, change, change / 20, None, None)
    told = Answers("Japan · life expectancy · ?", "tail", "number", (answer,), 0, True)
    return Explanation(told, None, (one,), None, (), ())


def words(figure) -> str:
    texts = [*figure.texts, *(text for axes in figure.axes for text in [*axes.texts, *axes.get_yticklabels()])]
    return "\n".join([*(text.get_text() for text in texts), *(axes.get_xlabel() for axes in figure.axes)])


def test_parts_answers_and_attention_are_named():
    told = words(explanation_figure(ranked()))
    assert "first answer: Amsterdam $1 (60.0%) · explained: Berlin, rank 2 (30.0%)" in told
    assert "change in the probability of Berlin, in points" in told
    assert "qualifier 0: point in time 0" in told
    assert "40%" in told
    assert "90%" in told
    assert "attention" not in words(explanation_figure(ranked(looked=False)))


def test_numbers_change_in_their_unit():
    told = words(explanation_figure(number()))
    assert "change in the answer, in years" in told
    assert "answer: 80 years · 90% interval: 70 years to 90 years" in told
    assert "head: Japan" in told


def test_parts_that_do_not_fit_are_counted():
    figure = explanation_figure(ranked(MOST_PARTS + 4))
    assert len(figure.axes[0].patches) == MOST_PARTS
    assert "4 more parts not drawn" in words(figure)


@pytest.mark.parametrize(
    "explanation",
    [
        ranked(),
        ranked(1),
        ranked(0),
        number(-3.0),
        number(0.0),
        ranked(question="word " * 60),
        ranked(question="W" * 300, long="W" * 99),
    ],
    ids=range(7),
)
def test_words_stay_inside_the_picture(explanation):
    figure = explanation_figure(explanation)
    figure.draw_without_rendering()
    box = figure.bbox
    ticks = [text for axes in figure.axes for text in axes.get_yticklabels()]
    for one in [*figure.texts, *figure.legends, *ticks, *(axes.xaxis.label for axes in figure.axes)]:
        extent = one.get_window_extent()
        assert box.x0 <= extent.x0
        assert extent.x1 <= box.x1
        assert box.y0 <= extent.y0
        assert extent.y1 <= box.y1


def test_the_same_explanation_gives_the_same_file():
    assert picture(explanation_figure(ranked()), ".svg") == picture(explanation_figure(ranked()), ".svg")
    assert picture(explanation_figure(number()), ".png").startswith(b"\x89PNG")
