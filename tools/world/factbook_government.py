"""The Factbook's offices and chambers: leaders, kind of government, independence, legislatures."""

from __future__ import annotations

import re

from tools.world.countries import Countries
from tools.world.factbook import SOURCE, origin
from tools.world.statement import Date, Entity, Reading, Rejected, Statement, Value, quantity
from tools.world.text import calendar_date, measure, number, plain, split_outside_parentheses

_TITLES = (
    "Prime Minister",
    "President",
    "King",
    "Queen",
    "Emperor",
    "Sultan",
    "Sultan and Prime Minister",
    "Amir",
    "Chancellor",
    "Premier",
    "Prince",
    "Governor",
    "Supreme Leader",
    "Crown Prince and Prime Minister",
    "Chief Executive",
    "President of the Swiss Confederation",
    "Federal Chancellor",
)
_HOLDER = re.compile(
    rf"^(?P<title>{'|'.join(sorted(_TITLES, key=len, reverse=True))}) "
    r"(?P<name>[A-Z][^();,]+?(?:, Jr\.)?) \(since (?P<date>[^();,]+)\)$"
)
_FIRST_DATE = re.compile(
    r"^(?P<circa>ca\. )?(?P<date>(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{3,4})(?:$| \((?P<why>[^()]*(?:\([^()]*\)[^()]*)*)\))"
)
_FORMER_STATES = frozenset(
    {"Soviet Union", "Yugoslavia", "Ottoman Empire", "Soviet Russia", "Gran Colombia", "Austro-Hungarian Empire"}
)
_CHAMBERS = {
    "Legislative branch": "single chamber",
    "Legislative branch - lower chamber": "lower chamber",
    "Legislative branch - upper chamber": "upper chamber",
}
_SYSTEMS = frozenset({"plurality/majority", "proportional representation", "mixed system"})


def read_leaders(countries: Countries) -> Reading:
    """Chief of state and head of government, with title and first day in office, when the text names one person."""
    for country in countries:
        for field in ("chief of state", "head of government"):
            path = ("Government", "Executive branch", field)
            text = country.text(*path) or ""
            words = plain(text).partition("; represented by")[0]
            found = _HOLDER.match(words)
            date = calendar_date(found["date"]) if found else None
            if found is None or date is None:
                yield Rejected("no single holder with a known title and a date", origin(country, path), text)
                continue
            qualifiers = (("start time", date), ("position", Entity("position", found["title"])))
            person = Entity("person", found["name"])
            yield Statement(country.entity, field, person, qualifiers, SOURCE, origin(country, path), text)


def read_government_types(countries: Countries) -> Reading:
    """The kind of government in the Factbook's words, up to the first semicolon and without parentheses."""
    for country in countries:
        path = ("Government", "Government type")
        text = country.text(*path) or ""
        label = " ".join(re.sub(r"\([^()]*\)", "", re.split(r"[;,]| note", plain(text))[0]).split())
        if not label:
            yield Rejected("entry not in the expected words", origin(country, path), text)
            continue
        tail = Entity("government_type", label)
        yield Statement(country.entity, "government type", tail, (), SOURCE, origin(country, path), text)


def read_independence(countries: Countries) -> Reading:
    """The first date of independence and, when the text says so, the state it was gained from."""
    for country in countries:
        path = ("Government", "Independence")
        text = country.text(*path)
        if text is None:
            continue
        where = origin(country, path)
        found = _FIRST_DATE.match(plain(text))
        date = calendar_date(found["date"].zfill(4) if found["date"].isdigit() else found["date"]) if found else None
        if found is None or date is None or found["circa"]:
            yield Rejected("no exact first date", where, text)
            continue
        qualifiers: tuple[tuple[str, Value], ...] = ()
        if from_whom := re.match(r"^from (?:the )?([^;,()]+)", found["why"] or ""):
            name = from_whom[1].strip()
            former = countries.named(name)
            if former is not None and former.code != country.code:
                qualifiers = (("separated from", former.entity),)
            elif name in _FORMER_STATES:
                qualifiers = (("separated from", Entity("former_state", name)),)
        yield Statement(country.entity, "independence date", date, qualifiers, SOURCE, where, text)


def read_legislatures(countries: Countries) -> Reading:
    """Seats of each chamber with its electoral system, term and latest election; and the share of women in it."""
    for country in countries:
        for field, chamber in _CHAMBERS.items():
            path = ("Government", field)
            which: list[tuple[str, Value]] = [("chamber", Entity("chamber", chamber))]
            seats = country.text(*path, "number of seats")
            women = country.text(*path, "percentage of women in chamber")
            if women is not None:
                share = measure(plain(women), "%")
                where = origin(country, (*path, "percentage of women in chamber"))
                if share is None:
                    yield Rejected("no number in the expected words", where, women)
                else:
                    tail = quantity(share[0])
                    yield Statement(
                        country.entity, "women in legislature share", tail, tuple(which), SOURCE, where, women
                    )
            if seats is None:
                continue
            where = origin(country, (*path, "number of seats"))
            count = re.match(r"^([\d,]+)(?: \([^()]*\))?$", plain(seats))
            if count is None:
                yield Rejected("no number in the expected words", where, seats)
                continue
            system = country.text(*path, "electoral system") or ""
            term = measure(plain(country.text(*path, "term in office") or ""), "years")
            election = country.text(*path, "most recent election date") or ""
            if system in _SYSTEMS:
                which.append(("electoral system", Entity("electoral_system", system)))
            if term:
                which.append(("term of office", quantity(term[0])))
            if day := _election_day(election):
                which.append(("last election", day))
            passage = f"{seats} | {system} | {country.text(*path, 'term in office')} | {election}"
            tail = quantity(number(count[1]))
            yield Statement(country.entity, "legislature seats", tail, tuple(which), SOURCE, where, passage)


def _election_day(text: str) -> Date | None:
    """The first day of an election: '1/14/2021 to 1/18/2021' is 2021-01-14; day counts of a spreadsheet are refused."""
    first = split_outside_parentheses(plain(text).replace(" to ", ";"), ";")
    if not first or first[0].isdigit():
        return None
    return calendar_date(re.sub(r" \([^()]*\)$", "", first[0]))
