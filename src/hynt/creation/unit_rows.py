"""The units of a dump as rows that SQL joins: how a number in each becomes one in its reference unit."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hynt.formats.format import UnitRule
from hynt.graph.fact import DATE_UNIT
from hynt.graph.units.conversion import lookup

UNITS = pa.schema(
    [
        ("unit", pa.string()),
        ("factor", pa.float64()),
        ("divisor", pa.float64()),
        ("shift", pa.float64()),
        ("si_unit", pa.string()),
    ]
)


def unit_rows(names: Iterable[str], rule: UnitRule) -> tuple[pa.Table, list[str]]:
    """A row for each unit that can be converted, and the names of those that cannot."""
    rows: list[tuple[str, float, float, float, str]] = [("", 1.0, 1.0, 0.0, ""), (DATE_UNIT, 1.0, 1.0, 0.0, DATE_UNIT)]
    unknown: list[str] = []
    for name in sorted(set(names) - {"", DATE_UNIT}):
        found = lookup(name)
        if found is None:
            unknown.append(name)
        elif rule == "keep":
            rows.append((name, 1.0, 1.0, 0.0, found.symbol))
        else:
            # 1/1000 is no exact float, 1000 is: dividing makes 18 g exactly 0.018 kg, as asking does.
            whole = round(1 / found.factor) if 0 < found.factor < 1 else 1
            exact = whole > 1 and 1 / whole == found.factor
            factor, divisor = (1.0, float(whole)) if exact else (found.factor, 1.0)
            rows.append((name, factor, divisor, found.offset, found.si_unit))
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, UNITS, strict=True)]
    return pa.table(arrays, schema=UNITS), unknown
