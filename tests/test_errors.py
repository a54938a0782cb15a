"""An error keeps its words, its advice and its kind when its place becomes known."""

from __future__ import annotations

import ast

import pytest

from hynt.errors import DataError, RecordProblem, UsageError, located
from hynt.graph.units.dates import ImpossibleDate
from tests.conftest import ROOT

WHAT_IS_EXPECTED_SAYS_ENOUGH = {"config/declarations.py", "config/overrides.py", "sweeping/space.py"}
"""Refusals of settings: "expected a number, found 'x'" is advice already."""
SHORT = {"asking/encoding.py", "calibration/intervals.py"}
"""One refusal each: one that a file may get a million times, and one of a forged calibration."""


def test_errors_say_what_to_do():
    silent: dict[str, int] = {}
    for path in sorted((ROOT / "src" / "hynt").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                is_error = node.func.id in ("DataError", "HyntError", "UsageError")
                if is_error and not any(word.arg == "advice" for word in node.keywords):
                    name = path.relative_to(ROOT / "src" / "hynt").as_posix()
                    silent[name] = silent.get(name, 0) + 1
    few = {name: count for name, count in silent.items() if name not in WHAT_IS_EXPECTED_SAYS_ENOUGH}
    assert few == dict.fromkeys(SHORT, 1), "give what to do as advice"


def test_an_error_is_said_of_a_place():
    error = ImpossibleDate(2020, 20, 1).at("line 7")
    assert isinstance(error, ImpossibleDate)
    assert str(error).startswith("line 7: impossible date: year 2020, month 20")


@pytest.mark.parametrize("what", ["unknown setting", "found 'x'", "too large (over 1 MiB)"])
def test_what_happened_ends_before_the_advice_begins(what):
    assert str(UsageError(what, where="a.b", advice="Say it so.")) == f"a.b: {what}. Say it so."
    assert UsageError(what, where="a.b", advice="Say it so.").sentences == f"{what}. Say it so."
    assert str(UsageError(what, where="a.b")) == f"a.b: {what}"


@pytest.mark.parametrize("end", [".", "?", "!", ":", "…"])
def test_an_error_that_has_its_punctuation_gets_no_second(end):
    assert str(UsageError(f"is this it{end}", advice="Say it so.")) == f"is this it{end} Say it so."


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


def test_what_a_hostile_file_says_is_not_quoted_at_any_length():
    error = DataError(f"unknown variant `{'x' * 20_000}`, expected `F32`.", where="weights.safetensors")
    assert len(error.what) < 2_100
    assert error.what.startswith("unknown variant `xxx")
    assert error.what.endswith("expected `F32`.")
    problem = RecordProblem("unknown-unit", f"a number in {'m/' * 20_000}: it is unknown.")
    assert len(str(problem)) < 2_100
    assert problem.what.endswith("it is unknown.")
