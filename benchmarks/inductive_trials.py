"""Additions to `hynt-inductive` that were tried and are no part of it, each made to the classes of this process.

`benchmarks/device.py` makes one before it trains: `ablation=smoothed:0.1`; what follows the colon is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.batches.message_plan import MessagePlan
from hynt.kernels.entity_softmax import LAST
from hynt.kernels.linear_maps import apply
from hynt.kernels.segment_sums import look_up
from hynt.models.combination import TaskWeights
from hynt.models.contract import Candidates, EncodedQuestion
from hynt.models.hynt_inductive import HyntInductive, InductiveQuestion, ObservedStates
from hynt.models.layers.message_passing import Drop, MessageLayer, Nodes, Parts, linear, norm
from hynt.objectives.number_distribution import NumberDistribution
from hynt.objectives.observed_and_targets import ObservedAndTargets, ObservedStep, TargetOutcome
from hynt.objectives.streams import Loss
from hynt.runs.opening import load_run


@dataclass
class Watched:
    """A model whose last step can be looked at."""

    model: Any
    step: ObservedStep | None = None
    outcome: TargetOutcome | None = None

    def read_step(self, step: ObservedStep) -> TargetOutcome:
        self.step, self.outcome = step, self.model.read_step(step)
        return self.outcome


Added = Callable[[Any, ObservedStep, TargetOutcome, Tensor], Tensor]
"""From the stream, a step, what the model makes of it and the mean losses of links, relations and numbers: what is
added to the loss.
"""


def _add_to_loss(made: Callable[[Any], Added]) -> None:
    plain = ObservedAndTargets.loss_for

    def loss_for(self: Any, shape: Any) -> Any:
        learn, added = plain(self, shape), made(self)

        def loss(model: Any, tensors: tuple[Tensor, ...]) -> Loss:
            watched = Watched(model)
            found = learn(watched, tensors)
            assert watched.step is not None
            assert watched.outcome is not None
            means = found.sums / found.counts.clamp(min=1)
            return found._replace(total=found.total + added(self, watched.step, watched.outcome, means))

        return loss

    ObservedAndTargets.loss_for = loss_for  # type: ignore[method-assign]


def _entity_scores(step: ObservedStep, outcome: TargetOutcome) -> Tensor:
    """(k, entities) float32; other true answers are left in."""
    scores = (outcome.entity @ outcome.entity_states.t()).float()
    return scores + torch.where(step.entities.seen, 0.0, LAST)


def smoothed(words: str) -> None:
    """A share of the target of links is spread over all entities."""
    share = float(words)

    def made(_: Any) -> Added:
        def added(_: Any, step: ObservedStep, outcome: TargetOutcome, means: Tensor) -> Tensor:
            scores, seen = _entity_scores(step, outcome), step.entities.seen.float()
            even = scores.logsumexp(1) - (scores * seen).sum(1) / seen.sum()
            return share * ((even * step.entities.weight).sum() - means[0])

        return added

    _add_to_loss(made)


def distilled(words: str) -> None:
    """Half of the losses of links and numbers compare with what kept runs, folders with commas between, believe of the
    same step, averaged.
    """
    folders, share = words.split(","), 0.5

    def made(stream: Any) -> Added:
        teachers = []
        for folder in folders:
            model = load_run(Path(folder), stream.facts.device).model
            tasks = (Task.LINK, Task.NUMBER)
            teachers.append([model.of(task) if isinstance(model, TaskWeights) else model for task in tasks])

        @torch.no_grad()
        def beliefs(step: ObservedStep) -> tuple[Tensor, Tensor]:
            entity, number = [], []
            for of_links, of_numbers in teachers:
                entity.append(_entity_scores(step, cast(Any, of_links).read_step(step)).softmax(1))
                number.append(cast(Any, of_numbers).read_step(step).number.float().softmax(1))
            return torch.stack(entity).mean(0), torch.stack(number).mean(0)

        def added(stream: Any, step: ObservedStep, outcome: TargetOutcome, means: Tensor) -> Tensor:
            entity, number = beliefs(step)
            links = -(entity * _entity_scores(step, outcome).log_softmax(1)).sum(1)
            numbers = -(number * outcome.number.float().log_softmax(1)).sum(1)
            asked = step.questions.targets.is_number[step.number_question].float()
            link = (links * step.entities.weight).sum() - means[0]
            of_numbers = (numbers * asked).sum() / asked.sum().clamp(min=1) - means[2]
            both: Tensor = link + stream.losses.number_weight * of_numbers
            return share * both

        return added

    _add_to_loss(made)


OTHER_SLOTS = 6
"""Of a fact's slots, how many the transformer over a question sees."""


class _Block(nn.Module):
    """A question attends to the slots of its fact, then a feed-forward net."""

    def __init__(self, dimension: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key_value = linear(dimension, dimension), linear(dimension, 2 * dimension)
        self.project = linear(dimension, dimension, 0.02)
        self.expand, self.contract = linear(dimension, feedforward, 1.4), linear(feedforward, dimension, 0.02)

    def forward(self, z: Tensor, tokens: Tensor, there: Tensor, drop: Drop) -> Tensor:
        """(n, d) float32 from questions (n, d), tokens (n, slots, d) and which of them are there, (n, slots)."""
        (n, slots, d), kind = tokens.shape, tokens.dtype
        query = apply(self.query, norm(z).to(kind)).view(n, self.heads, 1, -1)
        both = apply(self.key_value, tokens.reshape(n * slots, d)).view(n, slots, 2, self.heads, -1)
        key, value = both.permute(2, 0, 3, 1, 4).unbind(0)
        logits = (query.float() * key.float()).sum(-1) * (d // self.heads) ** -0.5
        share = torch.where(there.unsqueeze(1), logits, -1e4).softmax(-1)
        mixed = (share.unsqueeze(-1) * value.float()).sum(2).reshape(n, d).to(kind)
        z = z + drop.node.small(apply(self.project, mixed)).float()
        hidden = functional.gelu(apply(self.expand, norm(z).to(kind)))
        return z + drop.node.small(apply(self.contract, hidden)).float()


class AskingLayer(MessageLayer):
    """A last layer after which questions for values look at the slots of their facts one by one."""

    def __init__(self, dimension: int, heads: int, feedforward: int) -> None:
        super().__init__(dimension, heads, feedforward)
        self.entity_token = linear(dimension, 3 * dimension, bias=False)
        self.relation_token, self.number_token = linear(dimension, 3 * dimension), linear(dimension, 2 * dimension)
        self.blocks = nn.ModuleList(_Block(dimension, heads, feedforward) for _ in range(2))

    def forward(self, nodes: Nodes, normed: Nodes, entities: int, parts: Parts, drop: Drop) -> tuple[Nodes, Nodes]:
        after, after_normed = super().forward(nodes, normed, entities, parts, drop)
        if len(after.value) == entities:
            return after, after_normed
        [(plan, numbers)] = parts
        kind, d = normed.value.dtype, after.value.shape[1]
        number = torch.cat([numbers.encoded, numbers.bare])
        value = apply(self.entity_token, after_normed.value[:entities].to(kind)).view(-1, d)
        table = torch.cat([value, apply(self.number_token, number).view(-1, d)])
        relation = apply(self.relation_token, after_normed.relation.to(kind)).view(-1, d)
        pair = look_up(table, plan.value_rows) + look_up(relation, plan.relation_rows)
        z = after.value[entities:]
        at, there = _slots_beside(plan, entities, len(z))
        tokens = pair.float().index_select(0, at.flatten()).view(*at.shape, d).to(kind)
        for block in self.blocks:
            z = block(z, tokens, there, drop)
        made = torch.cat([after.value[:entities], z])
        return Nodes(made, after.relation), Nodes(norm(made).to(kind), after_normed.relation)


def _slots_beside(plan: MessagePlan, entities: int, questions: int) -> tuple[Tensor, Tensor]:
    """(questions, OTHER_SLOTS) int64 the slots of each question's fact; and bool: such a slot is there and is not the
    one that is asked for.
    """
    receiver = plan.to_values.row.long() - entities
    mine = (receiver >= 0) & (receiver < questions)
    slot = torch.zeros(questions + 1, dtype=torch.int64, device=receiver.device)
    slot.scatter_(0, torch.where(mine, receiver, questions), plan.message_slot.long())
    slot = slot[:questions]
    at = plan.slot_first.long()[slot].unsqueeze(1) + torch.arange(OTHER_SLOTS, device=slot.device)
    there = (at < plan.slot_stop.long()[slot].unsqueeze(1)) & (at != slot.unsqueeze(1))
    return torch.where(there, at, 0), there


def transformer_over_questions(_: str) -> None:
    """Two blocks of attention from a question to the slots of its fact, after all layers."""
    made = HyntInductive.__init__

    def with_asking(self: Any, sizes: Any, settings: Any, *more: Any) -> None:
        made(self, sizes, settings, *more)
        self.rounds[-1] = AskingLayer(settings.dimension, settings.heads, settings.feedforward)

    setattr(HyntInductive, "__init__", with_asking)  # noqa: B010


@dataclass(frozen=True, eq=False)
class OfParts(InductiveQuestion):
    """A question that was asked of several parts of the graph."""

    each: tuple[InductiveQuestion, ...] = ()

    def take(self, rows: Tensor) -> OfParts:
        taken = tuple(one.take(rows) for one in self.each)
        return OfParts(taken[0].encoded, taken[0].relation, self.states, taken)


def answers_from_parts(words: str) -> None:
    """Each answer is the mean of those from the whole graph and from so many random parts of it: `8:0.85`."""
    count, share = int(words.split(":")[0]), float(words.split(":")[1])
    read, score, distribution = HyntInductive.read, HyntInductive.score, HyntInductive.distribution
    starts = HyntInductive._starts

    def states(self: Any) -> list[ObservedStates]:
        facts: FactTensors = self._facts
        kept = getattr(self, "of_parts", None)
        if kept is None or kept[0] is not facts:
            generator, found = torch.Generator().manual_seed(0), [self.states()]
            for _ in range(count):
                rows = (torch.rand(len(facts), generator=generator) < share).nonzero().squeeze(1).to(facts.device)
                self._starts = lambda degrees, _: starts(self, degrees, share)
                found.append(self.encode(facts, rows))
                del self._starts
            kept = self.of_parts = (facts, found)
        return cast(list[ObservedStates], kept[1])

    def asked(self: Any, batch: MaskedBatch) -> InductiveQuestion:
        if self.training:
            return read(self, batch)
        each = tuple(self.read_beside(batch, one) for one in states(self))
        return OfParts(each[0].encoded, each[0].relation, each[0].states, each)

    def scored(self: Any, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        each = question.each if isinstance(question, OfParts) else (question,)
        return torch.stack([score(self, one, candidates) for one in each]).mean(0)

    def believed(self: Any, question: EncodedQuestion) -> NumberDistribution:
        each = question.each if isinstance(question, OfParts) else (question,)
        made = [distribution(self, one) for one in each]
        return made[0]._replace(probability=torch.stack([one.probability for one in made]).mean(0))

    setattr(HyntInductive, "read", asked)  # noqa: B010
    setattr(HyntInductive, "score", scored)  # noqa: B010
    setattr(HyntInductive, "distribution", believed)  # noqa: B010


TRIALS: dict[str, Callable[[str], None]] = {
    "smoothed": smoothed,
    "distilled": distilled,
    "question-transformer": transformer_over_questions,
    "from-parts": answers_from_parts,
}
