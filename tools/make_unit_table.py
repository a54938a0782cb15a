"""Make src/hynt/graph/units/unit_table.tsv from unit_definitions.txt.

    python tools/make_unit_table.py            writes the table
    python tools/make_unit_table.py --check    exit 1 when the table is not what the definitions give

Needs pint, which the installed package does not: it works out the factors that the definitions leave open, and every
typed factor whose unit pint knows by the same name is compared with pint's (those that differ on purpose are listed).
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pint

DEFINITIONS = Path(__file__).with_name("unit_definitions.txt")
TABLE = Path(__file__).parents[1] / "src" / "hynt" / "graph" / "units" / "unit_table.tsv"
COLUMNS = ("symbol", "si_unit", "factor", "offset", "dimension", "base", "wikidata", "qudt", "names")

# symbol: (name, power of ten)
PREFIXES = {
    "Y": ("yotta", 24),
    "E": ("exa", 18),
    "P": ("peta", 15),
    "T": ("tera", 12),
    "G": ("giga", 9),
    "M": ("mega", 6),
    "k": ("kilo", 3),
    "h": ("hecto", 2),
    "da": ("deca", 1),
    "d": ("deci", -1),
    "c": ("centi", -2),
    "m": ("milli", -3),
    "μ": ("micro", -6),
    "n": ("nano", -9),
    "p": ("pico", -12),
    "f": ("femto", -15),
    "a": ("atto", -18),
}

# Typed factors that differ from pint's on purpose: its acre and the units around it are US survey units, its barrel is
# not that of oil, its quad is rounded.
DIFFERS_FROM_PINT = {"acre", "chain", "rod", "furlong", "fathom", "league", "bbl", "quad"}


class Row(NamedTuple):
    """One line of the table; `base` is set for reference units only."""

    symbol: str
    reference: str
    factor: Fraction
    offset: Fraction
    dimension: str
    base: str
    wikidata: str
    qudt: str
    names: list[str]


def exact(text: str) -> Fraction:
    """A decimal or a quotient of two decimals, exactly."""
    numerator, _, denominator = text.strip().partition("/")
    return Fraction(numerator) / Fraction(denominator or 1)


def spellings(names: list[str]) -> list[str]:
    """The names with their American spellings and plurals, in order, each once."""
    found = dict.fromkeys(names)
    for name in names:
        found.update(dict.fromkeys((name.replace("metre", "meter").replace("litre", "liter"),)))
    for name in list(found):
        first, per, rest = name.partition(" per ")
        if (
            len(first) > 3
            and first[-1].isalpha()
            and first.isascii()
            and not first.endswith(("s", "x", "z", "h", "feet"))
        ):
            found[f"{first}s{per}{rest}"] = None
    return list(found)


def fields(line: str, count: int) -> list[str]:
    parts = [part.strip() for part in line.split(" ;")] if " ;" in line else [line.strip()]
    return (parts + [""] * count)[:count]


def measured(definition: str, pint_reference: str, units: pint.UnitRegistry[Any]) -> tuple[Fraction, Fraction]:
    """Factor and offset of a definition: typed ("= 5/9 + 45967/180") or worked out by pint."""
    if definition.startswith("="):
        factor, _, offset = definition[1:].partition("+")
        return exact(factor), exact(offset or "0")
    return Fraction(units.Quantity(Fraction(1), definition).to(pint_reference).magnitude), Fraction(0)


def compare_with_pint(row: Row, pint_reference: str, units: pint.UnitRegistry[Any]) -> None:
    """Stop where pint knows the unit's first name with another factor that nobody has listed."""
    name = row.names[0].replace("metre", "meter").replace("litre", "liter") if row.names else row.symbol
    if row.offset or not pint_reference or not name.isidentifier():
        return
    try:
        theirs = float(units.Quantity(Fraction(1), name).to(pint_reference).magnitude)
    except (pint.UndefinedUnitError, pint.DimensionalityError):
        return
    differs = abs(theirs / float(row.factor) - 1) > 1e-9
    if not differs and row.symbol in DIFFERS_FROM_PINT:
        raise SystemExit(f"{row.symbol} agrees with pint: take it from the list of those that differ")
    if differs and row.symbol not in DIFFERS_FROM_PINT:
        raise SystemExit(
            f"{row.symbol}: {float(row.factor)!r} here, {theirs!r} in pint: correct it, or list it as different"
        )


def read_definitions(text: str) -> list[Row]:
    units: pint.UnitRegistry[Any] = pint.UnitRegistry(non_int_type=Fraction)
    rows: list[Row] = []
    dimension = reference = base = pint_reference = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            dimension, reference, base, pint_reference = fields(line.strip("[]"), 4)
            continue
        if dimension == "currency":
            symbol, names, item = fields(line, 3)
            rows.append(currency(symbol, names, item))
            continue
        symbol, names, definition, item, qudt, prefixes = fields(line, 6)
        kind = reference if dimension == "own" else dimension
        listed = [name.strip() for name in names.split(",") if name.strip()]
        if dimension == "own" and " " in symbol:
            listed.append(symbol.replace(" ", "_"))  # its name as a base unit, in which no space may stand
        factor, offset = measured(definition, pint_reference, units)
        row = Row(symbol, reference, factor, offset, kind, "", item, qudt, listed)
        compare_with_pint(row, pint_reference, units)
        if symbol == reference:
            row = row._replace(base=base.replace(" ", "_") if dimension == "own" else base)
        rows.append(row._replace(names=spellings(listed)))
        rows.extend(prefixed(row, prefix) for prefix in prefixes.split())
    return rows


def currency(symbol: str, names: str, item: str) -> Row:
    """A currency is its own reference: money is never converted."""
    listed = [name.strip() for name in names.split(",")]
    return Row(symbol, symbol, Fraction(1), Fraction(0), f"currency {symbol}", symbol, item, "", spellings(listed))


def prefixed(row: Row, prefix: str) -> Row:
    """A row with an SI prefix; `prefix` is its symbol, with its Wikidata item after a colon where one is certain."""
    letter, _, item = prefix.partition(":")
    word, power = PREFIXES[letter]
    full, *others = (
        row.names
    )  # the first name is a full one; among the others are symbols, which take no word before them
    names = [
        word + full,
        *(word + name for name in others if len(name) > 3 and name[0].isalpha() and " of " not in name),
    ]
    names += ["u" + row.symbol] if letter == "μ" else []
    names += [letter + "l"] if row.symbol == "L" else []
    names += ["ul"] if letter + row.symbol == "μL" else []
    qudt = word.capitalize() + row.qudt if row.qudt else ""
    factor = row.factor * Fraction(10) ** power
    return row._replace(
        symbol=letter + row.symbol, factor=factor, base="", wikidata=item, qudt=qudt, names=spellings(names)
    )


def check_unique(rows: list[Row]) -> None:
    """No spelling, item or code may mean two units; full names not even in another case."""
    owner: dict[str, str] = {}
    for row in rows:
        keys = [row.symbol, *row.names, *row.wikidata.split(), *(["unit:" + row.qudt] if row.qudt else [])]
        keys += [f"any case: {name.casefold()}" for name in row.names if len(name) > 3]
        for key in dict.fromkeys(keys):
            if owner.setdefault(key, row.symbol) != row.symbol:
                raise SystemExit(f"{key!r} means both {owner[key]!r} and {row.symbol!r}")
    if len({row.symbol for row in rows}) != len(rows):
        raise SystemExit("a symbol stands twice")


def table(rows: list[Row]) -> str:
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        names = [name for name in row.names if name != row.symbol]
        numbers = (str(row.factor), str(row.offset))  # whole or numerator/denominator: exact, and read by Fraction
        cells = (row.symbol, row.reference, *numbers, row.dimension, row.base, row.wikidata, row.qudt, "|".join(names))
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def main() -> int:
    rows = read_definitions(DEFINITIONS.read_text(encoding="utf-8"))
    check_unique(rows)
    text = table(rows)
    if "--check" in sys.argv[1:]:
        same = TABLE.read_text(encoding="utf-8") == text
        print("the table is up to date" if same else "the table is out of date: run tools/make_unit_table.py")
        return 0 if same else 1
    TABLE.write_text(text, encoding="utf-8")
    items = sum(len(row.wikidata.split()) for row in rows)
    print(f"{len(rows)} units, {items} Wikidata items, {len({row.dimension for row in rows})} dimensions")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
