"""Errors that a person can act on: what happened, where, what to do.

Every error that bad input can cause is one of these; the command line prints it in one piece and leaves with its exit
code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

LONGEST = 2_000
"""The longest sentence of an error, in characters: what a file or a library said is quoted, and cut."""


def _of_bounded_length(what: str) -> str:
    return what if len(what) <= LONGEST else f"{what[: LONGEST // 2]} … {what[-LONGEST // 2 :]}"


@dataclass(frozen=True)
class Meant:
    """An entity or relation that a refused name may have meant; its type and where it stands, to tell it apart."""

    id: str
    name: str
    type: str = ""
    positions: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        return cls(**{**told, "positions": tuple(told["positions"])})


class HyntError(Exception):
    """An error with a place (file:line, a field or a config path) and advice that says what to do. Where a name is
    refused, `namesakes` are those that carry it, and `nearest` those whose names are most like it.

    >>> try:
    ...     hynt.read_graph("wrold")
    ... except hynt.HyntError as error:
    ...     print(error.what, error.advice.split("?")[0])
    there is no graph at 'wrold'. Did you mean world
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        advice: str = "",
        namesakes: Sequence[Meant] = (),
        nearest: Sequence[Meant] = (),
    ) -> None:
        self.what = _of_bounded_length(what)
        self.where, self.advice = where, advice
        self.namesakes, self.nearest = tuple(namesakes), tuple(nearest)
        super().__init__(str(self))

    def __str__(self) -> str:
        return f"{self.where}: {self.sentences}" if self.where else self.sentences

    @property
    def sentences(self) -> str:
        """What happened and what to do, without the place; a full stop between them where there is none."""
        if not self.advice:
            return self.what
        stop = "" if self.what.endswith((".", "?", "!", ":", ";", "…")) else "."
        return f"{self.what}{stop} {self.advice}"

    def at(self, where: str) -> Self:
        """The same error about another place."""
        self.where = where
        return self

    @classmethod
    def of(cls, problem: HyntError | RecordProblem, where: str = "") -> Self:
        """A problem as an error of this kind, at the place it names or at this one."""
        if isinstance(problem, RecordProblem):
            return cls(problem.what, where=where, advice=problem.advice)
        names = {"namesakes": problem.namesakes, "nearest": problem.nearest}
        return cls(problem.what, where=where or problem.where, advice=problem.advice, **names)


class DataError(HyntError):
    """The data, or a check of it, failed.

    >>> try:
    ...     hynt.graph_from_facts([("Ann", "knows", "")])
    ... except hynt.DataError as error:
    ...     print(error.where)
    train fact 1
    """

    exit_code = 1


class UsageError(HyntError):
    """The call was wrong: an unknown name, a bad option, a missing extra.

    >>> try:
    ...     hynt.read_graph("world")["Jappan"]
    ... except hynt.UsageError as error:
    ...     print(error.what)
    the graph has no entity called 'Jappan'.
    """

    exit_code = 2


def not_installed(package: str, extra: str, *, what: str = "", where: str = "") -> UsageError:
    """What to say where an extra is missing; `what` is what needs its package."""
    said = f"{what} needs {package}, which is not installed." if what else f"{package} is not installed."
    return UsageError(said, where=where, advice=f"Install it with: pip install 'hynt[{extra}]'.")


@contextmanager
def needing(package: str, extra: str, *, what: str = "", where: str = "") -> Iterator[None]:
    """Within the block a package of an extra is imported, or asked for one of its own."""
    try:
        yield
    except ImportError as problem:
        raise not_installed(package or problem.name or extra, extra, what=what, where=where) from None


class RecordProblem(Exception):
    """One record cannot become a fact. Whoever reads the file catches it, adds the place and counts the reason."""

    def __init__(self, reason: str, what: str, advice: str = "") -> None:
        self.what = _of_bounded_length(what)
        super().__init__(self.what)
        self.reason = reason  # a short slug that problems are counted by, such as "bad-number"
        self.advice = advice


@contextmanager
def located(where: str) -> Iterator[None]:
    """Within the block, whatever is refused as wrong use is said of this place."""
    try:
        yield
    except UsageError as problem:
        raise problem.at(where) from None
