"""What requests may hold: checked before anything else looks at them, and described in OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StrictFloat, StrictInt, StrictStr, Tag

from hynt.calibration.intervals import LEVELS
from hynt.service.settings import BATCH, HEADS, ONLY, POINTS, QUALIFIERS, TEXT, TOP

Text = Annotated[StrictStr, Field(min_length=1, max_length=TEXT)]
_LARGEST = 1e300


def _finite(value: str | int | float) -> str | int | float:
    if not isinstance(value, str) and not -_LARGEST < value < _LARGEST:
        raise ValueError("the number is too large")
    return value


Value = Annotated[
    Text | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)],
    AfterValidator(_finite),
    Field(description="An entity's id or name, a number, a number with its unit (80 kg), a date, or ? for the hole."),
]


def _known_level(value: float) -> float:
    if value not in LEVELS:
        raise ValueError(f"choose from {', '.join(f'{level:g}' for level in LEVELS)}")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QualifierPart(_Strict):
    """A qualifier; one side may be the hole."""

    relation: Text
    value: Value


Level = Annotated[
    StrictFloat,
    AfterValidator(_known_level),
    Field(json_schema_extra={"enum": list(LEVELS)}, description="How sure an interval of a number is."),
]


class _Asked(_Strict):
    """A fact with exactly one ? in it, and what may stand there."""

    head: Text
    relation: Text
    tail: Value
    qualifiers: Annotated[list[QualifierPart], Field(max_length=QUALIFIERS)] = []
    candidates: Annotated[
        list[Literal["type", "unknown"]],
        Field(max_length=2, description="type: only what training holds at that place; unknown: only what is new."),
    ] = []
    only: Annotated[list[Text], Field(max_length=ONLY, description="Only these answers, by id or name.")] = []
    level: Level = 0.9

    def job(self) -> dict[str, Any]:
        """As the inference process reads it."""
        return self.model_dump()


class Question(_Asked):
    """A fact with exactly one ? in it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "head": "Japan",
                    "relation": "life expectancy",
                    "tail": "?",
                    "qualifiers": [
                        {"relation": "point in time", "value": "2024"},
                        {"relation": "sex", "value": "female"},
                    ],
                },
                {"head": "?", "relation": "shares border with", "tail": "Brazil", "top": 3, "candidates": ["type"]},
            ]
        },
    )

    top: Annotated[StrictInt, Field(ge=1, le=TOP, description="How many answers to give.")] = 10


class Questions(_Strict):
    """Several questions; all are answered, or none is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "questions": [
                        {"head": "Japan", "relation": "capital", "tail": "?", "top": 1},
                        {"head": "Brazil", "relation": "?", "tail": "Brazilian Real"},
                    ]
                }
            ]
        },
    )

    questions: Annotated[list[Question], Field(min_length=1, max_length=BATCH)]


def _one_or_many(value: Any) -> str:
    return "many" if isinstance(value, dict) and "questions" in value else "one"


OneOrMany = Annotated[Annotated[Question, Tag("one")] | Annotated[Questions, Tag("many")], Discriminator(_one_or_many)]


class ExplainedQuestion(_Asked):
    """A question, and the answer to explain where it is not the first one."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"head": "Japan", "relation": "capital", "tail": "?", "answer": "Tokyo"}]},
    )

    answer: Text | None = None


class TrendQuestion(_Strict):
    """A number of some heads along a qualifier that holds dates or numbers."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"heads": ["Brazil", "India"], "relation": "total fertility rate", "points": 20}]
        },
    )

    heads: Annotated[list[Text], Field(min_length=1, max_length=HEADS)]
    relation: Text
    over: Annotated[Text | None, Field(description="The axis; the date that the facts carry most unless named.")] = None
    qualifiers: Annotated[list[QualifierPart], Field(max_length=QUALIFIERS)] = []
    start: Value | None = None
    end: Value | None = None
    points: Annotated[StrictInt, Field(ge=2, le=POINTS)] = 100
    level: Level = 0.9

    def job(self) -> dict[str, Any]:
        """As the inference process reads it."""
        return self.model_dump()
