"""Units: what a number was measured in, and the reference unit it is kept in.

    to_si(176.4, "lb")  ->  (80.01369406…, "kg")

A shipped table (`unit_table.tsv`, read on first use) knows the named units; products and quotients of them, such as
`tonne/year` or `W/(m K)`, are worked out by `unit_expressions`. The reference unit depends on the unit alone, never on
other facts: SI, except that calendar spans stay in years, angles in degrees, fractions in percent, and money as it is.
`docs/units-and-dates.md` says the rules with examples.
"""

from __future__ import annotations

import difflib
import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from hynt.errors import DataError
from hynt.graph.units.expressions import Measure, NotAUnit, power_text, read_expression
from hynt.graph.units.table import UnitTable, load_table

_SECONDS_PER_YEAR = 31_557_600
"""A year of 365.25 days, used only where `convert` is asked to go between seconds and years."""


class Unit(NamedTuple):
    """A unit and how its numbers become those of the reference unit: value * factor + offset."""

    symbol: str
    si_unit: str
    factor: float
    offset: float
    dimension: str


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
    # A factor such as 0.001 is no exact float, its inverse 1000 is: dividing gives 18 g -> 0.018 kg to the last digit.
    divisor = _whole_inverse(found.factor)
    result = (value / divisor if divisor else value * found.factor) + found.offset
    if not math.isfinite(result):
        raise DataError(
            f"{value} {found.symbol} is too large a number once in {found.si_unit}.", advice="Correct the number."
        )
    return result, found.si_unit


def from_si(value: float, unit: str | Unit) -> float:
    """The number of a reference unit's value in another unit: the inverse of `to_si`."""
    found = _known(unit)
    divisor = _whole_inverse(found.factor)
    return (value - found.offset) * divisor if divisor else (value - found.offset) / found.factor


def convert(value: float, unit: str | Unit, target: str | Unit) -> float:
    """The number in another unit of the same dimension. Between seconds and years, a year counts 365.25 days."""
    source, wanted = _known(unit), _known(target)
    if source.si_unit == wanted.si_unit:
        return from_si(to_si(value, source)[0], wanted)
    of_source, of_wanted = (_find(found.symbol)[1] for found in (source, wanted))
    if _in_seconds(of_source) != _in_seconds(of_wanted):
        raise DataError(
            f"{source.symbol} ({source.dimension}) cannot become {wanted.symbol} ({wanted.dimension}).",
            advice="Choose a unit of the same dimension.",
        )
    years = of_source.powers.get("year", 0) - of_wanted.powers.get("year", 0)
    return value * float(of_source.factor / of_wanted.factor * Fraction(_SECONDS_PER_YEAR) ** years)


def known_units() -> list[Unit]:
    """Every unit of the table, in its order."""
    return [_find(symbol)[0] for symbol in _table().rows]


def require(name: str) -> Unit:
    """The unit of a name, or an error that names the nearest known ones."""
    found = lookup(name)
    if found is not None:
        return found
    shown = name if len(name) <= 60 else name[:57] + "..."
    raise UnknownUnit(f"unknown unit {shown!r}.", advice=f"{_nearest(name[:60])}`known_units()` lists all.")


@lru_cache(maxsize=256)  # the same unknown unit comes in many facts
def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, _table().spellings, n=3, cutoff=0.7)
    return f"Did you mean {', '.join(repr(spelling) for spelling in near)}? " if near else ""


def _known(unit: str | Unit) -> Unit:
    return unit if isinstance(unit, Unit) else require(unit)


@lru_cache(maxsize=4096)
def _whole_inverse(factor: float) -> float:
    """n where the factor is 1/n for a whole n above 1, else 0."""
    inverse = round(1 / factor)
    return float(inverse) if inverse > 1 and 1 / inverse == factor else 0.0


@lru_cache(maxsize=4096)
def _find(name: str) -> tuple[Unit, Measure]:
    """A unit and its exact measure: from the table as written, by its name in any case, or as an expression."""
    table = _table()
    row = table.find(name)
    if row is not None:
        measure = table.measure(row)
        return Unit(row.symbol, row.si_unit, float(measure.factor), float(row.offset), row.dimension), measure
    measure = read_expression(name, table.find_measure)
    factor = measure.factor
    if not 1e-300 < factor < 1e300:  # as a float it would be 0 or infinite
        raise NotAUnit(name)
    reference = table.reference_of(measure)
    si_unit = reference.symbol if reference else power_text(measure.powers)
    dimension = reference.dimension if reference else f"in {si_unit}"
    return Unit(" ".join(name.split()), si_unit, float(factor), 0.0, dimension), measure


def _in_seconds(measure: Measure) -> dict[str, int]:
    powers = dict(measure.powers)
    powers["s"] = powers.get("s", 0) + powers.pop("year", 0)
    return {symbol: power for symbol, power in powers.items() if power}
