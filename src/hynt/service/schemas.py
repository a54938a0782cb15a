"""What requests may hold and what answers look like, for validation and for the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StrictFloat, StrictInt, StrictStr, Tag

from hynt.prediction.intervals import LEVELS
from hynt.service.settings import BATCH, ONLY, QUALIFIERS, TEXT, TOP

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


class Question(_Strict):
    """A fact with exactly one ? in it."""

    model_config = ConfigDict(
        extra="forbid", frozen=True,
        json_schema_extra={
            "examples": [
                {"head": "Japan", "relation": "life expectancy", "tail": "?",
                 "qualifiers": [{"relation": "point in time", "value": "2024"},
                                {"relation": "sex", "value": "female"}]},
                {"head": "?", "relation": "shares border with", "tail": "Brazil", "top": 3, "candidates": ["type"]},
            ]
        },
    )  # fmt: skip

    head: Text
    relation: Text
    tail: Value
    qualifiers: Annotated[list[QualifierPart], Field(max_length=QUALIFIERS)] = []
    top: Annotated[StrictInt, Field(ge=1, le=TOP, description="How many answers to give.")] = 10
    candidates: Annotated[
        list[Literal["type", "unknown"]],
        Field(max_length=2, description="type: only what training holds at that place; unknown: only what is new."),
    ] = []
    only: Annotated[list[Text], Field(max_length=ONLY, description="Only these answers, by id or name.")] = []
    level: Annotated[
        StrictFloat, AfterValidator(_known_level),
        Field(json_schema_extra={"enum": list(LEVELS)}, description="How sure an interval of a number is."),
    ] = 0.9  # fmt: skip

    def job(self) -> dict[str, Any]:
        """As the inference process reads it."""
        return self.model_dump()


class Questions(_Strict):
    """Several questions; all are answered, or none is."""

    questions: Annotated[list[Question], Field(min_length=1, max_length=BATCH)]


def _one_or_many(value: Any) -> str:
    return "many" if isinstance(value, dict) and "questions" in value else "one"


OneOrMany = Annotated[
    Annotated[Question, Tag("one")] | Annotated[Questions, Tag("many")], Discriminator(_one_or_many)
]  # fmt: skip


class RankedAnswerModel(BaseModel):
    rank: int
    id: str
    name: str
    probability: float
    score: float
    known: list[str]


class KnownNumberModel(BaseModel):
    value: float
    splits: list[str]


class NumberAnswerModel(BaseModel):
    value: float
    text: str
    unit: str
    low: float | None
    high: float | None
    low_text: str | None
    high_text: str | None
    level: float
    interval_from: str
    training_low: float | None
    training_high: float | None
    known: list[KnownNumberModel]


class AnswersModel(BaseModel):
    """The answers to one question, best first."""

    question: str
    hole: str
    kind: Literal["entity", "relation", "number"]
    candidates: int
    calibrated: bool
    notes: list[str]
    answers: list[RankedAnswerModel | NumberAnswerModel]


class ResultsModel(BaseModel):
    """The answers to each question of a batch, in its order."""

    results: list[AnswersModel]


class NamedModel(BaseModel):
    id: str
    name: str


class EntityModel(NamedModel):
    type: str
    facts: int


class FoundEntityModel(EntityModel):
    match: Literal["exact", "prefix", "word", "similar"]


class EntitiesModel(BaseModel):
    query: str
    entities: list[FoundEntityModel]
    more: bool


class NumberModel(BaseModel):
    number: float
    literal: str
    unit: str
    text: str


class QualifierModel(BaseModel):
    relation: NamedModel
    value: NamedModel | NumberModel


class FactModel(BaseModel):
    split: str
    position: Literal["head", "tail", "value"]
    text: str
    head: NamedModel
    relation: NamedModel
    tail: NamedModel | NumberModel
    qualifiers: list[QualifierModel]


class EntityFactsModel(BaseModel):
    entity: EntityModel
    counts: dict[str, int]
    total: int
    offset: int
    facts: list[FactModel]


class RelationModel(NamedModel):
    kind: Literal["entity", "number"]
    unit: str
    is_date: bool
    facts: int
    qualifiers: int


class RelationsModel(BaseModel):
    relations: list[RelationModel]
    total: int
    offset: int


class DistributionModel(BaseModel):
    count: int
    minimum: float
    maximum: float
    mean: float
    quantiles: dict[str, float]
    edges: list[float]
    counts: list[int]


class RelationNumbersModel(RelationModel):
    numbers: DistributionModel | None


class SimilarEntityModel(NamedModel):
    rank: int
    type: str
    similarity: float


class DescribedEntityModel(NamedModel):
    type: str


class SimilarModel(BaseModel):
    entity: DescribedEntityModel
    similar: list[SimilarEntityModel]


class FaultModel(BaseModel):
    detail: str
    pointer: str | None = None
    parameter: str | None = None
    advice: str | None = None


class ProblemModel(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultModel] = []


class ReadyModel(BaseModel):
    ready: bool
    reason: str
    restarts: int


class HealthModel(BaseModel):
    alive: Literal[True]
