"""JF17K and WikiPeople as the NaLP paper has them: a line is a JSON object from roles to values and
their number "N".

WikiPeople names the primary pair: `P166_h` and `P166_t` are head and tail of P166, all other roles are qualifiers.

    {"P166_h": "Q7186", "P166_t": "Q38104", "N": 3,
     "P585": ["+1903-01-01T00:00:00Z#0#0#0#9#http://www.wikidata.org/entity/Q1985727"]}

JF17K numbers the roles of a relation: `film.cast0` and `film.cast1` are head and tail of film.cast, the rest
qualifiers.
GRAN's files say `subject`, `relation` and `object` themselves; all other roles are qualifiers.
Where roles follow no rule, the first two are head and tail, and the relation is named after both: `person|award`.

Values are entities, apart from Wikidata's times (see above: time, zone, before, after, precision, calendar) and amounts
(`+180`, `+180#http://www.wikidata.org/entity/Q174728` with a unit, `#1` for none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hynt.errors import RecordProblem
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import facts_from_lines, kind_of, number_as_head, quoted, read_object
from hynt.formats.values import check_name, parse_number
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier, Value
from hynt.graph.units.dates import ImpossibleDate, UnreadableDate, parse_wikidata_time

_TIME = re.compile(
    r"([+-][0-9]+-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)(?:#-?[0-9]+#[0-9]+#[0-9]+#([0-9]{1,2})#(.+))?"
)
_AMOUNT = re.compile(r"([+-][0-9.]+)(?:#(?:1|(?:https?://www\.wikidata\.org/entity/)?(Q[0-9]+)))?")
_SIGNED = re.compile(r"[+-][0-9]")
_JULIAN = "Q1985786"
_VALUES_REMEMBERED = 500_000


def read_facts(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    reader = _Roles(options, report)
    return facts_from_lines(path, options, report, reader.parse)


class _Roles:
    """Turns objects of roles into facts."""

    def __init__(self, options: ReadOptions, report: ReadReport) -> None:
        self._strict = options.strict
        self._report = report
        self._known: dict[str, Value] = {}

    def parse(self, line: str) -> Fact | None:
        if not line.strip(" \t"):
            return None
        record = read_object(line)
        arity = record.pop("N", None)
        pairs: list[tuple[str, Value]] = []
        for role, given in record.items():
            check_name(role, "role")
            if given == []:
                raise RecordProblem(
                    "qualifier-without-value", f"the role {quoted(role)} has no value.", "Give it one, or leave it out."
                )
            pairs += [(role, self._value(one, role)) for one in (given if isinstance(given, list) else [given])]
        if len(pairs) < 2:
            raise RecordProblem(
                "missing-columns",
                f"{len(pairs)} values where a fact has at least 2.",
                "A fact needs a head and a tail.",
            )
        if arity is not None:
            self._check_arity(arity, len(pairs))
        return _fact(pairs)

    def _check_arity(self, arity: object, found: int) -> None:
        if isinstance(arity, Number) and arity.value == found:
            return
        said = arity.literal if isinstance(arity, Number) else kind_of(arity)
        what, advice = f'"N" is {said}, but there are {found} values.', "Correct one of them."
        if self._strict or not isinstance(arity, Number):
            raise RecordProblem("wrong-arity", what, advice)
        self._report.note("wrong-arity", what, "Kept with the values it has.")

    def _value(self, given: object, role: str) -> Value:
        if isinstance(given, str):
            known = self._known.get(given)
            if known is None:
                if len(self._known) >= _VALUES_REMEMBERED:
                    self._known.clear()
                known = self._read(given, role)
            return known
        raise RecordProblem(
            "bad-value", f"the value of {quoted(role)} is {kind_of(given)}.", "A value is a text, or a list of texts."
        )

    def _read(self, text: str, role: str) -> Value:
        check_name(text, f"value of {quoted(role)}")
        if not _SIGNED.match(text):
            self._known[text] = text
            return text
        time = _TIME.fullmatch(text)
        if time is not None:
            return self._time(text, *time.groups())
        amount = _AMOUNT.fullmatch(text)
        if amount is None:
            raise RecordProblem(
                "bad-number",
                f"{quoted(text)} starts as a number and is neither a Wikidata time nor an amount.",
                "Expected a time as +1903-01-01T00:00:00Z or an amount as +180.",
            )
        self._known[text] = number = Number(parse_number(amount[1]), text, amount[2] or "")
        return number

    def _time(self, text: str, time: str, precision: str | None, calendar: str | None) -> Number:
        try:
            value, _ = parse_wikidata_time(
                time, None if precision is None else int(precision), julian=(calendar or "").endswith(_JULIAN)
            )
        except ImpossibleDate as problem:
            what = f"{quoted(text)} is a date that no calendar has."
            if self._strict:
                raise RecordProblem("impossible-date", what, "Correct the date, or remove the fact.") from None
            self._report.note("impossible-date", what, "Kept by counting its days on.")
            return Number(problem.lenient_value, text, DATE_UNIT)
        except UnreadableDate as problem:
            raise RecordProblem("bad-date", problem.what, problem.advice) from None
        self._known[text] = number = Number(value, text, DATE_UNIT)
        return number


def _fact(pairs: list[tuple[str, Value]]) -> Fact:
    roles = [role for role, _ in pairs]
    named = dict(pairs)
    if {"subject", "relation", "object"} <= named.keys():
        head, relation = named["subject"], named["relation"]
        if isinstance(head, Number) or isinstance(relation, Number):
            raise number_as_head(str(head if isinstance(head, Number) else relation))
        others = tuple(Qualifier(*pair) for pair in pairs if pair[0] not in ("subject", "relation", "object"))
        return Fact(head, relation, named["object"], others)
    primary = _named_pair(roles) or _numbered(roles) or ((0, 1), f"{roles[0]}|{roles[1]}")
    (head_index, tail_index), relation = primary
    head = pairs[head_index][1]
    if isinstance(head, Number):
        raise number_as_head(head.literal)
    qualifiers = tuple(Qualifier(*pair) for index, pair in enumerate(pairs) if index not in (head_index, tail_index))
    return Fact(head, relation, pairs[tail_index][1], qualifiers)


def _named_pair(roles: list[str]) -> tuple[tuple[int, int], str] | None:
    """WikiPeople: where the roles R_h and R_t stand, and R."""
    heads = [index for index, role in enumerate(roles) if role.endswith("_h")]
    tails = [index for index, role in enumerate(roles) if role.endswith("_t")]
    if not heads and not tails:
        return None
    if len(heads) != 1 or len(tails) != 1 or roles[heads[0]][:-2] != roles[tails[0]][:-2] or len(roles[heads[0]]) == 2:
        raise RecordProblem(
            "bad-primary-pair",
            f"the primary pair is not one head and one tail: {', '.join(roles[i] for i in (*heads, *tails)[:6])[:200]}",
            "Give exactly one value to R_h and one to R_t, for one relation R.",
        )
    return (heads[0], tails[0]), roles[heads[0]][:-2]


def _numbered(roles: list[str]) -> tuple[tuple[int, int], str] | None:
    """JF17K: the relation, where the roles are its name with 0, 1, 2 … after it."""
    relation = roles[0].removesuffix("0")
    if relation and all(role == f"{relation}{index}" for index, role in enumerate(roles)):
        return (0, 1), relation
    return None
