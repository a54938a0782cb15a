"""The folders of the HyNT paper, raw and normalised: tab-separated `head relation tail (qualifier-relation value)*`.

The first line may hold the number of facts. Which values are numbers is said by their spelling: see
`hynt.formats.hynt`. Odd but published things, such as an impossible date, are kept as the authors did and noted;
`strict` refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import DataError, RecordProblem
from hynt.formats.format import ReadOptions, ReadReport, write_text_folder
from hynt.formats.lines import facts_from_lines, number_as_head, wrong_shape
from hynt.formats.values import DATES, NUMBERS, Remembered, looks_like_number, parse_number, schema_type
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.units.dates import ImpossibleDate, UnreadableDate, format_date, parse_iso_date, parse_wikidata_time
from hynt.names import shortened

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    parser = _Parser(options, report)
    before = report.read
    yield from facts_from_lines(path, options, report, parser.parse)
    parser.check_count(path, report.read - before)


class _Parser:
    """Turns lines into facts, and remembers the count that the first line may give."""

    def __init__(self, options: ReadOptions, report: ReadReport) -> None:
        self._values = TokenValues(report, strict=options.strict)
        self._report = report
        self._strict = options.strict
        self._count: int | None = None

    def parse(self, line: str) -> Fact | None:
        cells = line.split("\t")
        count = len(cells)
        if count < 3 or not count & 1 or "" in cells:
            if not line or self._is_count(line):
                return None
            raise wrong_shape(cells, "a tab")
        values = self._values
        head = values[cells[0]]
        if isinstance(head, Number):
            raise number_as_head(cells[0])
        if count == 3:
            return Fact(head, cells[1], values[cells[2]])
        qualifiers = [Qualifier(cells[index], values[cells[index + 1]]) for index in range(3, count, 2)]
        return Fact(head, cells[1], values[cells[2]], tuple(qualifiers))

    def check_count(self, path: Path, found: int) -> None:
        """Note, or refuse, a first line that gives another number of facts than there are."""
        if self._count is None or self._count == found:
            return
        what = f"the first line says {self._count:,} facts, but there are {found:,}."
        if self._strict:
            raise DataError(
                what, where=f"{path}:1", advice="The file may be cut short: get it again or correct the line."
            )
        self._report.line = 1
        self._report.note("wrong-count", what, "The file may be cut short: compare it with its source.")

    def _is_count(self, line: str) -> bool:
        if self._report.line == 1 and len(line) <= 18 and line.isascii() and line.isdigit():
            self._count = int(line)
            return True
        return False


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder in the raw style: a count line and the facts of each split, with literals as they were written."""
    return write_text_folder(graph, path, ".txt", write_fact, count_line=True)


def write_fact(fact: Fact) -> str:
    """A fact as a line; a `DataError` where the format cannot say it."""
    cells = [_cell(fact.head, fact), _cell(fact.relation, fact, is_relation=True), _cell(fact.tail, fact)]
    for relation, value in fact.qualifiers:
        cells += (_cell(relation, fact, is_relation=True), _cell(value, fact))
    return "\t".join(cells)


def _cell(value: Value, fact: Fact, *, is_relation: bool = False) -> str:
    if is_relation and isinstance(value, str) and value and not any(mark in value for mark in "\t\n\r"):
        return value
    token = None if is_relation else write_token(value)
    if token is None:
        raise DataError(
            f"the format hynt cannot write {shortened(repr(value))} of {shortened(repr(fact), 300)}: "
            "it would be read back as something else.",
            advice="Export to tsv or jsonl, which can write every fact.",
        )
    return token


# How the HyNT paper's files spell numbers, and the only place that reads or writes those spellings.
#
# =================================  ===========================================================================
# ``"73.32"^^<km2>``                 YAGO: a number and its unit
# ``"2016"^^xsd:integer``            a number; so are decimal, double and their kin, also as <http://…XMLSchema#decimal>
# ``"1949-12-25"^^xsd:date``         a date; so are gYear, gYearMonth and dateTime
# ``"62"``                           Freebase: a number
# ``+0.557``, ``39025505.0``, ``10``   Wikidata and the normalised files: a number
# ``+00000002011-01-01T00:00:00Z``   Wikidata: a date
# =================================  ===========================================================================
#
# Everything else is an entity, apart from broken numbers (`nan`, `１２`, `"abc"^^xsd:date`), which are refused.

_LITERAL = re.compile(r'"([^"]*)"(?:\^\^(?:<([^<>"]+)>|([A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+)))?')
_WIKIDATA_TIME = re.compile(r"[+-][0-9]+-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?")
_MAY_START_A_NUMBER = frozenset('"+-.0123456789nNiI')
_DATE_ADVICE = "Correct the date, or remove the fact."


class TokenValues(Remembered):
    """Values by their spelling; a date that no calendar has is noted each time, or refused."""

    def __init__(self, report: ReadReport, *, strict: bool) -> None:
        super().__init__(read_token)
        self._report = report
        self._strict = strict

    def __missing__(self, token: str) -> Value:
        try:
            return super().__missing__(token)
        except _OddDate as odd:
            if self._strict:
                raise RecordProblem("impossible-date", odd.what, _DATE_ADVICE) from None
            self._report.note("impossible-date", odd.what, "Kept with the value its authors gave it.")
            return odd.number  # not remembered, so that each one is noted


class _OddDate(Exception):
    """A date that no calendar has, and the number that stands for it all the same."""

    def __init__(self, what: str, number: Number) -> None:
        super().__init__(what)
        self.what = what
        self.number = number


def read_token(token: str) -> Value:
    """The entity or number that a token of the paper's files stands for."""
    first = token[0]
    if first not in _MAY_START_A_NUMBER and first < "\x80":
        return token
    if first == '"':
        return _quoted(token)
    if first in "+-" and _WIKIDATA_TIME.fullmatch(token):
        return _date(token, token, wikidata=True)
    if looks_like_number(token):
        return Number(parse_number(token), token)
    return token


@lru_cache(maxsize=100_000)
def write_token(value: Value) -> str | None:
    """How a value is written: as it came, where that says the same; None where no spelling reads back as it.

    A literal with the right value and no unit says the same too: its relation's unit is declared beside the facts. So
    does one with a unit where the graph has none, because its relation mixes units.
    """
    if not isinstance(value, Number):
        return value if read_back(value) == value else None
    number, literal, unit = value
    found = read_back(literal)
    if isinstance(found, Number) and found.value == number and (found.unit == unit or not found.unit or not unit):
        return literal
    if unit == DATE_UNIT:
        guesses = [f'"{literal}"^^xsd:date', f'"{format_date(number)}"^^xsd:date', f'"{number!r}"^^<{DATE_UNIT}>']
    elif unit:
        guesses = [f'"{literal}"^^<{unit}>', f'"{number!r}"^^<{unit}>']
    else:
        guesses = [repr(number)]
    for guess in guesses:
        found = read_back(guess)
        if isinstance(found, Number) and (found.value, found.unit) == (number, unit):
            return guess
    return None


def read_back(token: str) -> Value | None:
    """What a reader would make of a token, None where it would refuse it."""
    if not token or "\t" in token or "\n" in token or "\r" in token:
        return None
    try:
        return read_token(token)
    except RecordProblem:
        return None
    except _OddDate as odd:
        return odd.number


def _quoted(token: str) -> Number:
    found = _LITERAL.fullmatch(token)
    if found is None:
        raise RecordProblem(
            "bad-literal",
            f"{shortened(token)} is not a literal that this format knows.",
            'Numbers are written as "3.73"^^<km2>, "62" or 62, dates as "1949-12-25"^^xsd:date; text is not read.',
        )
    lexical, iri, prefixed = found.groups()
    name = schema_type(iri, prefixed)
    if name in DATES:
        return _date(lexical, token, wikidata=False)
    if name in NUMBERS or (iri is None and prefixed is None):
        return Number(parse_number(lexical), token)
    if name is not None or iri is None:
        raise RecordProblem(
            "unknown-datatype",
            f"{shortened(token)} has the datatype {shortened(iri or prefixed or '')}, "
            "which is neither a number nor a date.",
            "Use a numeric or date type of XML Schema, or a unit such as <km2>.",
        )
    return Number(parse_number(lexical), token, iri)


def _date(text: str, token: str, *, wikidata: bool) -> Number:
    try:
        value, _ = parse_wikidata_time(text) if wikidata else parse_iso_date(text)
    except ImpossibleDate as problem:
        raise _OddDate(
            f"{shortened(token)} is a date that no calendar has.", Number(problem.lenient_value, token, DATE_UNIT)
        ) from None
    except UnreadableDate as problem:
        raise RecordProblem("bad-date", problem.what, problem.advice) from None
    return Number(value, token, DATE_UNIT)
