"""The World Factbook: its single numbers, ages, railways, rates. Lists, places and offices have files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.world.countries import Countries, Country
from tools.world.factbook_fields import FIELDS, Field
from tools.world.statement import Date, Entity, Reading, Rejected, Statement, Value, quantity
from tools.world.text import measure, number, plain, year_in_parentheses

SOURCE = "factbook"
_CODES = {"RMB": "CNY", "KD": "KWD"}  # the Factbook's own abbreviations
_AGES = ("0-14 years", "15-64 years", "65 years and over")
_BY_SEX = re.compile(r"\(male ([\d,]+)/female ([\d,]+)\)")
_GAUGE = re.compile(r"^([\d,.]+) km \((\d{4})\) (\d\.\d+)-m gauge(?: \(([\d,.]+) km electrified\))?$")


def origin(country: Country, path: tuple[str, ...]) -> str:
    """Where a passage stands, for people: 'Factbook, Japan: Geography > Area > total'."""
    return f"Factbook, {country.name}: {' > '.join(path)}"


def read_numbers(countries: Countries) -> Reading:
    """Every field of the table for every country."""
    for country in countries:
        for field in FIELDS:
            for path, text in _texts(country, field):
                yield _number(country, field, path, text)


def _texts(country: Country, field: Field) -> Iterator[tuple[tuple[str, ...], str]]:
    """The field's text, or the latest years of a series ('Exports' holds 'Exports 2024', 'Exports 2023')."""
    if field.years == 0:
        text = country.text(*field.path)
        if text is not None:
            yield field.path, text
        return
    series = country.record.get(field.path[0], {}).get(field.path[1], {})
    dated = sorted((name for name in series if re.search(r" \d{4}$", name)), key=lambda name: name[-4:], reverse=True)
    for name in dated[: field.years]:
        yield (*field.path, name), country.text(*field.path, name) or ""


def _number(country: Country, field: Field, path: tuple[str, ...], text: str) -> Statement | Rejected:
    where = origin(country, path)
    words = re.sub(r"^(total|urban|rural): ", "", plain(text))
    found = measure(words, field.wording)
    if found is None:
        return Rejected("no number in the expected words", where, text)
    value, rest = found
    year = year_in_parentheses(rest)
    passage = text
    if year is None and field.dated_by:
        dating = country.text(*field.dated_by) or ""
        year = year_in_parentheses(plain(dating))
        passage = f"{text} [dated by: {dating}]"
    dates: tuple[tuple[str, Value], ...] = (("point in time", year),) if year else ()
    return Statement(country.entity, field.relation, quantity(value), dates + field.qualifiers, SOURCE, where, passage)


def read_age_structure(countries: Countries) -> Reading:
    """Population by sex and age group; the year stands with the oldest group and holds for all three."""
    for country in countries:
        path = ("People and Society", "Age structure")
        year = year_in_parentheses(country.text(*path, _AGES[-1]) or "")
        for age in _AGES:
            text = country.text(*path, age) or ""
            where = origin(country, (*path, age))
            found = _BY_SEX.search(text)
            if found is None or year is None:
                yield Rejected("no number in the expected words", where, text)
                continue
            for sex, count in (("male", found[1]), ("female", found[2])):
                yield Statement(
                    country.entity,
                    "population",
                    quantity(number(count)),
                    (("point in time", year), ("sex", Entity("sex", sex)), ("age group", Entity("age_group", age))),
                    SOURCE,
                    where,
                    f"{text} [dated by: {country.text(*path, _AGES[-1])}]",
                )


def read_railways(countries: Countries) -> Reading:
    """Length of the railways, in all and by class of gauge with the gauge and what runs under electric power."""
    for country in countries:
        path = ("Transportation", "Railways")
        total = country.text(*path, "total")
        if total is not None:
            yield _number(country, Field("railway length", (*path, "total"), "km"), (*path, "total"), total)
        for track in ("standard gauge", "narrow gauge", "broad gauge"):
            text = country.text(*path, track)
            if text is None:
                continue
            where = origin(country, (*path, track))
            found = _GAUGE.match(plain(text))
            if found is None:
                yield Rejected("no number in the expected words", where, text)
                continue
            qualifiers: list[tuple[str, Value]] = [
                ("point in time", Date(found[2])),
                ("track", Entity("track", track)),
                ("track gauge", quantity(number(found[3]))),
            ]
            if found[4]:
                qualifiers.append(("electrified length", quantity(number(found[4]))))
            length = quantity(number(found[1]))
            yield Statement(country.entity, "railway length", length, tuple(qualifiers), SOURCE, where, text)


def read_exchange_rates(countries: Countries, currencies: dict[str, str]) -> Reading:
    """The latest two yearly rates to the dollar; the currency's code in the text gives its name."""
    for country in countries:
        path = ("Economy", "Exchange rates")
        currency = country.text(*path, "Currency") or ""
        found_code = re.search(r"\(([A-Z]{2,3})\) per US dollar", currency)
        code = _CODES.get(found_code[1], found_code[1]) if found_code else ""
        field = Field("exchange rate", path, "", years=2)
        for where, text in _texts(country, field):
            if code not in currencies:
                yield Rejected("currency not named", origin(country, where), f"{currency} {text}")
                continue
            named: tuple[tuple[str, Value], ...] = (("in currency", Entity("currency", currencies[code])),)
            found = _number(country, Field("exchange rate", path, "", named), where, text)
            if isinstance(found, Statement):
                found = Statement(
                    found.head, found.relation, found.tail, found.qualifiers, SOURCE, found.origin, f"{currency} {text}"
                )
            yield found
