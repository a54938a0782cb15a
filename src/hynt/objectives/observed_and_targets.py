"""The stream "observed and target facts": each step a fresh part of the facts is observed and others are asked about.

The split is drawn among facts with entities and with numbers as tails separately, so shapes never change. Every slot
and every relation of a target fact is asked for. A part of the loss is the mean over its own questions. Of a question's
answers only the target fact's own counts: other entities that training facts give for it take no part.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.epoch_plan import derived_seed, generator_for
from hynt.batches.fact_slots import QUALIFIER_ROLE, Links, NumberRows, Slots
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.message_plan import AskedNodes, MessagePlan, plan_training
from hynt.batches.neighbour_values import DegreeLists, Degrees, NeighbourLists, marked
from hynt.errors import DataError
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import ENTITY_KIND
from hynt.graph.known_answers import KnownAnswers
from hynt.kernels.entity_softmax import EntityQuestions, entity_loss
from hynt.objectives.drawn_beside import DrawnBeside, ReadNumbers, Room
from hynt.objectives.losses import LossSettings
from hynt.objectives.number_distribution import Bins
from hynt.objectives.streams import ItemStream, Loss, LossFunction, StepItems


class Split(NamedTuple):
    """How many facts of each kind a step observes, and how many it asks about."""

    observed_entities: int  # facts with an entity as tail that are observed
    observed_numbers: int
    target_entities: int
    target_numbers: int

    @classmethod
    def of(cls, entities: int, numbers: int, share: float, targets: int) -> Split:
        """From how many facts there are of each kind: a `share` observed, but at least one fact, and up to `targets`
        others asked about.
        """
        if entities + numbers < 2:
            raise DataError(
                "one fact cannot be observed and asked about at once.", advice="Train on two facts or more."
            )
        observed = int(share * entities), int(share * numbers)
        if not any(observed):
            observed = (1, 0) if entities >= numbers else (0, 1)
        left = entities - observed[0], numbers - observed[1]
        targets = min(targets, sum(left))
        asked = min(round(targets * entities / max(entities + numbers, 1)), left[0])
        return cls(*observed, asked, min(targets - asked, left[1]))

    @property
    def observed(self) -> int:
        """How many facts are observed."""
        return self.observed_entities + self.observed_numbers

    @property
    def targets(self) -> int:
        """How many facts are asked about."""
        return self.target_entities + self.target_numbers


class ObservedStep(NamedTuple):
    """All that a step lets a model read, and which questions it asks."""

    plan: MessagePlan
    questions: AskedNodes
    degrees: Degrees
    share: float  # how much of the facts is observed
    numbers: ReadNumbers
    entity_question: Tensor  # (k,) int64 which value questions ask for an entity, and filler
    number_question: Tensor  # (m,) int64
    number_asked: Links  # those questions → the relations that they ask for a number of
    nearby: Tensor  # (m, ·) float32 what observed facts say near the numbers that these ask for; 0 for filler
    entities: EntityQuestions  # what `entity_question` asks for: weights sum to 1, 0 for filler and unseen answers
    fits: Tensor  # () bool: there was room for all qualifiers


class TargetOutcome(NamedTuple):
    """What a model makes of a step."""

    entity: Tensor  # (k, d) questions, scaled so that products with states are scores
    entity_states: Tensor  # (entities, d)
    relation: Tensor  # (r, d) likewise
    relation_states: Tensor  # (relations, d)
    number: Tensor  # (m, bins) logits


class StepReader(Protocol):
    """A model that can be trained so."""

    def read_step(self, step: ObservedStep) -> TargetOutcome:
        """Encodes the observed facts and the questions of the targets."""
        ...


class DrawnEpoch:
    """Steps of an epoch, each drawn by itself from (seed, epoch, step)."""

    def __init__(self, stream: ObservedAndTargets, seed: int, epoch: int) -> None:
        self._stream, self._seed, self._epoch = stream, seed, epoch

    def __len__(self) -> int:
        return self._stream.epoch_steps or -(-self._stream.item_count // self._stream.split.targets)

    def items(self, index: int) -> StepItems:
        """The numbers of the facts observed, with entities and with numbers as tails, and of those asked about; on a
        GPU the whole step, packed.
        """
        stream, key = self._stream, (self._seed, self._epoch, index, "observed and targets")
        if stream.beside is not None:
            return StepItems(stream.split, stream.beside.drawn(derived_seed(*key)))
        return StepItems(stream.split, stream.drawn(generator_for(*key)))


class ObservedAndTargets(ItemStream):
    """Training items of models that read the graph."""

    name: ClassVar[str] = "observed and target facts"
    parts: ClassVar[tuple[str, ...]] = ("link", "relation", "number")
    draws_steps: ClassVar[bool] = True
    saves_memory: ClassVar[str] = "model.observed_share=0.1"

    def __init__(
        self,
        facts: FactTensors,
        targets: int,
        share: float,
        features: Tensor,
        bins: Bins,
        losses: LossSettings,
        epoch_steps: int | None = None,
        bare_numbers: bool = False,
    ) -> None:
        """`targets` facts are asked about in a step; `features` (numbers, ·) are those of `NumberRows.of(facts)`. An
        epoch has `epoch_steps`; None: as many as ask about each fact once on average. With `bare_numbers` a question
        for a relation reads the number beside it, without that relation.
        """
        self.epoch_steps, self.bare_numbers = epoch_steps, bare_numbers
        self.facts, self.observed_share, self.features, self.bins, self.losses = facts, share, features, bins, losses
        self.item_count = len(facts)
        self.numbers = NumberRows.of(facts)
        every = torch.arange(len(facts))
        has_number = facts.tail_is_number.cpu()
        self._kinds = (every[~has_number], every[has_number])
        self.split = Split.of(len(self._kinds[0]), len(self._kinds[1]), share, targets)
        self.known = _KnownEntities.of(facts)
        self.neighbours, self.degrees = NeighbourLists.of(facts), DegreeLists.of(facts)
        running = functional.pad(facts.qualifier_is_number[:-1].cumsum(0), (1, 0))
        self.number_counts = running[facts.offsets[1:]] - running[facts.offsets[:-1]]  # (facts,) of qualifiers
        around = (self.neighbours.start[1:] - self.neighbours.start[:-1])[facts.head]
        self.neighbour_counts = around * (self.number_counts + facts.tail_is_number)  # (facts,) read when asked about
        self.beside = None if facts.device.type == "cpu" else DrawnBeside(self)

    def epoch(self, seed: int, epoch: int) -> DrawnEpoch:
        """Steps that are drawn one by one."""
        return DrawnEpoch(self, seed, epoch)

    def drawn(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Facts observed, with entities and with numbers as tails, and facts asked about, ascending: (n,) int64."""
        observed, asked = [], []
        sizes = ((self.split[0], self.split[2]), (self.split[1], self.split[3]))
        for rows, (seen, wanted) in zip(self._kinds, sizes, strict=True):
            shuffled = rows[torch.randperm(len(rows), generator=generator)[: seen + wanted]]
            observed.append(shuffled[:seen].sort().values.to(self.facts.device))
            asked.append(shuffled[seen:].sort().values)
        return observed[0], observed[1], torch.cat(asked).to(self.facts.device)

    def is_common(self, shape: Hashable) -> bool:  # noqa: ARG002
        """Lists as long as the data says cannot be compiled."""
        return False

    def loss_for(self, shape: Hashable) -> LossFunction:  # noqa: ARG002
        """Encodes what is observed, asks, and compares with the targets."""

        def loss(model: StepReader, tensors: tuple[Tensor, ...]) -> Loss:
            if self.beside is None:
                with_entity, with_number, targets = tensors
                step = self.step((with_entity, with_number), targets)
            else:
                step = self.beside.step(tensors)
            outcome = model.read_step(step)
            entity = entity_loss(outcome.entity, outcome.entity_states, step.entities)
            each = [self._relations(step, outcome), self._numbers(step, outcome)]
            counts = [(step.entities.weight > 0).sum(), *(weight.sum() for _, weight in each)]
            totals = [entity * counts[0], *((one * weight).sum() for one, weight in each)]
            entity, relation, number = (total / count.clamp(min=1) for total, count in zip(totals, counts, strict=True))
            joint = entity + self.losses.relation_weight * relation + self.losses.number_weight * number
            joint = torch.where(step.fits, joint, math.nan)
            return Loss(joint, torch.stack(totals), torch.stack(counts))

        return loss

    def step(
        self,
        observed: tuple[Tensor, Tensor],
        targets: Tensor,
        room: Room | None = None,
        read: ReadNumbers | None = None,
    ) -> ObservedStep:
        """The step that observes these facts, with entities and with numbers as tails, and asks about `targets`.

        With `room` and all numbers to `read` no shape depends on the draw, as a captured step needs it; without, there
        is as much as this draw needs.
        """
        numbers, together = self.numbers, torch.cat(observed)
        needed = self._needed(together, targets)
        if room is None or read is None:
            room = Room(*(int(one) for one in needed))
            numbers, chosen = numbers.of_facts(self.facts, torch.cat([together, targets]))
            read = ReadNumbers.of(numbers, self.features[chosen], room.relation_nodes(self.facts, len(targets)))
        bare = room.numbers if self.bare_numbers else 0
        plan, questions = plan_training(self.facts, numbers, observed, targets, room.observed, room.asked, bare)
        asked, is_seen = questions.targets, marked(self.facts, together)
        degrees = self.degrees.seen(is_seen)
        entity_question = _first(asked.there & asked.is_number.logical_not(), room.entities)
        number_question = _first(asked.is_number, room.numbers)
        return ObservedStep(
            plan,
            questions,
            degrees,
            self.observed_share,
            read,
            entity_question,
            number_question,
            Links.of(asked.relation[number_question], plan.sizes.relation_nodes),
            self._nearby(asked, number_question, is_seen, targets, room.neighbours),
            self._asked_entities(questions, entity_question, degrees.seen, targets),
            torch.stack([one <= place for one, place in zip(needed, room, strict=True)]).all(),
        )

    def _nearby(self, asked: Slots, at: Tensor, is_seen: Tensor, targets: Tensor, places: int | None) -> Tensor:
        """(m, ·) what the facts that `is_seen` (facts,) bool marks say near the numbers that questions `at` (m,) ask
        for, from so many places for neighbours; None: as many as there are.
        """
        facts = self.facts
        fact, nobody = targets[asked.fact[at]], facts.sizes.entities
        asks = asked.is_number[at]
        beside = asks & (asked.role[at] == QUALIFIER_ROLE) & facts.tail_is_number[fact].logical_not()
        return self.neighbours.seen(is_seen).features(
            torch.where(asks, facts.head[fact].long(), nobody),
            torch.where(beside, facts.tail_entity[fact].long(), nobody),
            asked.relation[at].long(),
            places,
        )

    def _needed(self, observed: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """How much room these facts need, as `Room` has it, () int64 each."""
        begin, end = self.facts.offsets[:-1], self.facts.offsets[1:]
        asked = (end[targets] - begin[targets]).sum()
        numbers = self.facts.tail_is_number[targets].sum() + self.number_counts[targets].sum()
        seen, around = (end[observed] - begin[observed]).sum(), self.neighbour_counts[targets].sum()
        return seen, asked, 2 * len(targets) + asked - numbers, numbers, around

    def _asked_entities(self, questions: AskedNodes, at: Tensor, seen: Tensor, targets: Tensor) -> EntityQuestions:
        """The questions at `at` (k,): an answer that no observed fact names cannot be found, and is not asked for."""
        slots = questions.targets
        answer = slots.entity[at].long()
        asked = slots.there[at] & slots.is_number[at].logical_not() & seen[answer.clamp(max=len(seen) - 1)]
        component = _component(self.facts, targets[slots.fact[at]], at - slots.first[at])
        component = torch.where(asked, component, 0)
        return EntityQuestions(
            torch.where(asked, answer, 0),
            asked.float() / asked.sum().clamp(min=1),
            seen,
            self.known.start[component],
            torch.where(asked, self.known.known[component], 0),
            self.known.answers,
        )

    def _relations(self, step: ObservedStep, outcome: TargetOutcome) -> tuple[Tensor, Tensor]:
        scores = (outcome.relation @ outcome.relation_states.t()).float()
        losses = functional.cross_entropy(scores, step.questions.relation.long(), reduction="none")
        return losses, step.questions.relation_asked.float()

    def _numbers(self, step: ObservedStep, outcome: TargetOutcome) -> tuple[Tensor, Tensor]:
        slots, at = step.questions.targets, step.number_question
        losses = self.bins.loss(outcome.number, step.numbers.value[slots.number[at].long()])
        return losses, slots.is_number[at].float()


class _KnownEntities(NamedTuple):
    """The entities that some facts give as answers to the questions they themselves ask."""

    start: Tensor  # (components,) int64 where the answers of each component's question begin
    known: Tensor  # (components,) int64 how many there are; 0 where no entity stands
    answers: Tensor  # (answers,) int64

    @classmethod
    def of(cls, facts: FactTensors) -> _KnownEntities:
        table, is_number = facts.to_table(), facts.relation_is_number[:-1].cpu().numpy()
        index = KnownAnswers.build({"train": table}, is_number).of_kind(ENTITY_KIND)
        start, count = index.spans(question_keys(table, is_number))
        columns = (torch.as_tensor(one.astype("int64")) for one in (start, count, index.known.answers))
        return cls(*(one.to(facts.device) for one in columns))


def _component(facts: FactTensors, row: Tensor, slot: Tensor) -> Tensor:
    """(k,) the number among all components of slot `slot` (k,) of the facts `row` (k,)."""
    return 3 * row + 2 * facts.offsets[row] + 2 * slot.clamp(min=0)


def _first(marked: Tensor, count: int) -> Tensor:
    """(count,) int64: where marks are, in order, and then other places."""
    return torch.sort(marked.logical_not().to(torch.uint8), stable=True).indices[:count]
