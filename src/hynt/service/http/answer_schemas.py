"""What answers look like, for the OpenAPI description: types of the library where there are some, models of what is put
together as plain values.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel

from hynt import __version__
from hynt.asking.answers import KnownNumber, MissingQualifier, RankedAnswer, SimilarEntity, StoredAnswer
from hynt.explanation.explanations import Explained, Influence
from hynt.graph.lookup import EntityPosition, Match
from hynt.service.http.problems import Fault

EXAMPLES: dict[str, list[Any]] = json.loads((files("hynt.service.http") / "examples.json").read_text(encoding="utf-8"))
"""By the name of the model: questions, and what a run of `world` said, shortened. Tests hold them to the models."""
EXAMPLES["ResultsModel"] = [{"results": EXAMPLES["AnswersModel"][:1]}]
EXAMPLES["IndexModel"][0]["hynt"] = __version__


class NumberAnswerModel(BaseModel):
    value: float
    text: str
    unit: str
    display_unit: str
    low: float | None
    high: float | None
    low_text: str | None
    high_text: str | None
    level: float
    interval_from: str
    training_low: float | None
    training_high: float | None
    known: list[KnownNumber]


class AnswersModel(BaseModel):
    """What the graph holds for a question, and the model's answers, best first."""

    question: str
    hole: str
    kind: Literal["entity", "relation", "number"]
    stored: list[StoredAnswer]
    stored_total: int
    new_from: float
    candidates: int
    calibrated: bool
    notes: list[str]
    missing: list[MissingQualifier]
    answers: list[RankedAnswer | NumberAnswerModel]


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
    match: Match


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
    position: EntityPosition
    added: str  # where it came from, if it came after training
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
    series: list[str]
    facts: list[FactModel]


class RelationModel(NamedModel):
    kind: Literal["entity", "number"]
    unit: str
    display_unit: str
    is_date: bool
    description: str
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


class DescribedEntityModel(NamedModel):
    type: str


class UpdateModel(BaseModel):
    """What became of the graph. `version` is the one to wait for in the header `Hynt-Version` of answers."""

    version: int
    changed: bool
    added: int
    removed: int
    new_entities: int
    gone_entities: int
    facts: int


class SimilarModel(BaseModel):
    entity: DescribedEntityModel
    similar: list[SimilarEntity]


class ProposalModel(BaseModel):
    """A fact that the graph lacks: how likely it is true, and how likely its answer is right if there is one. `share`
    of the entity's peers have one with this relation.
    """

    rank: int
    relation: str
    relation_label: str
    tail_label: str
    sentence: str
    probability: float
    answer_probability: float
    share: float
    peers: int


class ProposalsModel(BaseModel):
    entity: DescribedEntityModel
    proposals: list[ProposalModel]
    below_threshold: int
    oversight_rate: float | None


class AttentionModel(BaseModel):
    """Where the transformers looked, by layer and head."""

    tokens: list[str]
    context: list[object]
    parts: list[int | None]
    prediction: list[object] | None


class ExplanationModel(AnswersModel):
    about: Explained | None
    influences: list[Influence]
    attention: AttentionModel | None


class TrendRowModel(BaseModel):
    """A point of a curve, or a value that the graph knows."""

    head_id: str
    head: str
    kind: Literal["curve", "known"]
    at: float
    at_text: str
    value: float | None
    split: str | None
    trained_on: bool | None
    predicted: float
    low: float | None
    high: float | None


class TrendHeadModel(NamedModel):
    trained_on: int
    held_out: int
    held_out_inside: int | None
    mean_error_trained_on: float | None
    mean_error_held_out: float | None
    notes: list[str]


class TrendModel(BaseModel):
    """How a number moves along an axis."""

    relation: str
    relation_name: str
    unit: str
    display_unit: str
    over: str
    over_name: str
    over_unit: str
    over_display_unit: str
    condition: str
    level: float
    interval_from: str
    training_low: float | None
    training_high: float | None
    training_from: float | None
    training_to: float | None
    notes: list[str]
    heads: list[TrendHeadModel]
    rows: list[TrendRowModel]


class ProblemModel(BaseModel):
    """A refusal in the form of RFC 9457, with a pointer to each fault."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class EndpointModel(BaseModel):
    method: str
    path: str
    summary: str


class IndexModel(BaseModel):
    """What a service offers to programs."""

    hynt: str
    graph: str
    description: str
    endpoints: list[EndpointModel]


class ReadyModel(BaseModel):
    ready: bool
    reason: str
    restarts: int


class HealthModel(BaseModel):
    alive: Literal[True]
