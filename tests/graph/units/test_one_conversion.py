"""A number in a unit ends in the same double however it comes in: imported, created from a dump, or asked about.

The reference is the number as written times the exact factor of the table, worked out in fractions and rounded once.
"""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hynt import number
from hynt.asking.written import number_for
from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions
from hynt.errors import DataError, UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.formats.importing import ImportOptions, read_graph
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.fact import Number, fact
from hynt.graph.storage import load_graph
from hynt.graph.units.conversion import convert, to_si
from hynt.graph.units.table import load_table
from hynt.graph.vocabulary import Relation
from tests.creation.builds import ALONE
from tests.creation.sources.wikidata_lines import dump, entity, quantity_value, statement

TABLE = load_table()
# unit → factor, offset, reference unit: the rows of the table, and expressions worked out by hand
EXACT = {
    **{row.symbol: (Fraction(row.factor), row.offset, row.si_unit) for row in TABLE.rows.values()},
    "tonne/year": (Fraction(1000), Fraction(0), "kg/year"),
    "1/1000/year": (Fraction(1, 1000), Fraction(0), "1/year"),
    "1/100000": (Fraction(1, 100_000), Fraction(0), "1"),
    "mg/kg": (Fraction(1, 1_000_000), Fraction(0), "1"),
    "L/year": (Fraction(1, 1000), Fraction(0), "m3/year"),
    "mi/gal": (Fraction("1609.344") / Fraction("0.003785411784"), Fraction(0), "1/m2"),
    "°F/ft": (Fraction(5, 9) / Fraction("0.3048"), Fraction(0), "K/m"),
    "eV/nm2": (Fraction("1.602176634e-19") * 10**18, Fraction(0), "kg/s2"),
    "kcal/(mol K)": (Fraction(4184), Fraction(0), "J/(mol K)"),
}
WRITTEN = [
    "0",
    "1",
    "-1",
    "7",
    "10",
    "18",
    "111",
    "184",
    "1990",
    "-40",
    "100",
    "123456789",
    "9007199254740993",
    "1e15",
    "1e23",
    "0.1",
    "0.3",
    "0.7",
    "-1.62",
    "5.1",
    "18.6",
    "0.72",
    "53.5",
    "3.1028",
    "513.7",
    "176.4",
    "-2.4",
    "17.436",
    "98.6",
    "36.6",
    "-273.15",
    "-459.67",
    "0.3333333333333333",
    "3.141592653589793",
    "2.718281828459045e-5",
    "1e300",
    "-1e300",
    "1e308",
    "1.7976931348623157e308",
    "1e-300",
    "2.2250738585072014e-308",
    "5e-324",
    "-5e-324",
]


def any_doubles(count: int) -> Iterator[str]:
    """Finite doubles of any size, by their bits, and decimals with few digits; the same ones every time."""
    chance = random.Random(17)
    for _ in range(count):
        held = struct.unpack("<d", chance.randbytes(8))[0]
        if math.isfinite(held):
            yield repr(held)
        yield f"{chance.randint(-99999, 99999)}e{chance.randint(-9, 6)}"


VALUES = list(dict.fromkeys(repr(float(text)) for text in [*WRITTEN, *any_doubles(8)]))


def rounded_once(written: str, factor: Fraction, offset: Fraction) -> float | None:
    """The double nearest to the exact result; None where it is beyond the doubles, or nearer to 0 than any but 0."""
    exact = Fraction(written) * factor + offset
    try:
        found = float(exact)
    except OverflowError:
        return None
    return None if found == 0 and exact else found


EXPECTED = {
    (unit, written): rounded_once(written, factor, offset)
    for unit, (factor, offset, _) in EXACT.items()
    for written in VALUES
}


def stored(graph, units: list[str]) -> dict[tuple[str, str], float | None]:
    """What a graph holds, by unit and number as written: the relation counts the units, the head the values."""
    held: dict[tuple[str, str], float | None] = {(unit, written): None for unit in units for written in VALUES}
    for found in graph.facts():
        unit, written = units[int(found.relation[1:])], VALUES[int(found.head[1:])]
        assert isinstance(found.tail, Number)
        assert found.tail.unit == EXACT[unit][2]
        held[unit, written] = found.tail.value
    return held


def differing(held: dict[tuple[str, str], float | None]) -> list[tuple[object, ...]]:
    return [(*key, value, EXPECTED[key]) for key, value in held.items() if value != EXPECTED[key]]


def create(source: str, path: Path):
    out = path.with_name("graph")
    create_graph(source, path, out, CreationOptions(everything=True, assembly=AssemblyPolicy(), engine=ALONE))
    return load_graph(out)


def test_imported(tmp_path):
    path = tmp_path / "facts.jsonl"
    path.write_text(
        "".join(
            f'{{"head": "v{v}", "relation": "r{u}", "tail": {{"number": {written}, "unit": {json.dumps(unit)}}}}}\n'
            for u, unit in enumerate(EXACT)
            for v, written in enumerate(VALUES)
        ),
        encoding="utf-8",
    )
    assert differing(stored(read_graph(path, "jsonl", ImportOptions(on_error="skip")), list(EXACT))) == []


def test_created_from_yago(tmp_path):
    folder = tmp_path / "yago3"
    folder.mkdir()
    (folder / "yagoLiteralFacts.tsv").write_text(
        "".join(
            f'<id_{u}_{v}>\t<v{v}>\t<r{u}>\t"{written}"^^<{unit}>\n'
            for u, unit in enumerate(EXACT)
            for v, written in enumerate(VALUES)
        ),
        encoding="utf-8",
    )
    assert differing(stored(create("yago", folder), list(EXACT))) == []


def test_created_from_wikidata(tmp_path):
    """Every item that Wikidata has for a unit."""
    item_of = {row.symbol: item for item, row in TABLE.spellings.items() if item[0] == "Q" and item[1:].isdigit()}
    units = list(item_of)
    lines = []
    for v, written in enumerate(VALUES):
        amounts = [statement(f"P{u + 1}", quantity_value(written, item_of[unit])) for u, unit in enumerate(units)]
        lines.append(entity(f"Q{v + 1}", amounts))
    path = tmp_path / "dump.json"
    path.write_bytes(dump(lines))
    held: dict[tuple[str, str], float | None] = {(unit, written): None for unit in units for written in VALUES}
    for found in create("wikidata", path).facts():
        held[units[int(found.relation[1:]) - 1], VALUES[int(found.head[1:]) - 1]] = found.tail.value
    assert len(units) >= 300
    assert differing(held) == []


@pytest.mark.parametrize("form", ["text", "number"])
def test_asked(form):
    held: dict[tuple[str, str], float | None] = {}
    for unit, (_, _, reference) in EXACT.items():
        relation = Relation("measured", "number", reference)
        for written in VALUES:
            said = f"{written} {unit}" if form == "text" else number(float(written), unit)
            try:
                held[unit, written] = number_for(relation, said, "tail").value
            except UsageError as problem:
                assert "too large" in problem.what or "too close to zero" in problem.what
                held[unit, written] = None
    assert differing(held) == []


def test_the_defect_that_this_is_about():
    """18 g was imported as 0.018000000000000002 kg and asked about as 0.018 kg."""
    graph = graph_from_facts([fact("nail", "mass", number(18, "g")), fact("pin", "mass", number(5.1, "g"))])
    assert [found.tail.value for found in graph.facts()] == [0.018, 0.0051]
    assert number_for(graph.relations[0], "18 g", "tail").value == to_si(18, "g")[0] == 0.018
    assert number_for(graph.relations[0], "5.1 g", "tail").value == to_si(5.1, "g")[0] == 0.0051


@pytest.mark.parametrize("value", [5, np.float64(5.0), np.float32(5.0), np.int64(5), Fraction(5)])
def test_other_kinds_of_numbers(value):
    graph = graph_from_facts([fact("nail", "mass", Number(value, "5", "g"))])
    assert [found.tail.value for found in graph.facts()] == [to_si(value, "g")[0]] == [0.005]
    assert to_si(np.float64(5.1), "g") == (0.0051, "kg")


UNITS = st.sampled_from(list(EXACT))
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(UNITS, DOUBLES | st.integers(-(10**18), 10**18).map(float) | st.decimals(-1000, 1000, places=3).map(float))
def test_any_number_in_any_unit(unit, value):
    factor, offset, reference = EXACT[unit]
    expected = rounded_once(repr(value), factor, offset)
    relation = Relation("measured", "number", reference)
    if expected is None:
        with pytest.raises(DataError, match="too large"):
            to_si(value, unit)
        with pytest.raises(UsageError, match="too large"):
            number_for(relation, number(value, unit), "tail")
        return
    (imported,) = graph_from_facts([fact("it", "measured", number(value, unit))]).facts()
    asked = number_for(relation, number(value, unit), "tail")
    assert (imported.tail.value, asked.value, *to_si(value, unit)) == (expected, expected, expected, reference)


@given(UNITS, st.floats(-1e100, 1e100))
def test_the_way_back_is_rounded_once_too(unit, value):
    factor, offset, reference = EXACT[unit]
    assert convert(value, reference, unit) == float((Fraction(repr(value)) - offset) / factor)


PAIRS = st.sampled_from([(one, other) for one in EXACT for other in EXACT if EXACT[one][2] == EXACT[other][2]])


@given(PAIRS, st.floats(-1e100, 1e100))
def test_from_any_unit_to_another(pair, value):
    """In one step: going by way of the reference unit would round twice."""
    (factor, offset, _), (to_factor, to_offset, _) = EXACT[pair[0]], EXACT[pair[1]]
    exact = (Fraction(repr(value)) * factor + offset - to_offset) / to_factor
    if exact and float(exact) == 0:
        with pytest.raises(DataError, match="too close to zero"):
            convert(value, *pair)
    else:
        assert convert(value, *pair) == float(exact)


@given(st.floats(-1e100, 1e100))
def test_between_seconds_and_years(value):
    assume(value == 0 or abs(value) > 1e-300)
    assert convert(value, "day", "year") == float(Fraction(repr(value)) * 4 / 1461)
    assert convert(value, "kWh/year", "W") == float(Fraction(repr(value)) * 3_600_000 / 31_557_600)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_refused(value):
    for unit in ("g", "kg", "°F"):
        with pytest.raises(DataError):
            to_si(value, unit)
