"""The shipped table of units, and the index of everything they are called."""

from __future__ import annotations

from fractions import Fraction
from importlib.resources import files
from typing import NamedTuple

from hynt.graph.units.expressions import Measure, NotAUnit, plain_powers, read_powers

_WIKIDATA_PLACES = (
    "http://www.wikidata.org/entity/",
    "https://www.wikidata.org/entity/",
    "https://www.wikidata.org/wiki/",
    "wd:",
)
_QUDT_PLACES = ("http://qudt.org/vocab/unit/", "https://qudt.org/vocab/unit/")
# One spelling for signs that look alike: micro, ångström, ohm, degrees with their letter.
_ONE_SIGN = str.maketrans({"µ": "μ", "\u212b": "Å", "\u2126": "Ω", "℃": "°C", "℉": "°F", "\u00a0": " "})
_SHORTEST_NAME = 4
"""Names from this length on are found in any case; shorter ones are symbols, where mW and MW differ."""


class UnitRow(NamedTuple):
    """One line of the table; `base` is set for reference units only."""

    symbol: str
    si_unit: str
    factor: str
    offset: Fraction
    dimension: str
    base: str


class UnitTable:
    """The rows by symbol, and by every other spelling."""

    def __init__(self, lines: list[str]) -> None:
        self.rows: dict[str, UnitRow] = {}
        self.spellings: dict[str, UnitRow] = {}
        self._any_case: dict[str, UnitRow] = {}
        self._references: dict[frozenset[tuple[str, int]], UnitRow] = {}
        for line in lines:
            symbol, si_unit, factor, offset, dimension, base, items, qudt, names = line.split("\t")
            row = UnitRow(symbol, si_unit, factor, Fraction(offset), dimension, base)
            self.rows[symbol] = row
            listed = names.split("|") if names else []
            codes = [f"unit:{qudt}"] if qudt else []
            for spelling in (symbol, *listed, *items.split(), *codes):
                self.spellings[spelling] = row
            for name in listed:
                if len(name) >= _SHORTEST_NAME:
                    self._any_case[name.casefold()] = row
            if symbol == si_unit:  # the first reference with these exponents speaks for expressions: Hz, not Bq
                self._references.setdefault(frozenset(read_powers(base).items()), row)

    def find(self, name: str) -> UnitRow | None:
        """The row of a spelling, as written first, then tidied, then a full name in any case."""
        row = self.spellings.get(name)
        if row is not None:
            return row
        tidy = tidied(name)
        return self.spellings.get(tidy) or self._any_case.get(tidy.casefold())

    def measure(self, row: UnitRow) -> Measure:
        """The exact factor of a row and the exponents of its reference unit."""
        return Measure(Fraction(row.factor), read_powers(self.rows[row.si_unit].base))

    def find_measure(self, name: str) -> Measure:
        """The measure of a unit inside an expression. °C/km is a step of temperature, so offsets do not count there."""
        row = self.find(name)
        if row is None:
            raise NotAUnit(name)
        return self.measure(row)

    def reference_of(self, measure: Measure) -> UnitRow | None:
        """The reference unit with these exponents, where one has a name."""
        return self._references.get(frozenset(measure.powers.items()))


def tidied(name: str) -> str:
    """A spelling without YAGO's brackets, Wikidata's or QUDT's address, doubled spaces and look-alike signs."""
    text = plain_powers(" ".join(name.translate(_ONE_SIGN).split()))
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    for place in _QUDT_PLACES:
        if text.startswith(place):
            return "unit:" + text.removeprefix(place)
    for place in _WIKIDATA_PLACES:
        text = text.removeprefix(place)
    return text


def load_table() -> UnitTable:
    """The table that the package ships."""
    text = files("hynt.graph.units").joinpath("unit_table.tsv").read_text(encoding="utf-8")
    return UnitTable(text.splitlines()[1:])
