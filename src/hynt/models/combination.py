"""Several models that answer as one: each member's score times a weight, added up.

Links and relations: what a member adds to all candidates of a question alike changes no rank, so scores can be added
as they are, chunk by chunk, and no member need be normalised. Numbers: weights add up to 1, and where a member has no
answer, its weight goes to the others, in proportion. The weights of a question
follow from what it asks for, where, and beside which relation; `evaluation.combining` fits them on validation.

`TaskWeights` is one model whose weights were at their best at another time for each task. Links, relations and numbers
are learnt at different speeds, and each is overlearnt when its time is over. The copies have one form and observe the
same facts. A question is read by those copies only whose tasks it, or a row beside it, asks for; an evaluation asks
task by task, so it costs what one model costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.errors import DataError
from hynt.graph.vocabulary import Vocabulary
from hynt.models.contract import (
    AnswersDistributions,
    Candidates,
    Capability,
    EmbedsEntities,
    EncodedQuestion,
    Model,
    Observer,
    Part,
    Position,
    Relations,
    ScaledNumber,
    give_observed,
    position_of,
    reads_several_masks,
)
from hynt.objectives.number_distribution import NumberDistribution
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

POSITIONS = tuple(Position)

MOVES = 3
"""What is stopped by the ends of the bins is made up for by moving the rest again."""

SMALLEST_PART = 1e-6
"""What a member's belief counts at least, so that some belief is left where statistics alone answer."""


@dataclass(frozen=True)
class GroupWeights:
    """The weights of one capability: a number for each member, and for some relations others."""

    everywhere: tuple[float, ...]
    relations: Mapping[int, tuple[float, ...]]


@dataclass(frozen=True)
class Weights:
    """By capability, what each member counts. A capability that is missing is answered by the first member alone."""

    members: tuple[str, ...]
    groups: Mapping[Capability, GroupWeights]

    def used(self) -> tuple[bool, ...]:
        """Whether each member counts anywhere."""
        rows = [row for group in self.groups.values() for row in (group.everywhere, *group.relations.values())]
        return tuple(any(row[index] for row in rows) for index in range(len(self.members)))

    def only(self, wanted: Sequence[bool], always: int = 1) -> Weights:
        """Without the members that are not wanted; the first `always` stay."""
        kept = [index for index, one in enumerate(wanted) if one or index < always]

        def row(values: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(values[index] for index in kept)

        groups = {
            one: GroupWeights(row(group.everywhere), {key: row(own) for key, own in group.relations.items()})
            for one, group in self.groups.items()
        }
        return Weights(tuple(self.members[index] for index in kept), groups)

    def table(self, sizes: Sizes) -> Tensor:
        """(tasks, positions, relations + 1, members) float32."""
        found = torch.zeros(len(Task), len(POSITIONS), sizes.relations + 1, len(self.members))
        found[..., 0] = 1.0
        for (task, position), group in self.groups.items():
            of_group = found[int(task), POSITIONS.index(position)]
            of_group[:] = torch.tensor(group.everywhere)
            for relation, row in group.relations.items():
                of_group[relation] = torch.tensor(row)
        return found

    def to_mapping(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """For JSON: relations by name, capabilities as `link at head`."""
        groups = {
            f"{task.name.lower()} at {position}": {
                "everywhere": list(group.everywhere),
                "relations": {vocabulary.relations[one].name: list(row) for one, row in group.relations.items()},
            }
            for (task, position), group in sorted(self.groups.items())
        }
        return {"members": list(self.members), "groups": groups}

    @classmethod
    def from_mapping(cls, mapping: Any, vocabulary: Vocabulary, where: str) -> Weights:
        """What `to_mapping` wrote; anything else is a `DataError`."""
        names = {f"{task.name.lower()} at {position}": (task, position) for task in Task for position in POSITIONS}
        try:
            members = tuple(mapping["members"])
            if not isinstance(mapping["members"], list) or not all(isinstance(name, str) for name in members):
                raise ValueError("the members are not a list of names")

            def row(values: Any) -> tuple[float, ...]:
                found = tuple(float(value) for value in values)
                if len(found) != len(members) or not all(map(math.isfinite, found)):
                    raise ValueError("a row of weights does not fit the members")
                return found

            groups = {
                names[name]: GroupWeights(
                    row(group["everywhere"]),
                    {vocabulary.relation_ids[one]: row(values) for one, values in group["relations"].items()},
                )
                for name, group in mapping["groups"].items()
            }
            if not members:
                raise ValueError("there are no members")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise DataError(
                f"the weights are damaged: {problem}.", where=where, advice="Take the file from the run again."
            ) from None
        return cls(members, groups)


@dataclass(frozen=True, eq=False)
class CombinedQuestion(EncodedQuestion):
    """What each member made of the same questions."""

    position: Tensor  # (rows,) int64 index into `Position`
    members: tuple[EncodedQuestion, ...]

    def take(self, rows: Tensor) -> CombinedQuestion:
        """The questions at these row numbers, (k,) int64."""
        members = tuple(one.take(rows) for one in self.members)
        return CombinedQuestion(self.encoded[rows], self.relation[rows], self.position[rows], members)

    def answered_by_all(self) -> Tensor | None:
        """(rows,) bool: whether no member was without an answer."""
        said = [answered for one in self.members if (answered := one.answered()) is not None]
        return torch.stack(said).all(0) if said else None


class Combination(nn.Module):
    """A model like any other, made of models."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = ()
    table: Tensor
    ranges: Tensor | None

    def __init__(
        self,
        sizes: Sizes,
        members: Sequence[Model],
        weights: Weights,
        answers: frozenset[Capability],
        trained: int = 1,
        ranges: Tensor | None = None,
    ) -> None:
        """`sizes` are those of the batches it reads, of which the members without literals have fewer; the first
        members, as many as `trained` says, are no statistics. Numbers stay within `ranges` (2, relations + 1), the
        least and the greatest of each relation: on a log scale a little beyond is very far.
        """
        super().__init__()
        self.sizes, self.weights, self.answers, self.trained = sizes, weights, answers, trained
        self.members = nn.ModuleList(cast(Sequence[nn.Module], members))
        self.register_buffer("table", weights.table(sizes), persistent=False)
        self.register_buffer("ranges", ranges, persistent=False)
        if trained > 1 and isinstance(self.first, AnswersDistributions):
            self.distribution = self._distribution

    @property
    def first(self) -> Model:
        """The member that the others are weighed against."""
        return self._models()[0]

    @property
    def reads(self) -> frozenset[Part]:
        """What any of its members looks at."""
        return frozenset().union(*(one.reads for one in self._models()))

    @property
    def reads_several_masks(self) -> bool:
        return all(map(reads_several_masks, self.trained_members()))

    def trained_members(self) -> list[Model]:
        return self._models()[: self.trained]

    def trained_alone(self) -> Iterator[tuple[str, Combination]]:
        """Each member that was trained, by its name, answering by itself what it can."""
        for name, member in zip(self.weights.members, self.trained_members(), strict=False):
            alone = Combination(self.sizes, [member], Weights((name,), {}), member.answers)
            yield name, alone.to(self.table.device)

    def observe(self, facts: FactTensors) -> None:
        """Passes the facts on to the members that answer from them."""
        for member in self._models():
            give_observed(member, facts)

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: what every member that answers from observed facts knows enough numbers of."""
        known = torch.ones_like(relation, dtype=torch.bool)
        for member in self._models():
            if Part.OBSERVED_FACTS in member.reads:
                known &= cast(Observer, member).predicts(relation)
        return known

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:  # noqa: ARG002
        """No phases: its members are trained already."""
        return []

    def read(self, batch: MaskedBatch) -> CombinedQuestion:
        """Every member reads the questions, each as it knows them."""
        read = tuple(member.read(_as_known(batch, member.sizes)) for member in self._models())
        return CombinedQuestion(read[0].encoded, batch.asked_relation(), position_of(batch.asked), read)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) the weighted sum of the members' scores; of numbers, (rows,)."""
        if not isinstance(question, CombinedQuestion):
            raise ValueError("this model answers questions it has read itself")
        task = Task.LINK
        if isinstance(candidates, Relations | ScaledNumber):
            task = Task.RELATION if isinstance(candidates, Relations) else Task.NUMBER
        weights = self.table[int(task), question.position, question.relation]  # (rows, members)
        counts = (weights != 0).any(0).tolist()
        total: Tensor | None = None
        silent = torch.zeros_like(weights[:, 0])
        for index, scores in self.each(question, candidates, counts):
            weight = weights[:, index]
            answered = question.members[index].answered()
            if answered is not None:
                silent = silent + torch.where(answered, 0.0, weight)
                weight = torch.where(answered, weight, 0.0)
            part = scores * (weight if scores.dim() == 1 else weight.unsqueeze(1))
            total = part if total is None else total + part
        if total is None:
            raise ValueError("no member answers these questions")
        return self._within(total / (1 - silent), question.relation) if task is Task.NUMBER else total

    def _distribution(self, question: EncodedQuestion) -> NumberDistribution:
        """What the trained members believe together, by their weights, moved to where the weighted sum of all lies."""
        answer = self.score(question, ScaledNumber())
        assert isinstance(question, CombinedQuestion)
        weights = self.table[int(Task.NUMBER), question.position, question.relation].clamp(min=0)
        beliefs = [
            (weights[:, index : index + 1] + SMALLEST_PART, member.distribution(question.members[index]))
            for index, member in enumerate(self.trained_members())
            if isinstance(member, AnswersDistributions)
        ]
        bins = beliefs[0][1].bins
        alike = [(weight, belief.probability) for weight, belief in beliefs if belief.bins == bins]
        total = sum(weight * one for weight, one in alike) / sum(weight for weight, _ in alike)
        together = NumberDistribution(bins, cast(Tensor, total))
        for _ in range(MOVES):
            together = together.moved(answer - together.mean())
        return together

    def each(
        self, question: CombinedQuestion, candidates: Candidates, wanted: Sequence[bool]
    ) -> Iterator[tuple[int, Tensor]]:
        """(index, scores) of the members that are wanted, counts as logarithms."""
        for index, member in enumerate(self._models()):
            if wanted[index]:
                scores = member.score(question.members[index], candidates)
                if isinstance(candidates, ScaledNumber):
                    scores = self._within(scores, question.relation)
                yield index, torch.log1p(scores) if getattr(member, "scores_are_counts", False) else scores

    def _within(self, numbers: Tensor, relation: Tensor) -> Tensor:
        return numbers if self.ranges is None else numbers.clamp(self.ranges[0, relation], self.ranges[1, relation])

    def _models(self) -> list[Model]:
        return cast(list[Model], list(self.members))


def _as_known(batch: MaskedBatch, sizes: Sizes) -> MaskedBatch:
    """The same questions for a member that has no ids for literals."""
    if not batch.sizes.literals or sizes.literals:
        return batch
    tail, value = (one.clamp(max=sizes.mask_entity) for one in (batch.tail_entity, batch.qualifier_entity))
    return batch.with_tensors(tail_entity=tail, qualifier_entity=value)


@dataclass(frozen=True, eq=False)
class TaskQuestion(EncodedQuestion):
    """What the copies made of the same questions, by task."""

    by_task: Mapping[Task, EncodedQuestion]

    def take(self, rows: Tensor) -> TaskQuestion:
        """The questions at these row numbers, (k,) int64."""
        taken = {task: one.take(rows) for task, one in self.by_task.items()}
        return TaskQuestion(self.encoded[rows], self.relation[rows], taken)


class TaskWeights(nn.Module):
    """A model like any other, made of a model for all tasks and of copies for some."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = ()

    def __init__(self, first: Model, others: Mapping[Task, Model]) -> None:
        """`first` answers all tasks but those of the `others`."""
        super().__init__()
        self.sizes, self.others = first.sizes, list(others)
        self.members = nn.ModuleList(cast(list[nn.Module], [first, *others.values()]))
        if isinstance(first, AnswersDistributions):
            self.distribution = self._distribution
        if isinstance(first, EmbedsEntities):
            self.entity_vectors = self._entity_vectors

    @property
    def first(self) -> Model:
        """The model that answers all tasks without weights of their own."""
        return cast(Model, self.members[0])

    @property
    def answers(self) -> frozenset[Capability]:
        """What any of the copies can be asked: they are alike."""
        return self.first.answers

    @property
    def reads(self) -> frozenset[Part]:
        """What any of them looks at."""
        return self.first.reads

    def observe(self, facts: FactTensors) -> None:
        """Passes the facts on to all copies; each encodes them when it is first asked."""
        for member in self.members:
            give_observed(cast(Model, member), facts)

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: whether enough numbers of these relations are known to say one."""
        return cast(Observer, self.of(Task.NUMBER)).predicts(relation)

    def each(self, change: Callable[[Model], Model]) -> TaskWeights:
        """The same made of changed copies."""
        first, *others = (change(cast(Model, one)) for one in self.members)
        return TaskWeights(first, dict(zip(self.others, others, strict=True))).eval()

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:  # noqa: ARG002
        """No phases: it is trained already."""
        return []

    def of(self, task: Task) -> Model:
        """The copy that answers a task."""
        return cast(Model, self.members[1 + self.others.index(task)]) if task in self.others else self.first

    def read(self, batch: MaskedBatch) -> TaskQuestion:
        """The questions as read by the copy of each task that is among them."""
        tasks = [Task(one) for one in torch.unique(batch.task()).tolist()]
        by_task: dict[Task, EncodedQuestion] = {}
        for task in tasks or list(Task):
            alike = [one for one in by_task if self.of(one) is self.of(task)]
            by_task[task] = by_task[alike[0]] if alike else self.of(task).read(batch)
        one = next(iter(by_task.values()))
        return TaskQuestion(one.encoded, one.relation, by_task)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) by the copy whose task looks for answers among such candidates."""
        task = Task.LINK
        if isinstance(candidates, Relations | ScaledNumber):
            task = Task.RELATION if isinstance(candidates, Relations) else Task.NUMBER
        return self.of(task).score(_read_for(question, task), candidates)

    def _distribution(self, question: EncodedQuestion) -> Any:
        """What the model believes of the numbers asked for."""
        return cast(Any, self.of(Task.NUMBER)).distribution(_read_for(question, Task.NUMBER))

    def _entity_vectors(self) -> Tensor:
        """(at least entities, width) those of the copy that answers links, which are about entities."""
        return cast(EmbedsEntities, self.of(Task.LINK)).entity_vectors()


def _read_for(question: EncodedQuestion, task: Task) -> EncodedQuestion:
    if not isinstance(question, TaskQuestion) or task not in question.by_task:
        raise ValueError("this model answers questions it has read itself, and what they ask for")
    return question.by_task[task]
