"""Unicode CLDR through Babel: a country's currencies with their times, its languages with share and standing."""

from __future__ import annotations

from decimal import Decimal

from babel import Locale
from babel.core import get_global
from babel.languages import get_territory_language_info

from tools.world.countries import Country
from tools.world.statement import Date, Entity, Reading, Rejected, Statement, Value, quantity

SOURCE = "cldr"
SMALLEST_SHARE = Decimal(5)
_ENGLISH = Locale("en")


def currency_names() -> dict[str, str]:
    """Currency code to English name."""
    return {str(code): str(name) for code, name in _ENGLISH.currencies.items()}


def _day(parts: tuple[int, int, int] | None) -> Date | None:
    return Date(f"{parts[0]:04}-{parts[1]:02}-{parts[2]:02}") if parts else None


def read_currencies(by_iso_code: dict[str, Country]) -> Reading:
    """Every legal tender that CLDR dates, today's and earlier ones."""
    names = currency_names()
    for code, country in sorted(by_iso_code.items()):
        for currency, begin, end, is_tender in get_global("territory_currencies").get(code, ()):
            where = f"CLDR, currencies of {code}"
            passage = f"{currency} from {begin} to {end}, legal tender: {is_tender}"
            if not is_tender or currency not in names:
                yield Rejected("not legal tender", where, passage)
                continue
            times = (("start time", _day(begin)), ("end time", _day(end)))
            qualifiers: tuple[tuple[str, Value], ...] = tuple((name, day) for name, day in times if day is not None)
            tail = Entity("currency", names[currency])
            yield Statement(
                country.entity, "currency", tail, qualifiers, SOURCE, where, f"{passage} ({names[currency]})"
            )


def read_languages(by_iso_code: dict[str, Country]) -> Reading:
    """Languages with official standing or spoken by at least a twentieth of the people."""
    for code, country in sorted(by_iso_code.items()):
        spoken = get_territory_language_info(code)
        for language, details in sorted(spoken.items()):
            share = quantity(str(details["population_percent"]))
            standing = details["official_status"]
            base = language.partition("_")[0]  # zh_Hant is Chinese where plain zh is not listed beside it
            name = None if base != language and base in spoken else _ENGLISH.languages.get(base)
            where = f"CLDR, languages of {code}"
            passage = f"{language} ({name}): {details}"
            if name is None:
                yield Rejected("language without an English name, or a second script", where, passage)
                continue
            if standing is None and share.value < SMALLEST_SHARE:
                yield Rejected("language of a small minority", where, passage)
                continue
            qualifiers: list[tuple[str, Value]] = [("share", share)]
            if standing:
                qualifiers.append(("role", Entity("role", str(standing).replace("_", " "))))
            tail = Entity("language", str(name))
            yield Statement(country.entity, "language spoken", tail, tuple(qualifiers), SOURCE, where, passage)
