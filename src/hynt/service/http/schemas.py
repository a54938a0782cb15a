"""What requests may hold: checked before anything else looks at them, and described in OpenAPI."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
)
from starlette.exceptions import HTTPException

from hynt.calibration.intervals import LEVELS
from hynt.graph.fact import DATE_UNIT, Number, as_pairs, number
from hynt.graph.units.dates import UnreadableDate, parse_iso_date
from hynt.service.http.problems import Fault, HttpProblem, invalid
from hynt.service.settings import BATCH, HEADS, NESTING, ONLY, POINTS, QUALIFIERS, TEXT, TOP

TextField = Annotated[StrictStr, Field(min_length=1, max_length=TEXT)]
_LARGEST = 1e300


def _finite(value: str | int | float) -> str | int | float:
    if not isinstance(value, str) and not -_LARGEST < value < _LARGEST:
        raise ValueError("the number is too large")
    return value


ValueField = Annotated[
    TextField | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)],
    AfterValidator(_finite),
    Field(description="An entity's id or name, a number, a number with its unit (80 kg), a date, or ? for the blank."),
]


def _known_level(value: float) -> float:
    if value not in LEVELS:
        raise ValueError(f"choose from {', '.join(f'{level:g}' for level in LEVELS)}")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QualifierPart(_Strict):
    """A qualifier; one side may be the blank."""

    relation: TextField
    value: ValueField


LevelField = Annotated[
    StrictFloat,
    AfterValidator(_known_level),
    Field(json_schema_extra={"enum": list(LEVELS)}, description="How sure an interval of a number is."),
]


class _QuestionFields(_Strict):
    """A fact with exactly one ? in it, and what it may stand for."""

    head: TextField
    relation: TextField
    tail: ValueField
    qualifiers: Annotated[list[QualifierPart], Field(max_length=QUALIFIERS)] = []
    candidates: Annotated[
        list[Literal["type", "unknown"]],
        Field(max_length=2, description="type: only what training holds at that place; unknown: only what is new."),
    ] = []
    only: Annotated[list[TextField], Field(max_length=ONLY, description="Only these answers, by id or name.")] = []
    level: LevelField = 0.9


class Question(_QuestionFields):
    """A fact with exactly one ? in it."""

    top: Annotated[StrictInt, Field(ge=1, le=TOP, description="How many answers to give.")] = 10


class Questions(_Strict):
    """Several questions; all are answered, or none is."""

    questions: Annotated[list[Question], Field(min_length=1, max_length=BATCH)]


def _one_or_many(value: Any) -> str:
    return "many" if isinstance(value, dict) and "questions" in value else "one"


OneOrMany = Annotated[Annotated[Question, Tag("one")] | Annotated[Questions, Tag("many")], Discriminator(_one_or_many)]


class ExplainedQuestion(_QuestionFields):
    """A question, and the answer to explain where it is not the first one."""

    answer: TextField | None = None


class TrendQuestion(_Strict):
    """A number of some heads along a qualifier that holds dates or numbers."""

    heads: Annotated[list[TextField], Field(min_length=1, max_length=HEADS)]
    relation: TextField
    over: Annotated[
        TextField | None, Field(description="The axis; the date that the facts carry most unless named.")
    ] = None
    qualifiers: Annotated[list[QualifierPart], Field(max_length=QUALIFIERS)] = []
    start: ValueField | None = None
    end: ValueField | None = None
    points: Annotated[StrictInt, Field(ge=2, le=POINTS)] = 100
    level: LevelField = 0.9


class GivenNumber(_Strict):
    """A number and its unit, for a relation that the graph lacks too."""

    number: Annotated[StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)], AfterValidator(_finite)]
    unit: Annotated[StrictStr, Field(max_length=TEXT)] = ""
    literal: Annotated[StrictStr, Field(max_length=TEXT, description="As its source wrote it.")] = ""


def _readable(text: str) -> str:
    try:
        parse_iso_date(text)
    except UnreadableDate as problem:
        raise ValueError(problem.what) from None
    return text


class GivenDate(_Strict):
    """A date, for a relation that the graph lacks too."""

    date: Annotated[TextField, AfterValidator(_readable)]
    literal: Annotated[StrictStr, Field(max_length=TEXT, description="As its source wrote it.")] = ""


def _written_as(value: Any) -> str:
    fields = value if isinstance(value, dict) else value.__dict__ if isinstance(value, BaseModel) else ()
    return "[date]" if "date" in fields else "[number]" if isinstance(value, dict | BaseModel) else "[value]"


GivenValue = Annotated[
    Annotated[ValueField, Tag("[value]")]
    | Annotated[GivenNumber, Tag("[number]")]
    | Annotated[GivenDate, Tag("[date]")],
    Discriminator(_written_as),
]


class GivenQualifier(_Strict):
    """A qualifier of a fact."""

    relation: TextField
    value: GivenValue


def _as_objects(given: Any) -> Any:
    """Qualifiers in any form that JSON Lines have."""
    pairs = as_pairs(given)
    if not isinstance(pairs, list):
        return given
    return [
        {"relation": one[0], "value": one[1]} if isinstance(one, list | tuple) and len(one) == 2 else one
        for one in pairs
    ]


class GivenFact(_Strict):
    """A fact without a blank: values are read as in questions, or as JSON Lines have them. So a line of JSON Lines is
    one, whichever way it writes its qualifiers.
    """

    head: TextField
    relation: TextField
    tail: GivenValue
    qualifiers: Annotated[list[GivenQualifier], BeforeValidator(_as_objects), Field(max_length=QUALIFIERS)] = []


class GivenFacts(_Strict):
    """Facts to add, or to take away; all of them or none."""

    facts: Annotated[list[GivenFact], Field(min_length=1, max_length=BATCH)]
    source: Annotated[StrictStr, Field(max_length=200, description="Where they come from, for the log.")] = ""
    key: Annotated[StrictStr, Field(max_length=200, description="Asking again with the same one does nothing.")] = ""
    skip_known: Annotated[bool, Field(description="Skip facts that are there already.")] = False

    def tuples(self) -> list[tuple[Any, ...]]:
        """As the library takes facts."""
        return [
            (
                fact.head,
                fact.relation,
                _given(fact.tail),
                [(one.relation, _given(one.value)) for one in fact.qualifiers],
            )
            for fact in self.facts
        ]


def _given(value: Any) -> Any:
    if isinstance(value, GivenNumber):
        return number(value.number, value.unit, value.literal or None)
    if isinstance(value, GivenDate):
        return Number(parse_iso_date(value.date)[0], value.literal or value.date, DATE_UNIT)
    return value


# Bodies, read with suspicion: shallow, unambiguous, finite, real Unicode. Anything else is refused before use.

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', flags=re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


class RefusedBody(HTTPException):
    """Carries a `HttpProblem` through FastAPI's reading of a body, which lets nothing else pass."""

    def __init__(self, problem: HttpProblem) -> None:
        super().__init__(problem.status, problem.detail)
        self.problem = problem


def parse(body: bytes) -> Any:
    """The value of a JSON text; a `HttpProblem` that says what is wrong with it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"the body is not UTF-8: byte {error.start + 1} is wrong.") from None
    if depth(text) > NESTING:
        raise invalid([Fault(f"the body nests deeper than {NESTING} levels.", "#")])
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is not JSON: {error.msg}, at line {error.lineno}, column {error.colno}.") from None
    except UnicodeEncodeError:
        raise _malformed("the body has half a character (a lone surrogate).") from None
    except (ValueError, RecursionError):  # a whole number of thousands of digits, for one
        raise _malformed("the body holds a number or a structure that cannot be read.") from None
    return value


def depth(text: str) -> int:
    """How deep brackets nest outside of quotes, counted without building anything."""
    deepest = level = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


class StrictRoute(APIRoute):
    """A route whose body must be JSON, said to be JSON, and read by `parse`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            if request.method == "POST" and not _is_json(request.headers.get("content-type", "")):
                raise HttpProblem(
                    415, "the body must be JSON, and say so.", [Fault("send Content-Type: application/json.")]
                )
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return parse(await self.body())
        except HttpProblem as problem:
            raise RefusedBody(problem) from None


def _is_json(content_type: str) -> bool:
    kind, _, options = content_type.partition(";")
    charset = options.strip().lower()
    return kind.strip().lower() == "application/json" and charset in ("", "charset=utf-8", 'charset="utf-8"')


def _malformed(detail: str) -> HttpProblem:
    return HttpProblem(400, detail, [Fault(detail, "#")])


def _no_constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is not a JSON number.")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _malformed("an object of the body names a field twice.")
    return found
