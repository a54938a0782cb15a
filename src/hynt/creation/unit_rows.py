"""The units of a dump: how its numbers are converted while they are parsed, and the names that SQL joins."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa

from hynt.formats.format import UnitRule
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.conversion import Conversion, lookup

UNITS = pa.schema([("unit", pa.string()), ("si_unit", pa.string())])


class MetUnits(dict[str, Conversion | None]):
    """Every unit met, and how its numbers are converted: None where they stay as they are."""

    def __init__(self, rule: UnitRule) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, name: str) -> Conversion | None:
        found = lookup(name) if self._rule == "si" else None
        self[name] = conversion = None if found is None or found.is_reference else found.conversion
        return conversion


def converted(convert: Conversion, value: float) -> float:
    """The number in the reference unit; infinite, and so left out later, where no double holds it: because it is too
    large, or because nothing is left of it.
    """
    found = convert(value)
    return math.inf if found == 0 and value and not convert.shift else found


def unit_rows(names: Iterable[str], rule: UnitRule) -> tuple[pa.Table, list[str]]:
    """Each known unit and the one that its numbers are in after parsing; and the names of the unknown ones."""
    rows: list[tuple[str, str]] = [("", ""), (DATE_UNIT, DATE_UNIT)]
    unknown: list[str] = []
    for name in sorted(set(names) - {"", DATE_UNIT}):
        found = lookup(name)
        if found is None:
            unknown.append(name)
        else:
            rows.append((name, found.symbol if rule == "keep" else found.si_unit))
    return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], schema=UNITS), unknown
