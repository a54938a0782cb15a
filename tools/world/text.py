"""Reading numbers, dates and lists out of the Factbook's running text."""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal

from tools.world.statement import Date

_MULTIPLIERS = {"": 1, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_SHORT_MONTHS = [month[:3] for month in _MONTHS]
_NOTE = re.compile(r"(<p>)?\s*(<(strong|b|em)>\s*)?\bnote( \d)?\s*(:|-)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]+>")
_YEAR = re.compile(r"\((?:([A-Z][a-z]+) )?(\d{4})(?:\s*[-/]\s*\d{2,4})?(?: est\.?)?\)")
_DAY = re.compile(r"^(\d{1,2}) ([A-Z][a-z]{2})([a-z]*) (\d{3,4})$")
_MONTH = re.compile(rf"^({'|'.join(_MONTHS)}) (\d{{3,4}})$")
_AMERICAN_DAY = re.compile(r"^(\d{1,2})/(\d{1,2})/(\d{4})")
NUMBER = r"-?\$?\d[\d,]*(?:\.\d+)?"


def plain(text: str) -> str:
    """The text without its trailing notes, tags, entities and odd spaces."""
    note = _NOTE.search(text)
    text = text[: note.start()] if note else text
    text = html.unescape(_TAG.sub(" ", text))
    return " ".join(text.split()).strip(" ;")


def without_accents(text: str) -> str:
    """Letters without their marks, for comparing names that sources spell with more or less care."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def comparable(name: str) -> str:
    """A name reduced to what two spellings of it share."""
    name = without_accents(name).lower().replace("&", "and").replace("’", "'")
    name = re.sub(r"^the ", "", name)
    return " ".join(re.sub(r"[^\w' ]", " ", name).split())


def number(text: str, multiplier: str = "") -> Decimal:
    """'$5.715', 'trillion' is 5715000000000: thousands separators and the dollar sign go, the word multiplies."""
    return Decimal(text.replace(",", "").replace("$", "")) * _MULTIPLIERS[multiplier]


def measure(text: str, wording: str) -> tuple[Decimal, str] | None:
    """The number at the start of `text` when exactly `wording` (a pattern) follows it, and the rest of the text."""
    pattern = rf"^({NUMBER})(?: (million|billion|trillion))?\s*{wording}(?=$|[\s(;])\s*(.*)$"
    found = re.match(pattern, text)
    if found is None:
        return None
    return number(found[1], found[2] or ""), found[3]


def year_in_parentheses(text: str) -> Date | None:
    """'(2024 est.)' is 2024, '(July 2020 est.)' is 2020-07, and a span '(2015/16 est.)' is its first year."""
    found = _YEAR.search(text)
    if found is None:
        return None
    if found[1] in _MONTHS:
        return Date(f"{found[2]}-{_MONTHS.index(found[1]) + 1:02}")
    return Date(found[2])


def calendar_date(text: str) -> Date | None:
    """'13 September 2022', 'September 2022', '2022' or '9/13/2022' as a date."""
    text = text.strip()
    if (found := _DAY.match(text)) and (not found[3] or found[2] + found[3] in _MONTHS) and found[2] in _SHORT_MONTHS:
        return Date(f"{int(found[4]):04}-{_SHORT_MONTHS.index(found[2]) + 1:02}-{int(found[1]):02}")
    if found := _MONTH.match(text):
        return Date(f"{int(found[2]):04}-{_MONTHS.index(found[1]) + 1:02}")
    if found := _AMERICAN_DAY.match(text):
        return Date(f"{found[3]}-{int(found[1]):02}-{int(found[2]):02}")
    return Date(text) if re.match(r"^\d{4}$", text) else None


def split_outside_parentheses(text: str, separators: str) -> list[str]:
    """The pieces between separators that stand outside any parenthesis; a stray closing one is ignored."""
    pieces, piece, depth = [], "", 0
    for position, letter in enumerate(text):
        depth = max(0, depth + (letter in "([") - (letter in ")]"))
        between_digits = (
            letter == "," and text[position - 1 : position].isdigit() and text[position + 1 : position + 2].isdigit()
        )
        if letter in separators and depth == 0 and not between_digits:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += letter
    return [piece for piece in [*pieces, piece.strip()] if piece]
