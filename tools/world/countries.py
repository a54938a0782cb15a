"""Which countries are in the graph, and what each source calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.world.statement import Entity, Rejected
from tools.world.text import comparable, measure, plain

SMALLEST_POPULATION = 1_000_000
_NOT_COUNTRIES = {"xx", "ee"}  # the world and the European Union have records of their own
_NAMES = {  # records without a usable short form; the names are the Factbook's own elsewhere
    "ae": "United Arab Emirates",
    "cf": "Republic of the Congo",
    "cg": "Democratic Republic of the Congo",
    "ct": "Central African Republic",
    "dr": "Dominican Republic",
    "gz": "Gaza Strip",
    "iv": "Cote d'Ivoire",
}
_OTHER_NAMES = {
    "USA": "us",
    "US": "us",
    "United States of America": "us",
    "UK": "uk",
    "Great Britain": "uk",
    "England": "uk",
    "Scotland": "uk",
    "UAE": "ae",
    "S. Korea": "ks",
    "Korea, South": "ks",
    "N. Korea": "kn",
    "Korea, North": "kn",
    "NZ": "nz",
    "DRC": "cg",
    "Democratic Republic of Congo": "cg",
    "Dem. Rep. of the Congo": "cg",
    "Congo": "cf",
    "Republic of Congo": "cf",
    "Rep. of the Congo": "cf",
    "Congo (Brazzaville)": "cf",
    "Ivory Coast": "iv",
    "Czech Republic": "ez",
    "Turkiye": "tu",
    "Myanmar": "bm",
    "Swaziland": "wz",
    "Macedonia": "mk",
    "Bosnia": "bk",
    "Bosnia & Herzegovina": "bk",
    "Gambia": "ga",
    "Trinidad & Tobago": "td",
    "Hong Kong, China": "hk",
    "CAR": "ct",
    "East Timor": "tt",
    "PNG": "pp",
    "Russian Federation": "rs",
    "Viet Nam": "vm",
    "Austrailia": "as",
}


_JOINT = re.compile(r"\bincludes\b.*?(\bGaza\b|\bthe West Bank\b|\bWest Bank and\b)")


@dataclass(frozen=True)
class Country:
    """A country's record in the Factbook; the code is the Factbook's own (FIPS 10-4, lower case)."""

    code: str
    name: str
    record: dict[str, Any]

    @property
    def entity(self) -> Entity:
        return Entity("country", self.name)

    def text(self, *path: str) -> str | None:
        """The text at a path of field names, or None; the Factbook hides some texts one level down under 'text'."""
        found: Any = self.record
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
        if isinstance(found, dict):
            found = found.get("text")
        return found if isinstance(found, str) else None


class Countries:
    """The countries in the graph by code, and a lookup by any name that a source uses."""

    def __init__(self, countries: Iterable[Country], set_aside: Iterable[Rejected] = ()) -> None:
        self.set_aside = list(set_aside)
        self.by_code = {country.code: country for country in countries}
        self._by_name = {comparable(country.name): country for country in self}
        for name, code in _OTHER_NAMES.items():
            if code in self.by_code:
                self._by_name[comparable(name)] = self.by_code[code]

    def __iter__(self) -> Iterator[Country]:
        return iter(self.by_code.values())

    def named(self, name: str) -> Country | None:
        return self._by_name.get(comparable(name))


def read_countries(factbook: Path) -> Countries:
    """All countries of at least a million people, in the order of their codes."""
    found: list[Country] = []
    set_aside: list[Rejected] = []
    for path in sorted(factbook.glob("*/*.json"), key=lambda path: path.stem):
        record = json.loads(path.read_text(encoding="utf-8"))
        country = Country(path.stem, _NAMES.get(path.stem, ""), record)
        population = measure(plain(country.text("People and Society", "Population", "total") or ""), "")
        if path.stem in _NOT_COUNTRIES or population is None or population[0] < SMALLEST_POPULATION:
            continue
        name = country.name or plain(country.text("Government", "Country name", "conventional short form") or "")
        if path.stem in ("gz", "we"):
            set_aside += _remove_joint_entries(name, record)
        found.append(Country(path.stem, name, record))
    return Countries(found, set_aside)


def _remove_joint_entries(name: str, record: dict[str, Any]) -> list[Rejected]:
    """Takes out the fields whose note says that they cover the West Bank and the Gaza Strip together."""
    removed = []
    for section, fields in record.items():
        for field, content in list(fields.items()):
            note = str(content.get("note", "")) if isinstance(content, dict) else ""
            if _JOINT.search(note):
                removed.append(
                    Rejected("covers two territories together", f"Factbook, {name}: {section} > {field}", note)
                )
                del fields[field]
    return removed
