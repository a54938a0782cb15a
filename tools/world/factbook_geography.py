"""The Factbook's places: borders, rivers, lakes, lowest and highest points, regions, capitals and urban areas."""

from __future__ import annotations

import re
from decimal import Decimal

from tools.world.countries import Countries, Country
from tools.world.factbook import SOURCE, origin
from tools.world.geonames import Cities
from tools.world.statement import Entity, Reading, Rejected, Statement, Value, quantity
from tools.world.text import number, plain, split_outside_parentheses, without_accents, year_in_parentheses

_BORDER = re.compile(r"^(?P<name>[^\d()]+?)(?: \([^()]*\))? (?P<length>[\d,.]+) km(?: \([^()]*\))?$")
_RIVER = re.compile(
    r"^(?P<name>.+?)(?: \((?P<english>(?!shared|mouth)[^()]+)\))?(?: [Rr]iver (?P<part>source and mouth|source|mouth))?"
    r"(?: \((?:mouth )?shared with [^()]*\)?.*)? - (?P<length>[\d,]+) km$"
)
_LAKE = re.compile(
    r"^(?P<name>[^()\d*]+?)\*?(?: \([^()]*\))?\s*[-–]?\s*(?P<area>[\d,]+)(?: sq km)?(?: \(shared[^()]*\))?$"
)
_POINT = re.compile(r"^(?P<name>[^()\d;]+?)(?: \([^()]*\))? (?P<height>-?[\d,.]+) m$")
_HEIGHT = re.compile(r"(?:^|\s)(?P<height>\d,\d{3}|\d{2,3})(?: m\b|$)")
_URBAN = re.compile(
    r"^(?P<count>[\d.,]+)(?P<million> million)? (?P<name>[^()]+?)(?: \((?P<other>[^()]+)\))?(?: \(capital\))?$"
)
_OFFSET = re.compile(r"^UTC\s*(?P<sign>[+-]?)\s*(?P<hours>\d+(?:\.\d+)?)(?::(?P<minutes>\d\d))?(?=[\s(]|$)")
_COORDINATES = re.compile(r"^(\d+) (\d+) ([NS]), (\d+) (\d+) ([EW])")
_WASHINGTON = "Washington, D.C."  # the one name with a comma
_RIVERS = {
    "Rio Limpopo": "Limpopo",
    "River Murray": "Murray",
    "Darling River": "Darling",
    "Rio de la Plata/Parana": "Rio de la Plata",
}
_NAMESAKES = {("us", "Red"): "Red River of the South"}  # another Red river flows through Vietnam


def read_borders(countries: Countries) -> Reading:
    """Common borders with their length, told once: from the country whose name comes first."""
    for country in countries:
        path = ("Geography", "Land boundaries", "border countries")
        text = country.text(*path)
        for entry in split_outside_parentheses(plain(text or ""), ";,"):
            found = _BORDER.match(entry)
            other = countries.named(found["name"]) if found else None
            if found is None or other is None:
                reason = "neighbour is no country of the graph" if found else "entry not in the expected words"
                yield Rejected(reason, origin(country, path), entry)
            elif other.name < country.name:
                yield Rejected("border told by the other country", origin(country, path), entry)
            else:
                length = (("border length", quantity(number(found["length"]))),)
                where = origin(country, path)
                yield Statement(country.entity, "shares border with", other.entity, length, SOURCE, where, text or "")


def read_rivers(countries: Countries) -> Reading:
    """Major rivers with their whole length and whether they rise or end in the country."""
    for country in countries:
        path = ("Geography", "Major rivers (by length in km)")
        text = country.text(*path)
        for entry in split_outside_parentheses(plain(text or ""), ";"):
            found = _RIVER.match(entry)
            if found is None:
                yield Rejected("entry not in the expected words", origin(country, path), entry)
                continue
            name = without_accents(found["english"] or found["name"])
            name = re.sub(r" [Rr]iver$", "", _RIVERS.get(name, name).split("/")[0])
            name = _NAMESAKES.get((country.code, name), name)
            parts = re.findall("source|mouth", found["part"] or "")
            qualifiers: list[tuple[str, Value]] = [("length", quantity(number(found["length"])))]
            qualifiers += [("river part", Entity("river_part", part)) for part in parts]
            tail = Entity("river", name)
            yield Statement(country.entity, "river", tail, tuple(qualifiers), SOURCE, origin(country, path), text or "")


def read_lakes(countries: Countries) -> Reading:
    """Major lakes with their area; an area that varies ('2,700-16,000 sq km') is no single number and is left out."""
    for country in countries:
        for kind in ("fresh", "salt"):
            path = ("Geography", "Major lakes (area sq km)", f"{kind} water lake(s)")
            text = country.text(*path)
            for entry in split_outside_parentheses(plain(text or ""), ";"):
                found = _LAKE.match(entry)
                if found is None:
                    yield Rejected("entry not in the expected words", origin(country, path), entry)
                    continue
                name = re.sub(r"^(Lake|Lago|Ozero|Lac) (?!of |de )", "", without_accents(found["name"])).split("/")[0]
                qualifiers: tuple[tuple[str, Value], ...] = (
                    ("surface area", quantity(number(found["area"]))),
                    ("water type", Entity("water_type", f"{kind} water")),
                )
                where = origin(country, path)
                yield Statement(country.entity, "lake", Entity("lake", name), qualifiers, SOURCE, where, text or "")


def read_relief(countries: Countries) -> Reading:
    """The lowest place with its height, the height of the highest place, and the map region."""
    for country in countries:
        path: tuple[str, ...] = ("Geography", "Elevation", "lowest point")
        text = country.text(*path) or ""
        refused = "entry not in the expected words"
        if found := _POINT.match(plain(text)):
            height = (("elevation", quantity(number(found["height"]))),)
            tail = Entity("place", found["name"])
            yield Statement(country.entity, "lowest point", tail, height, SOURCE, origin(country, path), text)
        else:
            yield Rejected(refused, origin(country, path), text)
        path = ("Geography", "Elevation", "highest point")
        text = country.text(*path) or ""
        heights = _HEIGHT.findall(re.sub(r"\([^()]*\)", "", plain(text)).split(";")[0])
        if len(heights) == 1:
            highest = quantity(number(heights[0]))
            yield Statement(country.entity, "highest elevation", highest, (), SOURCE, origin(country, path), text)
        else:
            yield Rejected(refused, origin(country, path), text)
        path = ("Geography", "Map references")
        text = country.text(*path) or ""
        if re.match(r"^[A-Za-z ]+$", text):
            yield Statement(country.entity, "region", Entity("region", text), (), SOURCE, origin(country, path), text)
        else:
            yield Rejected(refused, origin(country, path), text)


def city_entity(name: str, country: Country, cities: Cities) -> Entity:
    """The city as GeoNames knows it, or by the Factbook's name alone."""
    city = cities.named(name, country)
    return city.entity if city else Entity("city", name, country.name)


def _degrees(whole: str, minutes: str, side: str) -> Value:
    size = Decimal(whole) + Decimal(minutes) / 60
    return quantity(round(-size if side in "SW" else size, 3))


def read_capitals(countries: Countries, cities: Cities) -> Reading:
    """The capital with its place and time; places with several capitals or none are left out."""
    for country in countries:
        path = ("Government", "Capital", "name")
        text = country.text(*path) or ""
        name = re.sub(r"( in Romanian)? \(.*$", "", plain(text).split(";")[0])
        is_one_of_several = len(re.findall(r"[a-z\]] capital\)", plain(text))) > 1
        if not name or is_one_of_several or re.search(r"[:,]|none|claimed|capital", name.replace(_WASHINGTON, "")):
            yield Rejected("no single capital", origin(country, path), text)
            continue
        city = city_entity(name, country, cities)
        yield Statement(country.entity, "capital", city, (), SOURCE, origin(country, path), text)
        yield Statement(city, "country", country.entity, (), SOURCE, origin(country, path), text)
        path = ("Government", "Capital", "geographic coordinates")
        text = country.text(*path) or ""
        if found := _COORDINATES.match(plain(text)):
            where = origin(country, path)
            yield Statement(city, "latitude", _degrees(found[1], found[2], found[3]), (), SOURCE, where, text)
            yield Statement(city, "longitude", _degrees(found[4], found[5], found[6]), (), SOURCE, where, text)
        path = ("Government", "Capital", "time difference")
        text = country.text(*path) or ""
        if found := _OFFSET.match(plain(text)):
            hours = Decimal(found["hours"]) + Decimal(found["minutes"] or 0) / 60
            offset = quantity(-hours if found["sign"] == "-" else hours)
            yield Statement(city, "UTC offset", offset, (), SOURCE, origin(country, path), text)
        else:
            yield Rejected("entry not in the expected words", origin(country, path), text)


def read_urban_areas(countries: Countries, cities: Cities) -> Reading:
    """Urban areas with their population, each dated by the first year that follows it in the text."""
    for country in countries:
        path = ("People and Society", "Major urban areas - population")
        text = country.text(*path)
        if text is None:
            continue
        where, words = origin(country, path), plain(text).replace(_WASHINGTON.upper(), _WASHINGTON.replace(",", ""))
        when: tuple[tuple[str, Value], ...] = ()
        for entry in reversed(split_outside_parentheses(words, ",;")):
            if year := year_in_parentheses(entry):
                when = (("point in time", year),)
            found = _URBAN.match(re.sub(r" \(\d{4}[^()]*\)", "", entry))
            if found is None or re.search(r"\d", found["name"]):
                yield Rejected("entry not in the expected words", where, entry)
                continue
            name = found["name"].title() if found["name"].isupper() else found["name"]  # the capital stands in capitals
            count = quantity(number(found["count"], "million" if found["million"] else ""))
            city = city_entity(name, country, cities)
            yield Statement(city, "urban area population", count, when, SOURCE, where, text)
            yield Statement(city, "country", country.entity, (), SOURCE, where, text)
