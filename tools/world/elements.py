"""The chemical elements from mendeleev's database: properties, ions, isotopes, discovery, producers."""

from __future__ import annotations

import re
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

from tools.world.countries import Countries
from tools.world.statement import Date, Entity, Reading, Rejected, Statement, Value, quantity
from tools.world.text import split_outside_parentheses

SOURCE = "elements"
_NUMBERS = {
    "atomic_number": "atomic number",
    "atomic_weight": "atomic weight",
    "density": "density",
    "covalent_radius_pyykko": "covalent radius",
    "vdw_radius": "van der Waals radius",
    "electron_affinity": "electron affinity",
    "en_pauling": "electronegativity",
    "fusion_heat": "heat of fusion",
    "evaporation_heat": "heat of vaporization",
    "thermal_conductivity": "thermal conductivity",
    "abundance_crust": "crustal abundance",
}
_ROMAN = {
    "I": 1,
    "II": 2,
    "III": 3,
    "IV": 4,
    "V": 5,
    "VI": 6,
    "VII": 7,
    "VIII": 8,
    "IX": 9,
    "X": 10,
    "XI": 11,
    "XII": 12,
    "XIV": 14,
}
_SPINS = {"HS": "high spin", "LS": "low spin"}
_SPELLINGS = {  # one person, several spellings in the source; the most common one is kept
    "H. Davy": "Humphrey Davy",
    "William Ramsay": "William Ramsey",
    "M. W. Travers": "M.W. Travers",
    "A. Ghiorso": "A.Ghiorso",
    "J. Berzelius": "Jöns Berzelius",
    "M. Klaproth": "Martin Klaproth",
    "L.N.Vauquelin": "Louis Vauquelin",
    "R. Bunsen": "Robert Bunsen",
    "G. Kirchoff": "Gustov Kirchoff",
    "S.Tenant": "Smithson Tenant",
    "P.T.Cleve": "Per Theodor Cleve",
    "Émillo Segrè": "E.Segré",
    "E.M. McMillan": "E.M.McMillan",
}
_COUPLES = {"Pierre and Marie Curie": ("Pierre Curie", "Marie Curie")}
_LABORATORY = re.compile(r"Institute|Laborator|Research|RIKEN|Argonne|Los Alamos|U\.? of ")


def read(database: Path, countries: Countries) -> Reading:
    """Everything taken from the database, element by element."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    names = {
        row["atomic_number"]: row["name"] for row in connection.execute("SELECT atomic_number, name FROM elements")
    }
    for row in connection.execute("SELECT * FROM elements ORDER BY atomic_number"):
        yield from _properties(row, connection)
        yield from _discovery(row, countries)
        yield from _top_countries(row, countries)
    for number, name in sorted(names.items()):
        for table, reader in (
            ("phasetransitions", _phases),
            ("ionicradii", _radii),
            ("ionizationenergies", _energies),
            ("isotopes", _isotopes),
        ):
            for row in connection.execute(f"SELECT * FROM {table} WHERE atomic_number = ? ORDER BY id", (number,)):
                yield from reader(Entity("element", name), row)
    connection.close()


def _passage(row: sqlite3.Row, *columns: str) -> str:
    return ", ".join(f"{column}={row[column]}" for column in columns)


def _properties(row: sqlite3.Row, connection: sqlite3.Connection) -> Reading:
    head = Entity("element", row["name"])
    where = f"mendeleev, elements {row['name']}"
    for column, relation in _NUMBERS.items():
        if row[column] is not None:
            yield Statement(head, relation, quantity(row[column]), (), SOURCE, where, _passage(row, column))
    series = connection.execute("SELECT name FROM series WHERE id = ?", (row["series_id"],)).fetchone()["name"]
    spelled = "lithophile" if row["goldschmidt_class"] == "litophile" else row["goldschmidt_class"]
    links: list[tuple[str, str, Any, str]] = [
        ("block", "block", row["block"], "block"),
        ("period", "period", f"period {row['period']}", "period"),
        ("group", "group", f"group {row['group_id']}" if row["group_id"] else None, "group_id"),
        ("element series", "series", series, "series_id"),
        ("crystal structure", "lattice", row["lattice_structure"], "lattice_structure"),
        ("Goldschmidt class", "class", spelled, "goldschmidt_class"),
    ]
    for relation, type_, label, column in links:
        if label:
            tail = Entity(type_, str(label))
            yield Statement(head, relation, tail, (), SOURCE, where, f"{_passage(row, column)} ({label})")


def discoverers(text: str) -> list[Entity]:
    """'Sir H. Davy, J.L. Gay-Lussac' as persons; laboratories as organisations; nobody for what the ancients knew."""
    if text.startswith("Known to the ancients"):
        return []
    found = []
    for part in split_outside_parentheses(text.replace(", et al", ""), ",;/"):
        name = re.sub(r"^(Sir|Baron) ", "", part)
        people = _COUPLES.get(name, (_SPELLINGS.get(name, name),))
        found += [Entity("organization" if _LABORATORY.search(person) else "person", person) for person in people]
    return found


def _discovery(row: sqlite3.Row, countries: Countries) -> Reading:
    head = Entity("element", row["name"])
    where = f"mendeleev, elements {row['name']}"
    passage = _passage(row, "discoverers", "discovery_year", "discovery_location")
    if row["discovery_year"] is None or row["discovery_location"] is None:
        return
    year = Date(f"{row['discovery_year']:04}")
    yield Statement(head, "discovery year", year, (), SOURCE, where, passage)
    places = row["discovery_location"].split("/")
    credited: tuple[tuple[str, Value], ...] = tuple(
        ("discoverer", person) for person in discoverers(row["discoverers"])
    )
    if len(places) > 1:  # the source does not say who worked where
        credited = ()
    for place in places:
        country = countries.named(place)
        if country is None:
            yield Rejected("place is no country of the graph", where, passage)
            continue
        yield Statement(
            head, "discovered in", country.entity, (("point in time", year), *credited), SOURCE, where, passage
        )


def _top_countries(row: sqlite3.Row, countries: Countries) -> Reading:
    head = Entity("element", row["name"])
    where = f"mendeleev, elements {row['name']}"
    for column, relation in (("top_3_producers", "top producer"), ("top_3_reserve_holders", "top reserve holder")):
        _, *parts = re.split(r"\s*(\d)\) ", row[column] or "")
        for rank, place in zip(parts[::2], parts[1::2], strict=True):
            country = countries.named(place.strip())
            if country is None:
                yield Rejected("place is no country of the graph", where, _passage(row, column))
                continue
            ranked = (("rank", quantity(rank)),)
            yield Statement(head, relation, country.entity, ranked, SOURCE, where, _passage(row, column))


def _phases(head: Entity, row: sqlite3.Row) -> Reading:
    where = f"mendeleev, phasetransitions {head.label}"
    passage = _passage(row, "melting_point", "boiling_point", "allotrope", "is_sublimation_point", "is_transition")
    form = ((("allotrope", Entity("allotrope", row["allotrope"])),)) if row["allotrope"] else ()
    if row["is_transition"] or row["is_sublimation_point"]:
        yield Rejected("point of sublimation or of a change between solids", where, passage)
        return
    for column, relation in (("melting_point", "melting point"), ("boiling_point", "boiling point")):
        if row[column] is not None:
            yield Statement(head, relation, quantity(row[column]), form, SOURCE, where, passage)


def _radii(head: Entity, row: sqlite3.Row) -> Reading:
    coordination = re.match(r"^[IVX]+", row["coordination"])
    where = f"mendeleev, ionicradii {head.label}"
    passage = _passage(row, "charge", "coordination", "spin", "ionic_radius")
    if coordination is None or coordination[0] != row["coordination"]:
        yield Rejected("coordination with a shape beside the number", where, passage)
        return
    qualifiers: list[tuple[str, Value]] = [
        ("ion charge", quantity(row["charge"])),
        ("coordination number", quantity(_ROMAN[coordination[0]])),
    ]
    if row["spin"]:
        qualifiers.append(("spin state", Entity("spin_state", _SPINS[row["spin"]])))
    yield Statement(head, "ionic radius", quantity(row["ionic_radius"]), tuple(qualifiers), SOURCE, where, passage)


def _energies(head: Entity, row: sqlite3.Row) -> Reading:
    degree = row["ion_charge"] + 1
    if degree > 4 or row["ionization_energy"] is None:
        return
    where = f"mendeleev, ionizationenergies {row['species_name']}"
    passage = _passage(row, "species_name", "ion_charge", "ionization_energy")
    which = (("ionization degree", quantity(degree)),)
    yield Statement(head, "ionization energy", quantity(row["ionization_energy"]), which, SOURCE, where, passage)


def _isotopes(head: Entity, row: sqlite3.Row) -> Reading:
    """Isotopes found in nature: their abundance, with what is known of the nucleus."""
    if row["abundance"] is None:
        return
    where = f"mendeleev, isotopes {head.label}-{row['mass_number']}"
    passage = _passage(row, "mass_number", "abundance", "spin", "parity", "discovery_year")
    which: list[tuple[str, Value]] = [("mass number", quantity(row["mass_number"]))]
    if re.match(r"^\d+(/2)?$", row["spin"] or ""):
        which.append(("nuclear spin", quantity(float(Fraction(row["spin"])))))
    if row["parity"] in ("+", "-"):
        which.append(("parity", Entity("parity", "even" if row["parity"] == "+" else "odd")))
    if row["discovery_year"] is not None:
        which.append(("discovery year", Date(str(row["discovery_year"]))))
    yield Statement(head, "isotopic abundance", quantity(row["abundance"]), tuple(which), SOURCE, where, passage)
