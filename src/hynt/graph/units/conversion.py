"""Units: what a number was measured in, and the reference unit it is kept in.

    to_si(176.4, "lb")  ->  (80.01369406…, "kg")

A shipped table (`unit_table.tsv`, read on first use) knows the named units; products and quotients of them, such as
`tonne/year` or `W/(m K)`, are worked out exactly. The reference unit depends on the unit alone, never on
other facts: SI, except that calendar spans stay in years, angles in degrees, fractions in percent, and money as it is.
`docs/reference/units-and-dates.md` says the rules with examples.

`Conversion` is the only arithmetic on units: importing, making graphs from dumps and asking all go through it, so that
the same number in the same unit is the same double everywhere.

People may read another unit: an area is kept in m² and shown in km². There a relation's unit is a `KeptUnit`. It is a
text like any other, equal to the unit that
numbers are kept in, so that nobody who computes or stores has to know; what shows numbers asks `in_display_unit`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from hynt.errors import DataError
from hynt.graph.units.table import Measure, NotAUnit, UnitTable, load_table, power_text, read_expression
from hynt.names import shortened, spelled_like

_SECONDS_PER_YEAR = 31_557_600
"""A year of 365.25 days, used only where `convert` is asked to go between seconds and years."""
_WHOLE = 2.0**53
"""Up to here doubles hold every whole number; beyond, the double of 1e23 is another whole number near it."""


class Conversion(NamedTuple):
    """(value * multiplier + shift) / divisor in whole numbers, rounded once: to the double nearest to the exact result.

    A double counts as the decimal that it is written as: 5.1 is 51/10, so 5.1 g is 0.0051 kg to the last digit.
    """

    multiplier: int
    shift: int
    divisor: int

    def __call__(self, value: float) -> float:
        """The converted number; infinite where it is beyond the doubles."""
        value = float(value)  # of an int or one of numpy's: their spelling differs
        if value.is_integer() and -_WHOLE <= value <= _WHOLE:
            above, below = int(value), 1
        elif math.isfinite(value):
            above, below = Decimal(repr(value)).as_integer_ratio()
        else:
            return value
        above = above * self.multiplier + below * self.shift
        try:
            return above / (below * self.divisor)  # Python divides whole numbers of any size with one rounding
        except OverflowError:
            return math.inf if above > 0 else -math.inf


class Unit(NamedTuple):
    """A unit and how its numbers become those of the reference unit: value * factor + offset, exactly."""

    symbol: str
    si_unit: str
    factor: Fraction
    offset: Fraction
    dimension: str

    @property
    def is_reference(self) -> bool:
        """Whether its numbers stay as they are."""
        return self.factor == 1 and not self.offset

    @property
    def conversion(self) -> Conversion:
        """What turns a number of this unit into one of the reference unit."""
        return _linear(self.factor, self.offset)


class UnknownUnit(DataError, ValueError):
    """A unit that neither the table nor a product of its units explains."""


@cache
def _table() -> UnitTable:
    return load_table()


@lru_cache(maxsize=4096)
def lookup(name: str) -> Unit | None:
    """The unit of a symbol, a name in any case, a Wikidata item, a QUDT or UCUM code, an expression; else None."""
    try:
        return _find(name)[0]
    except NotAUnit:
        return None


def to_si(value: float, unit: str | Unit) -> tuple[float, str]:
    """The number in its reference unit, and that unit's symbol."""
    found = _known(unit)
    return _finite(found.conversion, value, found.symbol, found.si_unit), found.si_unit


def convert(value: float, unit: str | Unit, target: str | Unit) -> float:
    """The number in another unit of the same dimension. Between seconds and years, a year counts 365.25 days."""
    conversion, symbol, wanted = _between(unit, target)
    return _finite(conversion, value, symbol, wanted)


@lru_cache(maxsize=4096)  # a file of questions has many numbers in few units
def _between(unit: str | Unit, target: str | Unit) -> tuple[Conversion, str, str]:
    """How numbers of one unit become those of another, in one step, and the symbols of both."""
    source, wanted = _known(unit), _known(target)
    if source.si_unit == wanted.si_unit:
        shift = (source.offset - wanted.offset) / wanted.factor
        return _linear(source.factor / wanted.factor, shift), source.symbol, wanted.symbol
    of_source, of_wanted = (_find(found.symbol)[1] for found in (source, wanted))
    if _in_seconds(of_source) != _in_seconds(of_wanted):
        raise DataError(
            f"{source.symbol} ({source.dimension}) cannot become {wanted.symbol} ({wanted.dimension}).",
            advice=f"Money is never converted, since rates change: give the amount in {wanted.symbol}."
            if all(one.dimension.startswith("currency") for one in (source, wanted))
            else "Choose a unit of the same dimension.",
        )
    years = of_source.powers.get("year", 0) - of_wanted.powers.get("year", 0)
    factor = of_source.factor / of_wanted.factor * Fraction(_SECONDS_PER_YEAR) ** years
    return _linear(factor, Fraction(0)), source.symbol, wanted.symbol


@lru_cache(maxsize=4096)
def between_ratios(unit: str, target: str) -> Conversion:
    """How numbers of one unit are read in another, where a percent is a hundredth: 0.0068 reads 6.8 ‰."""
    source, wanted = _known(unit), _known(target)
    of_source, of_wanted = (_find(found.symbol)[1] for found in (source, wanted))
    percents = of_source.powers.get("percent", 0) - of_wanted.powers.get("percent", 0)
    if not percents:
        return _between(unit, target)[0]
    plain = [
        {symbol: power for symbol, power in one.powers.items() if symbol != "percent"} for one in (of_source, of_wanted)
    ]
    if plain[0] != plain[1]:
        _between(unit, target)  # says what is wrong
    return _linear(of_source.factor / of_wanted.factor * Fraction(1, 100) ** percents, Fraction(0))


_RULES = "The page 'Units and dates' of the documentation says how to write units."


def require(name: str) -> Unit:
    """The unit of a name, or an error that names the nearest known ones."""
    found = lookup(name)
    if found is not None:
        return found
    raise UnknownUnit(f"unknown unit {shortened(name)!r}.", advice=f"{_nearest(name[:60])}{_RULES}")


@lru_cache(maxsize=256)  # the same unknown unit comes in many facts
def _nearest(name: str) -> str:
    near = spelled_like(name, _table().spellings, 3)
    return f"Did you mean {', '.join(repr(spelling) for spelling in near)}? " if near else ""


def _known(unit: str | Unit) -> Unit:
    return unit if isinstance(unit, Unit) else require(unit)


def _linear(factor: Fraction, offset: Fraction) -> Conversion:
    """value * factor + offset over one denominator."""
    divisor = math.lcm(factor.denominator, offset.denominator)
    return Conversion(int(factor * divisor), int(offset * divisor), divisor)


def _finite(conversion: Conversion, value: float, symbol: str, wanted: str) -> float:
    try:
        value = float(value)
    except OverflowError:
        raise DataError(f"a whole number of {symbol} is too large a number.", advice="Correct the number.") from None
    result = conversion(value)
    if math.isnan(value):
        raise DataError("NaN is not a number, in any unit.", advice="Leave the value out.")
    if not math.isfinite(result):
        raise DataError(f"{value} {symbol} is too large a number once in {wanted}.", advice="Correct the number.")
    if result == 0 and value and not conversion.shift:
        raise DataError(f"{value} {symbol} is too close to zero once in {wanted}.", advice="Correct the number.")
    return result


@lru_cache(maxsize=4096)
def _find(name: str) -> tuple[Unit, Measure]:
    """A unit and its exact measure: from the table as written, by its name in any case, or as an expression."""
    table = _table()
    row = table.find(name)
    if row is not None:
        measure = table.measure(row)
        return Unit(row.symbol, row.si_unit, measure.factor, row.offset, row.dimension), measure
    measure = read_expression(name, table.find_measure)
    factor = measure.factor
    if not 1e-300 < factor < 1e300:  # nearly every number would become 0 or infinite
        raise NotAUnit(name)
    reference = table.reference_of(measure)
    si_unit = reference.symbol if reference else power_text(measure.powers)
    dimension = reference.dimension if reference else f"in {si_unit}"
    return Unit(" ".join(name.split()), si_unit, factor, Fraction(0), dimension), measure


def _in_seconds(measure: Measure) -> dict[str, int]:
    powers = dict(measure.powers)
    powers["s"] = powers.get("s", 0) + powers.pop("year", 0)
    return {symbol: power for symbol, power in powers.items() if power}


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


def in_display_unit(value: float, unit: str) -> tuple[float, str]:
    """A number as people read it, and its unit."""
    display = "" if _IN_SI.get() else display_of(unit)
    return (_conversion(str(unit), display)[0](value), display) if display else (value, str(unit))


def shown_difference(value: float, unit: str) -> tuple[float, str]:
    """A difference of two numbers: 5 K apart is 5 °C apart."""
    display = "" if _IN_SI.get() else display_of(unit)
    return (_conversion(str(unit), display)[1](value), display) if display else (value, str(unit))


def kept(value: float, unit: str) -> float:
    """The number that people read as this, in the unit that it is kept in: the inverse of `in_display_unit`."""
    display = "" if _IN_SI.get() else display_of(unit)
    return between_ratios(display, str(unit))(value) if display else value


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
