"""The unit that people read: an area is kept in m² and shown in km².

A relation's unit is a `KeptUnit` where people read another one. It is a text like any other, equal to the unit that
numbers are kept in, so that nobody who computes or stores has to know; what shows numbers asks `shown` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache

from hynt.errors import DataError
from hynt.graph.units.conversion import Conversion, between_ratios

_IN_SI: ContextVar[bool] = ContextVar("in_si", default=False)


class KeptUnit(str):
    """A unit that numbers are kept in; `display` is the one that people read."""

    __slots__ = ("display",)
    display: str

    def __new__(cls, unit: str, display: str) -> KeptUnit:
        made = super().__new__(cls, unit)
        made.display = display
        return made

    def __reduce__(self) -> tuple[type[KeptUnit], tuple[str, str]]:
        return KeptUnit, (str(self), self.display)


def with_display(unit: str, display: str) -> str:
    """The unit with what people read beside it; a unit of another kind is refused."""
    if not display or display == unit:
        return str(unit)
    _conversion(str(unit), display)
    return KeptUnit(unit, display)


def display_of(unit: str) -> str:
    """The unit that people read; "" where it is the one that numbers are kept in."""
    return unit.display if isinstance(unit, KeptUnit) else ""


def shown(value: float, unit: str) -> tuple[float, str]:
    """A number as people read it, and its unit."""
    display = "" if _IN_SI.get() else display_of(unit)
    return (_conversion(str(unit), display)[0](value), display) if display else (value, str(unit))


def shown_difference(value: float, unit: str) -> tuple[float, str]:
    """A difference of two numbers: 5 K apart is 5 °C apart."""
    display = "" if _IN_SI.get() else display_of(unit)
    return (_conversion(str(unit), display)[1](value), display) if display else (value, str(unit))


def kept(value: float, unit: str) -> float:
    """The number that people read as this, in the unit that it is kept in: the inverse of `shown`."""
    display = "" if _IN_SI.get() else display_of(unit)
    return between_ratios(display, str(unit))(value) if display else value


def show_si() -> None:
    """From now on all numbers are shown as they are kept."""
    _IN_SI.set(True)


@contextmanager
def showing_si() -> Iterator[None]:
    """Within, all numbers are shown as they are kept."""
    token = _IN_SI.set(True)
    try:
        yield
    finally:
        _IN_SI.reset(token)


@lru_cache(maxsize=4096)
def _conversion(unit: str, display: str) -> tuple[Conversion, Conversion]:
    """Of numbers, and of differences."""
    try:
        found = between_ratios(unit or "1", display)
    except DataError as problem:
        raise DataError(
            f"numbers in {unit or 'no unit'} cannot be shown in {display}.", advice=f"{problem.what} Choose another."
        ) from None
    step = Fraction(found.multiplier, found.divisor)
    return found, Conversion(step.numerator, 0, step.denominator)
