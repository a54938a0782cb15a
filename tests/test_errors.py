"""An error keeps its words, its advice and its kind when its place becomes known."""

from __future__ import annotations

import pytest

from hynt.errors import DataError, RecordProblem, UsageError, located
from hynt.graph.units.dates import ImpossibleDate


def test_an_error_is_said_of_a_place():
    error = ImpossibleDate(2020, 20, 1).at("line 7")
    assert isinstance(error, ImpossibleDate)
    assert str(error).startswith("line 7: impossible date: year 2020, month 20")


def test_a_problem_becomes_an_error_of_another_kind():
    problem = DataError("the file was changed.", where="run", advice="Restore it.")
    assert str(UsageError.of(problem)) == "run: the file was changed. Restore it."
    assert str(UsageError.of(problem, "--run")) == "--run: the file was changed. Restore it."
    record = RecordProblem("bad-number", "'x' is not a number.", "Write digits.")
    assert str(DataError.of(record, "facts:3")) == "facts:3: 'x' is not a number. Write digits."


def test_wrong_use_within_a_block_is_said_of_its_place():
    with pytest.raises(UsageError, match=r"^head: there is no such entity\.$"), located("head"):
        raise UsageError("there is no such entity.", where="somewhere")
    with pytest.raises(DataError, match=r"^elsewhere: broken"), located("head"):
        raise DataError("broken.", where="elsewhere")
