"""The shipped table of units, the index of everything they are called, and products and quotients of them, worked out
exactly: `km/h`, `kg m-2`, `W/(m K)`, `1/1000/year`, `unit:M-PER-SEC`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.resources import files
from typing import NamedTuple

_LONGEST = 120
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_RAISED_SIGNS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SIGNS = str.maketrans("−·⋅×*", "-    ")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?")
_POWER = re.compile(r"(.*?[^0-9+-])([+-]?[0-9])")
_QUDT_POWER = re.compile(r"(.*?[A-Za-z])([0-9])")


class NotAUnit(Exception):
    """A part of an expression that means nothing; caught where expressions are read."""


class Measure(NamedTuple):
    """An exact multiple of a product of base units: factor, and the exponent of each base unit (no zeros)."""

    factor: Fraction
    powers: Mapping[str, int]


def read_powers(text: str) -> dict[str, int]:
    """The exponents in a text such as "kg m2 s-2"."""
    powers: dict[str, int] = {}
    for part in text.split():
        found = re.fullmatch(r"(.*?)(-?[0-9]+)?", part)
        assert found is not None  # the pattern matches any text
        powers[found[1]] = int(found[2] or 1)
    return powers


def power_text(powers: Mapping[str, int]) -> str:
    """The exponents as a unit that can be read again: kg m/(s3 K)."""
    above = [symbol + (str(power) if power > 1 else "") for symbol, power in sorted(powers.items()) if power > 0]
    below = [symbol + (str(-power) if power < -1 else "") for symbol, power in sorted(powers.items()) if power < 0]
    text = " ".join(above) or "1"
    if not below:
        return text
    return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({' '.join(below)})"


def read_expression(text: str, find: Callable[[str], Measure]) -> Measure:
    """The measure of an expression over the units that `find` knows; raises NotAUnit."""
    if len(text) > _LONGEST:
        raise NotAUnit(text)
    text = text.strip().removeprefix("http://qudt.org/vocab/unit/") if "qudt.org" in text else text.strip()
    if text.startswith(("unit:", "PER-")) or "-PER-" in text:
        return _read_qudt(text.removeprefix("unit:"), find)
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    text = " ".join(plain_powers(text).translate(_SIGNS).split())
    text = re.sub(r"(?:^|\s+)per\s+", "/", text)
    return _quotient(re.sub(r"\s*([/()])\s*", r"\1", text), find)


def plain_powers(text: str) -> str:
    """Exponents written after their unit without a sign: km², km^2 and km**2 as km2, 10³ and 10*3 as 1e3."""
    text = _RAISED.sub(lambda found: "^" + found[0].translate(_RAISED_SIGNS), text).replace("**", "^")
    text = re.sub(r"(?<![0-9.])10[*^](?=[+-]?[0-9])", "1e", text)
    return re.sub(r"(?<=[^0-9.])\^", "", text)


def _quotient(text: str, find: Callable[[str], Measure]) -> Measure:
    """a/b/c, read from the left. A product after a slash needs brackets: W/m K could mean two things."""
    parts = _split(text, "/")
    if not text or (len(parts) > 1 and not all(parts[1:])):
        raise NotAUnit(text)
    result = _product(parts[0], find) if parts[0] else Measure(Fraction(1), {})
    for part in parts[1:]:
        if not part.startswith("(") and _is_product(part, find):
            raise NotAUnit(text)
        result = _times(result, _product(part, find), -1)
    return result


def _is_product(part: str, find: Callable[[str], Measure]) -> bool:
    if " " not in part and "." not in part:
        return False
    try:
        find(part)  # a name may have spaces: US dollar
    except NotAUnit:
        return _NUMBER.fullmatch(part) is None
    return False


def _product(text: str, find: Callable[[str], Measure]) -> Measure:
    if text.startswith("(") and text.endswith(")") and len(_split(text, " ")) == 1:
        return _quotient(text[1:-1], find)
    if _NUMBER.fullmatch(text):
        if not float(text):
            raise NotAUnit(text)
        return Measure(Fraction(text), {})
    try:
        return find(text)
    except NotAUnit:
        pass
    parts = _split(text, " ")
    if len(parts) == 1:
        parts = _split(text, ".")
    if len(parts) == 1:
        return _powered(text, find, _POWER)
    result = Measure(Fraction(1), {})
    for part in parts:
        result = _times(result, _product(part, find), 1)
    return result


def _powered(text: str, find: Callable[[str], Measure], pattern: re.Pattern[str]) -> Measure:
    """A unit with an exponent of one digit: s-2, m3."""
    found = pattern.fullmatch(text)
    if found is None or int(found[2]) == 0:
        raise NotAUnit(text)
    return _times(Measure(Fraction(1), {}), find(found[1]), int(found[2]))


def _read_qudt(text: str, find: Callable[[str], Measure]) -> Measure:
    """QUDT's codes: KiloM-PER-HR, W-PER-M-K, PER-KiloM2; everything after PER is divided by."""
    result, sign = Measure(Fraction(1), {}), 1
    for code in text.split("-"):
        if code == "PER":
            sign = -1
            continue
        try:
            measure = find(f"unit:{code}")
        except NotAUnit:
            measure = _powered(f"unit:{code}", find, _QUDT_POWER)
        result = _times(result, measure, sign)
    return result


def _times(left: Measure, right: Measure, exponent: int) -> Measure:
    powers = dict(left.powers)
    for symbol, power in right.powers.items():
        powers[symbol] = powers.get(symbol, 0) + power * exponent
    if any(abs(power) > 9 for power in powers.values()):  # what is written back must be readable: one digit
        raise NotAUnit("a power above 9")
    return Measure(left.factor * right.factor**exponent, {symbol: power for symbol, power in powers.items() if power})


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            raise NotAUnit(text)
        if sign == separator and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    if depth:
        raise NotAUnit(text)
    return [*parts, text[start:]]


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
