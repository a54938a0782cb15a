"""Errors that a person can act on: what happened, where, what to do.

Every error that bad input can cause is one of these; the command line prints it in one piece and leaves with its exit
code.
"""

from __future__ import annotations


class HyntError(Exception):
    """An error with a place and an advice. `where` is a file:line, a field or a config path; `advice` says what to
    do.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        self.what = what
        self.where = where
        self.advice = advice
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" {self.advice}" if self.advice else ""
        return f"{place}{self.what}{advice}"


class DataError(HyntError):
    """The data, or a check of it, failed."""

    exit_code = 1


class UsageError(HyntError):
    """The call was wrong: an unknown name, a bad option, a missing extra."""

    exit_code = 2


class RecordProblem(Exception):
    """One record cannot become a fact. Whoever reads the file catches it, adds the place and counts the reason."""

    def __init__(self, reason: str, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.reason = reason  # a short slug that problems are counted by, such as "bad-number"
        self.what = what
        self.advice = advice
