"""The unit table, expressions of units, conversion both ways, and the examples of the documentation."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.graph.units.conversion import Unit, UnknownUnit, convert, lookup, require, to_si
from hynt.graph.units.table import load_table

UNITS = [require(symbol) for symbol in load_table().rows]

ROOT = Path(__file__).parents[3]

# Typed from the definitions of the units, not from the table: (unit, factor, reference unit).
EXACT = [
    ("lb", 0.45359237, "kg"),
    ("oz", 0.028349523125, "kg"),
    ("st", 6.35029318, "kg"),
    ("short ton", 907.18474, "kg"),
    ("troy ounce", 0.0311034768, "kg"),
    ("carat", 2e-4, "kg"),
    ("Da", 1.66053906892e-27, "kg"),
    ("t", 1e3, "kg"),
    ("mg", 1e-6, "kg"),
    ("μg", 1e-9, "kg"),
    ("ft", 0.3048, "m"),
    ("in", 0.0254, "m"),
    ("yd", 0.9144, "m"),
    ("mile", 1609.344, "m"),
    ("nautical mile", 1852, "m"),
    ("ly", 9460730472580800, "m"),
    ("au", 149597870700, "m"),
    ("pc", 3.0856775814913673e16, "m"),
    ("pm", 1e-12, "m"),
    ("Å", 1e-10, "m"),
    ("acre", 4046.8564224, "m2"),
    ("hectare", 1e4, "m2"),
    ("km2", 1e6, "m2"),
    ("sq mi", 2589988.110336, "m2"),
    ("litre", 1e-3, "m3"),
    ("gallon", 0.003785411784, "m3"),
    ("imperial gallon", 0.00454609, "m3"),
    ("barrel", 0.158987294928, "m3"),
    ("cubic feet", 0.028316846592, "m3"),
    ("min", 60, "s"),
    ("h", 3600, "s"),
    ("day", 86400, "s"),
    ("week", 604800, "s"),
    ("month", 1 / 12, "year"),
    ("decade", 10, "year"),
    ("century", 100, "year"),
    ("Myr", 1e6, "year"),
    ("km/h", 1000 / 3600, "m/s"),
    ("mph", 0.44704, "m/s"),
    ("knot", 1852 / 3600, "m/s"),
    ("eV", 1.602176634e-19, "J"),
    ("kWh", 3.6e6, "J"),
    ("TWh", 3.6e15, "J"),
    ("cal", 4.184, "J"),
    ("BTU", 1055.05585262, "J"),
    ("horsepower", 745.6998715822702, "W"),
    ("metric horsepower", 735.49875, "W"),
    ("mW", 1e-3, "W"),
    ("MW", 1e6, "W"),
    ("atm", 101325, "Pa"),
    ("mmHg", 133.322387415, "Pa"),
    ("psi", 6894.757293168361, "Pa"),
    ("hPa", 100, "Pa"),
    ("Torr", 101325 / 760, "Pa"),
    ("lbf", 4.4482216152605, "N"),
    ("kgf", 9.80665, "N"),
    ("GHz", 1e9, "Hz"),
    ("rpm", 1 / 60, "Hz"),
    ("rad", 180 / math.pi, "degree"),
    ("arcminute", 1 / 60, "degree"),
    ("GB", 1e9, "byte"),
    ("GiB", 1024**3, "byte"),
    ("Mbit/s", 125000, "byte/s"),
    ("g/cm3", 1000, "kg/m3"),
    ("kJ/mol", 1000, "J/mol"),
    ("per mille", 0.1, "percent"),
    ("ppm", 1e-4, "percent"),
    ("degree", 1, "degree"),
    ("mAh", 3.6, "C"),
    ("tonne/year", 1000, "kg/year"),
    ("kWh/year", 3.6e6, "J/year"),
    ("litre/year", 1e-3, "m3/year"),
    ("m3/year", 1, "m3/year"),
    ("1/1000/year", 1e-3, "1/year"),
    ("1/100000", 1e-5, "1"),
    ("mg/kg", 1e-6, "1"),
    ("W/(m K)", 1, "W/(m K)"),
    ("W/m/K", 1, "W/(m K)"),
    ("kg m-2", 1, "kg/m2"),
    ("km³/year", 1e9, "m3/year"),
    ("/km2", 1e-6, "1/m2"),
    ("persons/km²", 1e-6, "1/m2"),
    ("kg.m/s2", 1, "N"),
    ("°C/km", 1e-3, "K/m"),
    ("°F/ft", 5 / 9 / 0.3048, "K/m"),
    ("mol/L", 1000, "mol/m3"),
    ("10*3 m", 1000, "m"),
    ("10³ m", 1000, "m"),
    ("kWh per capita per year", 3.6e6, "J/year"),
    ("US dollars per year", 1, "USD/year"),
    ("N m", 1, "J"),
    ("W · m⁻²", 1, "W/m2"),
    ("kg  *  m / s^2", 1, "N"),
]


@pytest.mark.parametrize(("name", "factor", "reference"), EXACT)
def test_factors(name: str, factor: float, reference: str) -> None:
    unit = lookup(name)
    assert unit is not None
    assert unit.si_unit == reference
    assert unit.factor == pytest.approx(factor, rel=1e-15)
    assert unit.offset == 0


def test_the_papers_weight_and_temperatures() -> None:
    value, unit = to_si(176.4, "lb")
    assert unit == "kg"
    assert value == pytest.approx(80.013694068, abs=1e-12)
    assert to_si(0, "°C") == (273.15, "K")
    assert to_si(32, "degF")[0] == pytest.approx(273.15, abs=1e-12)
    assert to_si(-40, "°F")[0] == pytest.approx(to_si(-40, "°C")[0], abs=1e-12)
    assert convert(373.15, "K", "°F") == pytest.approx(212, abs=1e-9)
    assert to_si(18, "g") == (0.018, "kg"), "no digits that nobody wrote"
    assert to_si(0.3, "mm") == (0.0003, "m")


def test_the_table_is_large_and_covers_wikidata() -> None:
    assert len(UNITS) >= 500
    assert len(set(UNITS)) == len(UNITS)
    items = [spelling for spelling in load_table().spellings if spelling[0] == "Q" and spelling[1:].isdigit()]
    assert len(items) >= 300


def test_every_row_is_reached_by_its_symbol_and_ends_in_a_reference_that_stays() -> None:
    for unit in UNITS:
        assert lookup(unit.symbol) == unit
        assert unit.factor > 0
        reference = lookup(unit.si_unit)
        assert reference is not None
        assert (reference.symbol, reference.si_unit, reference.factor, reference.offset) == (unit.si_unit,) * 2 + (1, 0)
        assert reference.dimension == unit.dimension


def test_no_spelling_means_two_units() -> None:
    lines = (ROOT / "src/hynt/graph/units/unit_table.tsv").read_text(encoding="utf-8").splitlines()[1:]
    owner: dict[str, str] = {}
    for line in lines:
        symbol, *_, items, qudt, names = line.split("\t")
        listed = names.split("|") if names else []
        codes = [f"unit:{qudt}"] if qudt else []
        any_case = {f"any case {name.casefold()}" for name in listed if len(name) > 3}
        for spelling in (symbol, *listed, *items.split(), *codes, *any_case):
            assert owner.setdefault(spelling, symbol) == symbol
            if not spelling.startswith("any case"):
                found = lookup(spelling)
                assert found is not None
                assert found.symbol == symbol


def test_the_table_is_what_its_definitions_give() -> None:
    command = [sys.executable, str(ROOT / "tools/make_unit_table.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the table is up to date\n"), done.stderr


@pytest.mark.parametrize(
    ("spelling", "symbol"),
    [
        ("<km2>", "km2"),
        ("</km2>", "1/km2"),
        ("km²", "km2"),
        ("km^2", "km2"),
        ("km**2", "km2"),
        ("sq km", "km2"),
        ("<dollar>", "USD"),
        ("<euro>", "EUR"),
        ("<degrees>", "degree"),
        ("<percent>", "percent"),
        ("<m>", "m"),
        ("<s>", "s"),
        ("<g>", "g"),
        ("<yagoMonetaryValue>", "yagoMonetaryValue"),
        ("Kilometres", "km"),
        ("MILES", "mi"),
        ("http://www.wikidata.org/entity/Q11573", "m"),
        ("Q577", "year"),
        ("Q28390", "degree"),
        ("Q25267", "°C"),
        ("Q712226", "km2"),
        ("Q4917", "USD"),
        ("Q11229", "percent"),
        ("Q199", "1"),
        ("Q100995", "lb"),
        ("µm", "μm"),
        ("um", "μm"),
        ("millibars", "mbar"),
        ("kilobit", "kbit"),
        ("megaohm", "MΩ"),
        ("[lb_av]", "lb"),
        ("Cel", "°C"),
        ("unit:KiloM", "km"),
        ("percent of GDP", "percent of GDP"),
        ("http://qudt.org/vocab/unit/DEG_C", "°C"),
        ("feet", "ft"),
        ("life years", None),
        ("\u2126", "Ω"),
        ("1", "1"),
        ("square  kilometre", "km2"),
    ],
)
def test_spellings(spelling: str, symbol: str | None) -> None:
    found = lookup(spelling)
    assert (found and found.symbol) == symbol


def test_qudt_expressions() -> None:
    for code, reference, factor in [
        ("unit:KiloM-PER-HR", "m/s", 1 / 3.6),
        ("http://qudt.org/vocab/unit/W-PER-M-K", "W/(m K)", 1),
        ("unit:PER-KiloM2", "1/m2", 1e-6),
        ("unit:KiloGM-PER-M3", "kg/m3", 1),
    ]:
        found = lookup(code)
        assert found is not None
        assert found.si_unit == reference
        assert found.factor == pytest.approx(factor, rel=1e-15)


def test_case_of_symbols_counts() -> None:
    assert lookup("mW") != lookup("MW")
    assert lookup("KM") is None
    assert lookup("Kg") is None
    assert lookup("ka") != lookup("kA")


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "/",
        "m//s",
        "m/",
        "()",
        "(m",
        "m)",
        "(m)(s)",
        "W/m K",
        "ton",
        "furlongs per moon",
        "m0",
        "m10",
        "1/0",
        "0 m",
        "2^3",
        "1e99 1e99 1e99 1e99",
        "1e999",
        "１２ m",
        "m" * 100_000,
        "(" * 60 + "m" + ")" * 60,
        "Q1",
        "unit:",
        "unit:M0",
        "m9 m9",
        "<",
        "<>",
        "per",
        "date",
    ],
)
def test_unknown_units(name: str) -> None:
    assert lookup(name) is None
    with pytest.raises(UnknownUnit) as caught:
        to_si(1.0, name)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 300


def test_an_unknown_unit_names_its_neighbours() -> None:
    with pytest.raises(UnknownUnit) as caught:
        to_si(1.0, "kilometr")
    assert str(caught.value) == (
        "unknown unit 'kilometr'. Did you mean 'kilometre', 'kilometer', 'kilometres'? "
        "The page 'Units and dates' of the documentation says how to write units."
    )


def test_a_number_that_overflows_is_refused() -> None:
    with pytest.raises(DataError, match=r"1e\+308 km is too large a number once in m. Correct the number."):
        to_si(1e308, "km")


def test_conversion_within_a_dimension_and_between_seconds_and_years() -> None:
    assert convert(212, "°F", "°C") == pytest.approx(100, abs=1e-9)
    assert convert(26.2, "mi", "km") == pytest.approx(42.1648128, rel=1e-14)
    assert convert(1, "year", "day") == 365.25
    assert convert(365.25, "day", "year") == 1
    assert convert(8766, "kWh/year", "W") == pytest.approx(1000, rel=1e-14)
    with pytest.raises(DataError, match=r"USD \(currency USD\) cannot become EUR \(currency EUR\). Money is never"):
        convert(1, "USD", "EUR")
    with pytest.raises(DataError, match="cannot become"):
        convert(1, "percent", "1")


@given(st.sampled_from(UNITS), st.floats(-1e12, 1e12))
def test_there_and_back(unit: Unit, value: float) -> None:
    converted, reference = to_si(value, unit)
    assert reference == unit.si_unit
    slack = 1e-12 * abs(unit.offset / unit.factor)
    assert convert(converted, unit.si_unit, unit) == pytest.approx(value, rel=1e-12, abs=slack + 1e-300)


PLAIN = [unit for unit in UNITS if unit.offset == 0 and " " not in unit.symbol and unit.symbol.isalpha()]


@given(st.lists(st.tuples(st.sampled_from(PLAIN), st.sampled_from([-1, 1])), min_size=1, max_size=2))
def test_expressions_multiply_factors_and_their_reference_stays(parts: list[tuple[Unit, int]]) -> None:
    text = " ".join(f"{unit.symbol}{power}" for unit, power in parts)
    factor = math.prod(unit.factor**power for unit, power in parts)
    found = lookup(text)
    assert found is not None
    assert found.factor == pytest.approx(factor, rel=1e-12)
    reference = lookup(found.si_unit)
    assert reference is not None
    assert (reference.si_unit, reference.factor, reference.dimension) == (found.si_unit, 1.0, found.dimension)


@given(st.text(alphabet="mskg/()0123456789.e^*-² per%$<>", max_size=30) | st.text(max_size=12))
def test_any_text_is_a_usable_unit_or_none(text: str) -> None:
    found = lookup(text)
    if found is not None:
        assert 0 < found.factor < math.inf
        assert lookup(found.si_unit) is not None


def test_examples_of_the_documentation_run() -> None:
    text = (ROOT / "docs/reference/units-and-dates.md").read_text(encoding="utf-8")
    blocks = "\n".join(part.partition("```")[0] for part in text.split("```python\n")[1:])
    examples = doctest.DocTestParser().get_doctest(blocks, {}, "units-and-dates.md", None, 0)
    assert len(examples.examples) >= 15
    report: list[str] = []
    assert doctest.DocTestRunner().run(examples, out=report.append).failed == 0, "".join(report)


def test_a_number_that_would_vanish_is_refused():
    with pytest.raises(DataError, match="1e-320 nm is too close to zero once in m"):
        to_si(1e-320, "nm")
    assert to_si(0.0, "nm") == (0.0, "m")
    assert to_si(1e-300, "nm") == (1e-309, "m")
    assert to_si(-273.15, "°C") == (0.0, "K")


def test_nan_is_no_number_rather_than_a_large_one():
    with pytest.raises(DataError, match="NaN is not a number"):
        to_si(float("nan"), "nm")


@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["large", "unspeakable"])
def test_a_whole_number_beyond_doubles_is_refused(value):
    for work in (lambda: to_si(value, "nm"), lambda: convert(value, "m", "nm"), lambda: convert(value, "nm", "km")):
        with pytest.raises(DataError, match=r"a whole number of .?m is too large a number"):
            work()
