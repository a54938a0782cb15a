"""The Factbook's lists: trade partners, goods, resources, ethnic groups, religions, memberships."""

from __future__ import annotations

import re

from tools.world.countries import Countries, Country
from tools.world.factbook import SOURCE, origin
from tools.world.list_words import GOODS, GROUPS, HEDGED, NARROWED, NO_GROUP, NO_ROLES, ROLES
from tools.world.statement import Date, Entity, Reading, Rejected, Statement, Value, quantity
from tools.world.text import plain, split_outside_parentheses, year_in_parentheses

_LAST_YEAR = re.compile(r"\s*\((?:\d{4})[^()]*\)\s*$")
_SHARE = re.compile(
    r"^(?P<name>[^%()\d<>~]+?)\s*(?:\([^()]*\))?\s*"
    r"(?P<hedge><|~|>|less than |about |approximately |almost |over )?\s*"
    r"(?P<share>\d*\.?\d+)%\s*(?:\(.*\))?$"
)
_BARE_NAME = re.compile(r"^(?P<name>[A-Z][\w'’/.-]*(?: [\w'’/.-]+){0,3})\s*(\([^()]*\))?$")
_INVERTED = re.compile(r"\b([A-Z][a-z]+), (The|Republic of the|Democratic Republic of the)\b")


def without_last_year(text: str) -> tuple[str, Date | None]:
    """A list without the year that closes it, and that year."""
    found = _LAST_YEAR.search(text)
    return (text[: found.start()], year_in_parentheses(found[0])) if found else (text, None)


def _dated(year: Date | None) -> tuple[tuple[str, Value], ...]:
    return (("point in time", year),) if year else ()


def read_partners(countries: Countries) -> Reading:
    """Trade partners with share, year and, where the Factbook says that these are the top five, rank."""
    for country in countries:
        for field, relation in (("Exports - partners", "export partner"), ("Imports - partners", "import partner")):
            text = country.text("Economy", field)
            if text is None:
                continue
            where = origin(country, ("Economy", field))
            words, year = without_last_year(_INVERTED.sub(r"\2 \1", plain(text)))  # "Gambia, The" is one name
            is_ranked = "top five" in str(country.record["Economy"][field].get("note", ""))
            for rank, entry in enumerate(split_outside_parentheses(words, ","), start=1):
                found = re.match(r"^(.+?) (\d+(?:\.\d+)?)%$", entry)
                partner = countries.named(found[1]) if found else None
                if found is None or partner is None:
                    reason = "partner is no country of the graph" if found else "entry not in the expected words"
                    yield Rejected(reason, where, entry)
                    continue
                qualifiers: list[tuple[str, Value]] = [("share", quantity(found[2])), *_dated(year)]
                if is_ranked:
                    qualifiers.append(("rank", quantity(rank)))
                yield Statement(country.entity, relation, partner.entity, tuple(qualifiers), SOURCE, where, text)


def read_goods(countries: Countries, elements: frozenset[str]) -> Reading:
    """Goods traded and grown, ranked where the Factbook says so; a good that is a chemical element is linked to it."""
    for country in countries:
        for field, relation in (
            ("Exports - commodities", "exports commodity"),
            ("Imports - commodities", "imports commodity"),
            ("Agricultural products", "agricultural product"),
        ):
            text = country.text("Economy", field)
            if text is None:
                continue
            where = origin(country, ("Economy", field))
            words, year = without_last_year(plain(text))
            is_ranked = "top " in str(country.record["Economy"][field].get("note", "")) and ";" not in words
            for rank, entry in enumerate(split_outside_parentheses(words, ",;"), start=1):
                name = entry.lower()
                if re.search(r"[():]|^(and|other) ", name) or len(name.split()) > 4:
                    yield Rejected("entry not in the expected words", where, entry)
                    continue
                ranked: tuple[tuple[str, Value], ...] = (("rank", quantity(rank)),) if is_ranked and rank <= 10 else ()
                tail = product(name, frozenset() if relation == "agricultural product" else elements)
                yield Statement(country.entity, relation, tail, _dated(year) + ranked, SOURCE, where, text)


def product(name: str, elements: frozenset[str]) -> Entity:
    """A good by its name, or the chemical element of that name ('gold', not 'gold ore')."""
    name = GOODS.get(name, name)
    return Entity("element", name.capitalize()) if name.capitalize() in elements else Entity("product", name)


def read_resources(countries: Countries, elements: frozenset[str]) -> Reading:
    """Natural resources; an entry that hedges ('small deposits of gold') is left out, not stripped of its hedge."""
    for country in countries:
        text = country.text("Geography", "Natural resources")
        if text is None:
            continue
        where = origin(country, ("Geography", "Natural resources"))
        clauses = split_outside_parentheses(plain(text), ";")
        entries = [entry for clause in clauses for entry in _until_the_list_narrows(clause)]
        for entry in entries:
            name = re.sub(r"^and ", "", entry).lower()
            if HEDGED.search(name) or re.search(r"[():\d]", name) or len(name.split()) > 3:
                yield Rejected("entry hedged or not in the expected words", where, entry)
                continue
            yield Statement(country.entity, "natural resource", product(name, elements), (), SOURCE, where, text)


def _until_the_list_narrows(clause: str) -> list[str]:
    """The entries of a clause; 'small reserves of iron ore, copper, zinc' is one: its first words cover the rest."""
    entries = split_outside_parentheses(clause, ",")
    for position, entry in enumerate(entries):
        if re.search(r"\b(reserves|deposits|quantities|amounts) of\b", entry):
            return [*entries[:position], ", ".join(entries[position:])]
    return entries


def read_groups(countries: Countries) -> Reading:
    """Ethnic groups and religions with their share; named groups only, no 'other', no subgroups in parentheses."""
    for country in countries:
        for field, relation, type_ in (
            ("Ethnic groups", "ethnic group", "ethnic_group"),
            ("Religions", "religion", "religion"),
        ):
            text = country.text("People and Society", field)
            if text is not None:
                yield from _groups(country, field, relation, type_, text)


def _groups(country: Country, field: str, relation: str, type_: str, text: str) -> Reading:
    where = origin(country, ("People and Society", field))
    words, year = without_last_year(plain(text))
    words, _, below_one_percent = re.sub(r"less than 1 percent\s*:", "less than 1%:", words).partition("less than 1%:")
    if ":" in words:
        yield Rejected("list by part of the country", where, text)
        return
    for entry in split_outside_parentheses(words, ",;"):
        found = _SHARE.match(entry) or _BARE_NAME.match(entry)
        name = found["name"].strip() if found else ""
        if not name or NO_GROUP.search(name) or len(name.split()) > 4 or NARROWED.search(entry):
            yield Rejected("no single named group", where, entry)
            continue
        parts = found.groupdict() if found else {}
        share: tuple[tuple[str, Value], ...] = ()
        if parts.get("share") and not parts.get("hedge"):
            share = (("share", quantity(parts["share"])),)
        tail = Entity(type_, GROUPS.get(name, name))
        yield Statement(country.entity, relation, tail, share + _dated(year), SOURCE, where, text)
    for entry in split_outside_parentheses(below_one_percent, ",;"):
        found = _BARE_NAME.match(entry)
        if found is None or NO_GROUP.search(found["name"]):
            yield Rejected("no single named group", where, entry)
            continue
        tail = Entity(type_, GROUPS.get(found["name"], found["name"]))
        yield Statement(country.entity, relation, tail, _dated(year), SOURCE, where, text)


def read_memberships(countries: Countries, fewest: int = 15, most: int = 75) -> Reading:
    """Organisations with a number of members that tells countries apart: nearly all are in the UN, that says little."""
    path = ("Government", "International organization participation")
    found: list[tuple[Country, str, str, str]] = []
    for country in countries:
        text = country.text(*path)
        for entry in split_outside_parentheses(plain(text or ""), ",;"):
            match = re.match(r"^([^()]+?)(?: \(([^()]+)\))?$", entry)
            if match is None:
                yield Rejected("entry not in the expected words", origin(country, path), entry)
            else:
                found.append((country, match[1], match[2] or "", text or ""))
    members: dict[str, set[str]] = {}
    for country, organization, _, _ in found:
        members.setdefault(organization, set()).add(country.code)
    for country, organization, role, text in found:
        if not fewest <= len(members[organization]) <= most:
            yield Rejected(
                f"organisation with fewer than {fewest} or more than {most} members",
                origin(country, path),
                organization,
            )
            continue
        is_role = role and role not in NO_ROLES
        qualifiers: tuple[tuple[str, Value], ...] = ()
        if is_role:
            qualifiers = (("role", Entity("role", ROLES.get(role, role))),)
        tail = Entity("organization", organization)
        yield Statement(country.entity, "member of", tail, qualifiers, SOURCE, origin(country, path), text)
