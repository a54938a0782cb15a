"""GeoNames: large cities with their place and population, and the continents; also the link between country codes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.world.countries import Countries, Country
from tools.world.statement import Entity, Reading, Rejected, Statement, quantity
from tools.world.text import comparable

SOURCE = "geonames"
SMALLEST_CITY = 1_500_000
_CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}


@dataclass(frozen=True)
class City:
    """A city of GeoNames in a country of the graph."""

    record: dict[str, Any]
    country: Country

    @property
    def entity(self) -> Entity:
        return Entity("city", self.record["name"], self.country.name)


class Cities:
    """Finds a city by country and by any of its names; the largest wins when several share a name."""

    def __init__(self, cities: Iterable[City]) -> None:
        self.all = sorted(cities, key=lambda city: (-city.record["population"], city.record["geonameid"]))
        self._by_name: dict[tuple[str, str], City] = {}
        self._by_other_name: dict[tuple[str, str], City] = {}
        for city in self.all:
            self._by_name.setdefault((city.country.code, comparable(city.record["name"])), city)
            for name in city.record["alternatenames"]:
                self._by_other_name.setdefault((city.country.code, comparable(name)), city)

    def named(self, name: str, country: Country) -> City | None:
        """By its first name, or else by another."""
        key = (country.code, comparable(name))
        return self._by_name.get(key) or self._by_other_name.get(key)


def read_iso_codes(folder: Path, countries: Countries) -> dict[str, Country]:
    """ISO code to country, by the Factbook's codes. GeoNames has one entry for the West Bank and Gaza: not used."""
    records = json.loads((folder / "countries.json").read_text(encoding="utf-8")).values()
    return {
        record["iso"]: countries.by_code[record["fips"].lower()]
        for record in records
        if record["fips"].lower() in countries.by_code and record["iso"] != "PS"
    }


def read_cities(folder: Path, by_iso_code: dict[str, Country]) -> Cities:
    """Cities of 15,000 people and more in the countries of the graph."""
    records = json.loads((folder / "cities15000.json").read_text(encoding="utf-8")).values()
    return Cities(
        City(record, by_iso_code[record["countrycode"]]) for record in records if record["countrycode"] in by_iso_code
    )


def read_continents(folder: Path, by_iso_code: dict[str, Country]) -> Reading:
    """The continent of each country."""
    records = json.loads((folder / "countries.json").read_text(encoding="utf-8"))
    for code, country in sorted(by_iso_code.items()):
        record = records[code]
        continent = Entity("continent", _CONTINENTS[record["continentcode"]])
        passage = json.dumps({key: record[key] for key in ("name", "iso", "fips", "continentcode")}, ensure_ascii=False)
        yield Statement(country.entity, "continent", continent, (), SOURCE, f"GeoNames, country {code}", passage)


def read(cities: Cities, also: Iterable[str]) -> Reading:
    """What GeoNames says of each city that is large enough, or whose id is in `also` (capitals and urban areas)."""
    wanted = set(also)
    seen: set[str] = set()
    for city in cities.all:
        record, head = city.record, city.entity
        if record["population"] < SMALLEST_CITY and head.id not in wanted:
            continue
        where = f"GeoNames, city {record['geonameid']}"
        passage = json.dumps({key: record[key] for key in record if key != "alternatenames"}, ensure_ascii=False)
        if head.id in seen:
            yield Rejected("smaller city of the same name and country", where, passage)
            continue
        seen.add(head.id)
        yield Statement(head, "country", city.country.entity, (), SOURCE, where, passage)
        yield Statement(head, "city population", quantity(record["population"]), (), SOURCE, where, passage)
        yield Statement(head, "latitude", quantity(record["latitude"]), (), SOURCE, where, passage)
        yield Statement(head, "longitude", quantity(record["longitude"]), (), SOURCE, where, passage)
        yield Statement(head, "time zone", Entity("time_zone", record["timezone"]), (), SOURCE, where, passage)
