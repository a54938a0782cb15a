"""Reference models that learn nothing by steps: what a table must show beside every real model.

`relation-mean`, `relation-median` and `neighbour-mean` answer numbers, `frequency` links and relations. They are made
from the training facts at once. `HeadMean`, `CoOccurrence` and `QualifierCompany` are known to combinations alone: they
repeat what the facts of the very same entities say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hynt.batches.fact_slots import ROLES, role_at
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.models.contract import EVERYWHERE, Candidates, Capability, EncodedQuestion, Part, Relations, ScaledNumber
from hynt.models.number_beside import NumberBeside
from hynt.models.number_regression import NumberRegression, PlainNumberRegression
from hynt.models.number_series import NumberSeries
from hynt.models.places import HeadPlaces, TailPlaces
from hynt.models.shared_facts import SharedFacts, listed, scores_of
from hynt.models.steps import OneStep, TwoSteps
from hynt.models.training_statistics import (
    NO_SUMS,
    NUMBERS,
    MadeAtOnce,
    NeighbourNumbers,
    NeighbourSums,
    answer_counts,
    are_too_many,
    head_sums,
    neighbour_sums,
    pair_counts,
    relation_counts,
    relation_means,
    relation_medians,
)


@dataclass(frozen=True)
class TrivialSettings:
    """A trivial model has no settings."""


@dataclass(frozen=True)
class NeighbourMeanSettings:
    """How the mean of neighbours is drawn to that of the relation."""

    shrinkage: float = 1.0  # counts as so many neighbours that have the relation's mean


@dataclass(frozen=True, eq=False)
class HeadQuestion(EncodedQuestion):
    """A question and the head it is about."""

    head: Tensor  # (rows,) int64 entity id, perhaps the masked one


@dataclass(frozen=True, eq=False)
class PlaceQuestion(EncodedQuestion):
    """A question and the place of what it asks for."""

    place: Tensor  # (rows,) int64 relation × ROLES + head, tail or qualifier value
    in_qualifier: Tensor  # (rows,) bool


class RelationMean(MadeAtOnce):
    """A number is the mean of its relation's numbers."""

    answers: ClassVar[frozenset[Capability]] = NUMBERS
    value: Tensor  # (relations + 1,) float32 scaled

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: TrivialSettings) -> RelationMean:  # noqa: ARG003
        """The mean of each relation's numbers in the training facts."""
        return cls(sizes, value=relation_means(train).float())

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """The relation is all it looks at."""
        return EncodedQuestion(_nothing(batch), batch.asked_relation())

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows,) scaled numbers."""
        if not isinstance(candidates, ScaledNumber):
            raise ValueError(f"this model answers numbers, not {type(candidates).__name__}")
        return self.value[question.relation]


class RelationMedian(RelationMean):
    """A number is the median of its relation's numbers."""

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: TrivialSettings) -> RelationMedian:  # noqa: ARG003
        """The median of each relation's numbers in the training facts."""
        return cls(sizes, value=relation_medians(train).float())


class NeighbourMean(MadeAtOnce):
    """A number is the mean of the same relation's numbers among the head's neighbours, one or two steps away.

    It is shrunk to the relation's mean: the fewer neighbours have a number, the nearer it stays.
    """

    answers: ClassVar[frozenset[Capability]] = NUMBERS
    mean: Tensor  # (relations + 1,) float32 scaled, of the relation
    key: Tensor  # (p,) int64 relation × entities + entity, ascending
    estimate: Tensor  # (p,) float32 scaled, the shrunk mean for that relation and entity
    _near: NeighbourNumbers | None = None  # instead of the last two, where these would be too many
    _shrinkage: float

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: NeighbourMeanSettings) -> NeighbourMean:
        """The shrunk mean of every entity and relation that have neighbours with numbers in the training facts."""
        mean, near = relation_means(train), cls.sums(train)
        tabled = NO_SUMS if isinstance(near, NeighbourNumbers) else near
        estimate = _shrunk(tabled.numbers, tabled.total, mean[tabled.key // sizes.entities], settings.shrinkage)
        made = cls(sizes, mean=mean.float(), key=tabled.key, estimate=estimate.float())
        if isinstance(near, NeighbourNumbers):
            made._near, made._shrinkage = near, settings.shrinkage
        return made

    @staticmethod
    def sums(train: FactTensors) -> NeighbourSums | NeighbourNumbers:
        """What the mean is of."""
        return NeighbourNumbers(train) if are_too_many(train) else neighbour_sums(train)

    def read(self, batch: MaskedBatch) -> HeadQuestion:
        """The head and the relation are all it looks at."""
        return HeadQuestion(_nothing(batch), batch.asked_relation(), batch.head)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows,) scaled numbers."""
        if not isinstance(candidates, ScaledNumber) or not isinstance(question, HeadQuestion):
            raise ValueError(f"this model answers numbers it has read itself, not {type(candidates).__name__}")
        plain = self.mean[question.relation]
        if self._near is not None:
            known = question.head < self.sizes.entities
            head = torch.where(known, question.head, 0)
            numbers, total = (one.to(plain.device) for one in self._near.at(question.relation.cpu(), head.cpu()))
            shrunk = _shrunk(numbers, total, plain.double(), self._shrinkage).float()
            return torch.where(known & (numbers > 0), shrunk, plain)
        if not len(self.key):
            return plain
        wanted = question.relation * self.sizes.entities + question.head
        at = torch.searchsorted(self.key, wanted).clamp(max=len(self.key) - 1)
        # A hidden head would be taken for the first entity of the next relation.
        met = (self.key[at] == wanted) & (question.head < self.sizes.entities)
        return torch.where(met, self.estimate[at], plain)


def _shrunk(numbers: Tensor, total: Tensor, mean: Tensor, shrinkage: float) -> Tensor:
    return (total + shrinkage * mean) / (numbers + shrinkage)


class HeadMean(NeighbourMean):
    """A number is the mean of the numbers that its own head has with the same relation: those of other years, say."""

    @staticmethod
    def sums(train: FactTensors) -> NeighbourSums:
        """What the head itself says of other years, or of other qualifiers."""
        return head_sums(train)


class Frequency(MadeAtOnce):
    """An entity scores how often it stands at this position of this relation; a relation how often it occurs."""

    scores_are_counts: ClassVar[bool] = True

    answers: ClassVar[frozenset[Capability]] = EVERYWHERE - NUMBERS
    offsets: Tensor  # ((relations + 1) × ROLES + 1,) int64 entities of place i are offsets[i] … offsets[i + 1]
    entity: Tensor  # (e,) int64
    times: Tensor  # (e,) float32 how often
    relations: Tensor  # (2, relations) float32 how often each is a primary relation, and one of a qualifier

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: TrivialSettings) -> Frequency:  # noqa: ARG003
        """How often each entity stands at each place, and how often each relation occurs, in the training facts."""
        return cls(sizes, **answer_counts(train)._asdict(), relations=relation_counts(train))

    def read(self, batch: MaskedBatch) -> PlaceQuestion:
        """The relation and the position are all it looks at."""
        relation = batch.asked_relation()
        place = relation * ROLES + role_at(batch.asked)
        return PlaceQuestion(_nothing(batch), relation, place, batch.asks_qualifier)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) counts."""
        if not isinstance(question, PlaceQuestion):
            raise ValueError("this model answers questions it has read itself")
        found = scores_of(candidates, self.sizes.entities, lambda start, end: self._counts(question, start, end))
        if found is not None:
            return found
        if isinstance(candidates, Relations):
            return self.relations[question.in_qualifier.long()]
        raise ValueError(f"this model answers entities and relations, not {type(candidates).__name__}")

    def _counts(self, question: PlaceQuestion, start: int, end: int) -> Tensor:
        row, slot = listed(self.offsets, question.place)
        entity = self.entity[slot]
        inside = (entity >= start) & (entity < end)
        scores = self.times.new_zeros(len(question.place), end - start)
        scores[row[inside], entity[inside] - start] = self.times[slot[inside]]
        return scores


@dataclass(frozen=True, eq=False)
class CompanyQuestion(EncodedQuestion):
    """A question and what is visible in it."""

    seen: Tensor  # (rows, most) int64 entities, and relations as entities + 1 + their ids; filled up with masked ones


class CoOccurrence(MadeAtOnce):
    """A candidate scores how often it stands in facts of the head and the tail: logarithms of counts, added."""

    answers: ClassVar[frozenset[Capability]] = EVERYWHERE - NUMBERS
    offsets: Tensor  # (entities + relations + 3,) int64 the company of what is seen as i is offsets[i] … offsets[i + 1]
    company: Tensor  # (p,) int64 an entity, or entities + a relation
    weight: Tensor  # (p,) float32 log(1 + how often)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: TrivialSettings) -> CoOccurrence:  # noqa: ARG003
        """The company of every entity and relation in the training facts."""
        offsets, company, times = pair_counts(train)
        return cls(sizes, offsets=offsets, company=company, weight=torch.log1p(times))

    def read(self, batch: MaskedBatch) -> CompanyQuestion:
        tail = torch.where(batch.tail_is_number, self.sizes.mask_entity, batch.tail_entity)
        return CompanyQuestion(_nothing(batch), batch.asked_relation(), torch.stack([batch.head, tail], dim=1))

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates)."""
        if not isinstance(question, CompanyQuestion):
            raise ValueError("this model answers questions it has read itself")
        found = scores_of(candidates, self.sizes.entities, lambda start, end: self._sums(question, start, end))
        if found is not None:
            return found
        if isinstance(candidates, Relations):
            return self._sums(question, self.sizes.entities, self.sizes.entities + self.sizes.relations)
        raise ValueError(f"this model answers entities and relations, not {type(candidates).__name__}")

    def _sums(self, question: CompanyQuestion, start: int, end: int) -> Tensor:
        seen = question.seen
        row, slot = listed(self.offsets, seen.flatten())
        company = self.company[slot]
        inside = (company >= start) & (company < end)
        scores = self.weight.new_zeros(len(seen), end - start)
        place = (row[inside] // seen.shape[1], company[inside] - start)
        return scores.index_put_(place, self.weight[slot[inside]], accumulate=True)


class QualifierCompany(CoOccurrence):
    """The same of what stands beside the entities of the triplet: its relation, and what its qualifiers hold."""

    reads: ClassVar[frozenset[Part]] = frozenset({Part.QUALIFIERS})

    def read(self, batch: MaskedBatch) -> CompanyQuestion:
        """Relations, and values of qualifiers."""
        masked = self.sizes.mask_entity
        most = max((capacity for _, capacity in batch.layout.segments), default=0)
        seen = batch.head.new_full((len(batch.asked), 1 + 2 * most), masked)
        seen[:, 0] = batch.relation + masked + 1
        if batch.layout.slots:
            row, place, present = batch.places.slot_row, 1 + 2 * batch.places.slot_within, batch.qualifier_present
            seen[row, place] = torch.where(present, batch.qualifier_relation + masked + 1, masked)
            seen[row, place + 1] = torch.where(present & ~batch.qualifier_is_number, batch.qualifier_entity, masked)
        return CompanyQuestion(_nothing(batch), batch.asked_relation(), seen)


def _nothing(batch: MaskedBatch) -> Tensor:
    """(rows, 0): these models encode nothing."""
    return torch.zeros(len(batch.asked), 0, device=batch.asked.device)


STATISTICS: Mapping[str, tuple[Any, Any]] = {
    "frequency": (Frequency, TrivialSettings()),
    "co-occurrence": (CoOccurrence, TrivialSettings()),
    "qualifier-company": (QualifierCompany, TrivialSettings()),
    "shared-facts": (SharedFacts, TrivialSettings()),
    "one-step": (OneStep, TrivialSettings()),
    "two-steps": (TwoSteps, TrivialSettings()),
    "head-places": (HeadPlaces, TrivialSettings()),
    "tail-places": (TailPlaces, TrivialSettings()),
    "relation-mean": (RelationMean, TrivialSettings()),
    "relation-median": (RelationMedian, TrivialSettings()),
    "neighbour-mean": (NeighbourMean, NeighbourMeanSettings()),
    "head-mean": (HeadMean, NeighbourMeanSettings()),
    "neighbour-regression": (NumberRegression, TrivialSettings()),
    "number-series": (NumberSeries, TrivialSettings()),
    "number-beside": (NumberBeside, TrivialSettings()),
}
"""What is weighed beside models that were trained."""

FORMER: Mapping[str, tuple[Any, Any]] = {"number-regression": (PlainNumberRegression, TrivialSettings())}
"""What combinations hold that were weighed earlier: it stays what their weights were fitted for.

Scales of numbers are chosen by it too.
"""


def statistic(name: str, facts: FactTensors) -> nn.Module:
    """One of `STATISTICS`, or of the former ones, of these facts."""
    kind, settings = {**STATISTICS, **FORMER}[name]
    made: nn.Module = kind.build(facts.sizes, facts, settings)
    return made.to(facts.device).eval()
