"""The builder of `world`: its readers of elements and of Gapminder, on small tables made here."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the builder lives outside the installed package

from tools.world import elements, gapminder
from tools.world.audit import row
from tools.world.countries import Countries, Country
from tools.world.statement import Rejected, Statement

COUNTRIES = Countries([Country("ch", "China", {}), Country("us", "United States", {})])


def facts(found: list[Statement | Rejected]) -> list[str]:
    """The statements as readable text."""
    return ["\t".join(row(item).split("\t")[:4]) for item in found if isinstance(item, Statement)]


def reasons(found: list[Statement | Rejected]) -> list[str]:
    return [item.reason for item in found if isinstance(item, Rejected)]


def test_discoverers_are_people_or_laboratories() -> None:
    found = elements.discoverers("Sir H. Davy, J.L. Gay-Lussac, Joint Institute for Nuclear Research, et al")
    assert [entity.id for entity in found] == [
        "person/Humphrey_Davy",
        "person/J.L._Gay-Lussac",
        "organization/Joint_Institute_for_Nuclear_Research",
    ]
    assert [entity.label for entity in elements.discoverers("Pierre and Marie Curie")] == [
        "Pierre Curie",
        "Marie Curie",
    ]
    assert elements.discoverers("Known to the ancients.") == []


def test_elements_from_a_small_database(tmp_path: Path) -> None:
    database = tmp_path / "elements.db"
    columns = [
        *elements._NUMBERS,
        "name",
        "block",
        "period",
        "group_id",
        "series_id",
        "lattice_structure",
        "goldschmidt_class",
    ]
    columns += ["discoverers", "discovery_year", "discovery_location", "top_3_producers", "top_3_reserve_holders"]
    values = {"atomic_number": 26, "name": "Iron", "density": 7.874, "block": "d", "period": 4, "series_id": 1}
    values |= {"goldschmidt_class": "litophile", "top_3_producers": "1) China  2) USA  3) Atlantis"}
    connection = sqlite3.connect(database)
    connection.execute(f"CREATE TABLE elements ({', '.join(columns)})")
    connection.execute("CREATE TABLE series (id, name)")
    connection.execute("INSERT INTO series VALUES (1, 'Transition metals')")
    connection.execute(
        f"INSERT INTO elements ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", list(values.values())
    )
    connection.execute(
        "CREATE TABLE phasetransitions "
        "(id, atomic_number, melting_point, boiling_point, allotrope, is_sublimation_point, is_transition)"
    )
    connection.execute("INSERT INTO phasetransitions VALUES (1, 26, 1811.1499999999999, 3134.15, NULL, NULL, NULL)")
    connection.execute("CREATE TABLE ionicradii (id, atomic_number, charge, coordination, spin, ionic_radius)")
    connection.execute("INSERT INTO ionicradii VALUES (1, 26, 2, 'VI', 'HS', 78.0), (2, 26, 2, 'IVSQ', 'HS', 64.0)")
    connection.execute(
        "CREATE TABLE ionizationenergies (id, atomic_number, species_name, ion_charge, ionization_energy)"
    )
    connection.execute("INSERT INTO ionizationenergies VALUES (1, 26, 'Fe I', 0, 7.9024681), (2, 26, 'Fe V', 4, 75.0)")
    connection.execute(
        "CREATE TABLE isotopes (id, atomic_number, mass_number, abundance, spin, parity, discovery_year)"
    )
    connection.execute(
        "INSERT INTO isotopes VALUES (1, 26, 57, 2.119, '1/2', '-', 1935), (2, 26, 60, NULL, '0', '+', 1957)"
    )
    connection.commit()
    connection.close()
    found = list(elements.read(database, COUNTRIES))
    assert facts(found) == [
        "element/Iron\tatomic number\t26\t",
        "element/Iron\tdensity\t7.874\t",
        "element/Iron\tblock\tblock/d\t",
        "element/Iron\tperiod\tperiod/period_4\t",
        "element/Iron\telement series\tseries/Transition_metals\t",
        "element/Iron\tGoldschmidt class\tclass/lithophile\t",
        "element/Iron\ttop producer\tcountry/China\trank: 1",
        "element/Iron\ttop producer\tcountry/United_States\trank: 2",
        "element/Iron\tmelting point\t1811.15\t",
        "element/Iron\tboiling point\t3134.15\t",
        "element/Iron\tionic radius\t78\tion charge: 2; coordination number: 6; spin state: spin_state/high_spin",
        "element/Iron\tionization energy\t7.9024681\tionization degree: 1",
        "element/Iron\tisotopic abundance\t2.119\tmass number: 57; nuclear spin: 0.5; "
        "parity: parity/odd; discovery year: 1935",
    ]
    assert reasons(found) == ["place is no country of the graph", "coordination with a shape beside the number"]


def test_gapminder_rows(tmp_path: Path) -> None:
    rows = [
        {"year": 1955, "country": "China", "pop": 609, "life_expect": 48.5, "fertility": 5.6},
        {"country": "Iceland", "year": 1},
    ]
    (tmp_path / "gapminder.json").write_text(json.dumps(rows), encoding="utf-8")
    found = list(gapminder.read(tmp_path / "gapminder.json", COUNTRIES))
    assert facts(found)[1] == "country/China\tlife expectancy\t48.5\tpoint in time: 1955"
    assert reasons(found) == ["country below a million people"] * 3
