"""`hynt-inductive`: a model that reads the graph instead of memorising its entities.

    E⁰ = e₀ + W·0.3·log(1 + degrees)     g = LN(Σ of the other slots of the fact) + b_role, f = g + FFN(LN g)
    E ← E + attention over {E, messages f}, E ← E + FFN(E), layer by layer; R likewise; score = LN(z)·LN(E) / √d

No parameter belongs to an entity or a relation. Each starts from a shared vector and its degrees, and in every layer
(`layers/message_passing.py`) attends to itself and to the messages of the observed facts it occurs in. The message to a
slot of a fact is made from the fact's other slots, never from the slot itself. A question starts from a shared vector
too. It goes through the same weights and receives a single message, the one to the slot it asks for; nothing reads it.
So entities and relations are encoded once and kept, and any question can be asked of what was kept.

Numbers are read as features of value, logarithm and rank within their relation, and predicted as distributions. Such
features would give the relation away; where the relation is asked for, a number is read without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.func import functional_call

from hynt.batches.fact_slots import Links, NumberRows
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.batches.message_plan import plan_questions
from hynt.batches.neighbour_values import FEATURES as NEARBY_FEATURES
from hynt.batches.neighbour_values import Degrees, NeighbourLists, ObservedNeighbours, degrees_of
from hynt.config.declarations import Count, Range, Rate, check_heads
from hynt.kernels.device import keep_freed_memory
from hynt.kernels.dropout import Dropout
from hynt.kernels.entity_softmax import LAST
from hynt.kernels.linear_maps import apply, lowered, norm_in, stretched
from hynt.kernels.segment_sums import look_up
from hynt.models.contract import (
    EVERYWHERE,
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Part,
    Relations,
    ScaledNumber,
)
from hynt.models.layers.message_passing import (
    FEATURES,
    PLAIN_FEATURES,
    Drop,
    FactParts,
    MessageLayer,
    Nodes,
    NumberFeatures,
    Numbers,
    linear,
    norm,
    plain_features,
)
from hynt.objectives.number_distribution import Bins, NumberDistribution
from hynt.objectives.observed_and_targets import ObservedAndTargets, ObservedStep, TargetOutcome
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

DEGREE_SCALE = 0.3

FACTS_AT_ONCE, FACTS_AT_ONCE_ON_GPU = 2**17, 2**20
"""How many facts are observed at once when a graph is encoded: this bounds memory, whatever the graph's size."""

FACTS_IN_CACHE, MOST_PARTS = 2**12, 64
"""A CPU observes fewer, so that their messages mostly stay in its cache. What entities receive is summed once per part,
so there are at most this many parts, and none has fewer facts than the graph has entities.
"""

KEPT_PARTS = 4
"""How many times as many facts are prepared once for all layers; the rest is prepared again for each layer."""


@dataclass(frozen=True)
class HyntInductiveSettings:
    """Defaults are those of the runs on HN-YG."""

    dimension: Count = 128
    layers: Count = 8
    heads: Count = 4
    feedforward: Count = 256
    dropout: Rate = 0.2  # on what attention and feed-forward net add to a node
    message_dropout: Rate = 0.1  # on messages and on the hidden units of their net
    bins: Annotated[int, Range(2)] = 101
    bin_margin: Annotated[float, Range(0)] = 0.0  # how far bins reach beyond the scale, as a share of it
    observed_share: Annotated[float, Range(0, 1, above_minimum=True, below_maximum=True)] = 0.7  # of facts, in a step
    nearby_values: bool = True  # a question for a number is given its relation's values at the head and around it
    head_reads_relation: bool = True  # the number head reads the state of the relation as well as that of the question
    plain_numbers: Literal["none", "asked", "all"] = "none"  # which numbers are also read in the unit of the graph

    def __post_init__(self) -> None:
        check_heads(self.dimension, self.heads)


class ObservedStates(NamedTuple):
    """A graph as the model knows it: the states that went into each layer, and those that came out of the last."""

    layers: tuple[Nodes, ...]  # layers + 1 of them, each of (entities, d) and (relations, d)
    seen: Tensor  # (entities,) bool: some observed fact names it
    nearby: ObservedNeighbours  # who has which numbers


@dataclass(frozen=True, eq=False)
class InductiveQuestion(EncodedQuestion):
    """A question, and the graph it was asked of."""

    states: ObservedStates

    def take(self, rows: Tensor) -> InductiveQuestion:
        """The questions at these row numbers, (k,) int64."""
        return replace(self, encoded=self.encoded[rows], relation=self.relation[rows])


class HyntInductive(nn.Module):
    """Entities and relations are what the observed facts say of them."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (ObservedAndTargets,)
    reads: ClassVar[frozenset[Part]] = frozenset({Part.QUALIFIERS, Part.NUMBERS, Part.OBSERVED_FACTS})
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE

    def __init__(
        self, sizes: Sizes, settings: HyntInductiveSettings, features: NumberFeatures, facts: FactTensors
    ) -> None:
        """`facts` are observed until `observe` is called with others."""
        super().__init__()
        self.sizes, self.settings, self.features = sizes, settings, features
        self.bins = Bins(settings.bins, settings.bin_margin)
        d = settings.dimension
        self.entity_start, self.relation_start = _vector(d), _vector(d)  # e₀, r₀
        self.ask_entity, self.ask_number, self.ask_relation = _vector(d), _vector(d), _vector(d)
        self.unknown_number = _vector(d)  # x_hid
        self.entity_degree, self.relation_degree = nn.Parameter(torch.zeros(d, 3)), nn.Parameter(torch.zeros(d, 3))
        self.number_in, self.number_out = linear(FEATURES, 2 * d), linear(2 * d, d)
        self.reads_plain = settings.plain_numbers != "none"
        self.plain_in = linear(PLAIN_FEATURES, 2 * d) if self.reads_plain else None
        self.plain_out = linear(2 * d, d) if self.reads_plain else None
        self.rounds = nn.ModuleList(
            MessageLayer(d, settings.heads, settings.feedforward) for _ in range(settings.layers)
        )
        self.entity_norm, self.relation_norm, self.number_norm = (nn.LayerNorm(d) for _ in range(3))
        self.head_in, self.head_out = linear(d, 2 * d, 1.4), linear(2 * d, settings.bins, 0.1)
        self.head_relation = linear(d, 2 * d, 0.5, bias=False) if settings.head_reads_relation else None
        self.nearby = nn.Parameter(torch.zeros(d, NEARBY_FEATURES)) if settings.nearby_values else None
        self.observe(facts)
        self.make_states: Callable[[HyntInductive, FactTensors], ObservedStates] = HyntInductive.encode
        """How states that are not in memory are made; a run may look for them on disk first."""
        self._kept: WeakKeyDictionary[FactTensors, tuple[list[int], ObservedStates]] = WeakKeyDictionary()

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: HyntInductiveSettings) -> HyntInductive:
        """A new model that observes the training facts, among whose numbers it also ranks others."""
        numbers = NumberRows.of(train)
        return cls(sizes, settings, NumberFeatures(sizes.relations, numbers.relation, numbers.value), train)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Each step observes some of the facts and asks about others; the batch size counts the latter."""
        numbers = NumberRows.of(train)
        features = self._features(numbers.relation, numbers.value, numbers.plain)
        share, epoch_steps = self.settings.observed_share, settings.epoch_steps
        stream = ObservedAndTargets(
            train, settings.batch_size, share, features, self.bins, settings.losses, epoch_steps, self.reads_plain
        )
        return [Phase(stream, trainable(self), settings.epochs)]

    # ------------------------------------------------------------------ reading the graph

    def observe(self, facts: FactTensors) -> None:
        """From now on, questions are asked of these facts. They are encoded when first needed; the states are kept as
        long as `facts` are.
        """
        self._facts, self._has_numbers = facts, bool(facts.relation_is_number.any())

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: whether numbers of a relation can be predicted. One without ranks has no scale either."""
        return self.features.known(relation)

    def states(self) -> ObservedStates:
        """The observed facts, encoded once for as long as no weight changes."""
        return self.prepare(self._facts)

    def prepare(self, facts: FactTensors) -> ObservedStates:
        """The states that questions about these facts need. One thread may prepare them while another asks."""
        state = [tensor._version for tensor in self.parameters()] + [self.entity_start.data_ptr()]
        kept = self._kept.get(facts)
        if self.training or kept is None or kept[0] != state:
            made = self.encode(facts) if self.training else self.make_states(self, facts)
            kept = self._kept[facts] = (state, made)
        return kept[1]

    def entity_vectors(self) -> Tensor:
        """(entities, d) the final state of each entity, as answers are compared with it."""
        states: Tensor = self.entity_norm(self.states().layers[-1].value)
        return states

    def train(self, mode: bool = True) -> HyntInductive:
        """Weights are about to change or have changed, perhaps unseen by Python: nothing made from them is kept."""
        if mode or self.training:
            self._kept.clear()
        return super().train(mode)

    @torch.no_grad()
    def encode(self, facts: FactTensors, rows: Tensor | None = None, at_once: int | None = None) -> ObservedStates:
        """The states of a graph from its facts, or from those at `rows` (k,) int64: `at_once` facts at a time, by
        default as many as suit the device.
        """
        at_once = at_once or (FACTS_AT_ONCE_ON_GPU if facts.device.type == "cuda" else FACTS_AT_ONCE)
        rows = torch.arange(len(facts), device=facts.device) if rows is None else rows
        part = at_once
        if facts.device.type == "cpu":
            keep_freed_memory()
            part = min(at_once, max(FACTS_IN_CACHE, facts.sizes.entities, len(rows) // MOST_PARTS))
        parts = FactParts(self.read_numbers, facts, torch.split(rows, part), KEPT_PARTS * at_once // part)
        degrees = degrees_of(facts, rows)
        nodes, drop = Nodes(*self._starts(degrees, 1.0)), self._drop(facts.device)
        layers, normed = [nodes], nodes.normed(self._precision(facts.device))
        for layer in self.rounds:
            nodes, normed = layer(nodes, normed, facts.sizes.entities, parts, drop)
            layers.append(nodes)
        return _with_lists(tuple(layers), facts, rows, degrees)

    def states_from(self, facts: FactTensors, layers: tuple[Nodes, ...]) -> ObservedStates:
        """The states of these facts, from layers that were computed before."""
        rows = torch.arange(len(facts), device=facts.device)
        return _with_lists(layers, facts, rows, degrees_of(facts, rows))

    def _starts(self, degrees: Degrees, share: float) -> tuple[Tensor, Tensor]:
        """E⁰ (entities, d) and R⁰ (relations, d); `share` is how much of the graph is observed."""
        entity, relation = (DEGREE_SCALE * torch.log1p(counts / share) for counts in degrees)
        return (
            self.entity_start + (entity @ self.entity_degree.t()).float(),
            self.relation_start + (relation @ self.relation_degree.t()).float(),
        )

    # ------------------------------------------------------------------ reading numbers

    def read_numbers(self, relation: Tensor, value: Tensor, plain: Tensor, nodes: Links, bare: bool = False) -> Numbers:
        """X of the numbers `value` (n,) of `relation` (n,), for layers in which these are the relation `nodes`; with
        `bare` also without it.
        """
        features = self._features(relation, value, plain)
        none = features if bare else features[:0]
        return self._read_numbers(features, nodes, none, self.features.known(relation))

    def _features(self, relation: Tensor, value: Tensor, plain: Tensor) -> Tensor:
        """(n, ·) of numbers `value` (n,) on the scale of `relation` (n,), which are `plain` (n,) in the graph."""
        scaled: Tensor = self.features(relation, value)
        return torch.cat([scaled, plain_features(plain)], 1) if self.reads_plain else scaled

    def _read_numbers(
        self, features: Tensor, nodes: Links, bare: Tensor, known: Tensor | None = None, kind: torch.dtype | None = None
    ) -> Numbers:
        """X of numbers with these `features` (numbers, ·), and of those with the features `bare` (k, ·) without their
        relation.

        Where `known` (numbers,) is false, no other values of the relation are known: the number is read without it.
        """
        kind = kind or self._precision(features.device)
        hidden = functional.gelu(apply(self.number_in, features[:, :FEATURES].to(kind)))
        encoded = apply(self.number_out, hidden)
        if self.settings.plain_numbers == "all":
            encoded = encoded + self._read_plain(features, kind)
        encoded = norm_in(encoded, kind)
        if known is not None:
            encoded = torch.where(known.unsqueeze(1), encoded, self._read_bare(features, kind))
        just_a_number = norm(self.unknown_number).to(kind).unsqueeze(0)
        rows = [self._read_bare(bare, kind), just_a_number] if self.reads_plain and len(bare) else [just_a_number]
        return Numbers(encoded, nodes, torch.cat(rows))

    def _read_bare(self, features: Tensor, kind: torch.dtype) -> Tensor:
        """(n, d) or (1, d) what stands for numbers without their relation."""
        read = self._read_plain(features, kind) if self.reads_plain else self.unknown_number.unsqueeze(0)
        return norm_in(read, kind)

    def _read_plain(self, features: Tensor, kind: torch.dtype) -> Tensor:
        assert self.plain_in is not None
        assert self.plain_out is not None
        return apply(self.plain_out, functional.gelu(apply(self.plain_in, features[:, FEATURES:].to(kind))))

    # ------------------------------------------------------------------ how it computes

    def _drop(self, device: torch.device) -> Drop:
        """Dropout for a pass; none outside training."""
        settings, uses = self.settings, len(self.rounds)
        rates = (settings.dropout, settings.message_dropout) if self.training else (0.0, 0.0)
        return Drop(Dropout(rates[0], 4 * uses, device), Dropout(rates[1], 2 * uses, device))

    def _precision(self, device: torch.device) -> torch.dtype:
        """Of matrix products and messages; states are float32 always."""
        on = torch.is_autocast_enabled(device.type)
        return torch.get_autocast_dtype(device.type) if on else torch.float32

    # ------------------------------------------------------------------ reading questions

    def read(self, batch: MaskedBatch) -> InductiveQuestion:
        """The state of each row's question after all layers, given the observed facts."""
        return self.read_beside(batch, self.states())

    def read_beside(self, batch: MaskedBatch, states: ObservedStates) -> InductiveQuestion:
        """The same, given these states."""
        asked = plan_questions(batch, self.reads_plain, self._has_numbers)
        kind = self._precision(batch.head.device)
        entities, relations = len(asked.entity), len(asked.relation)
        # The layers read numbers by the plan's own relations.
        place = torch.searchsorted(asked.relation, asked.number_relation).clamp(max=relations - 1)
        number = asked.number_relation, asked.number_value, asked.number_plain
        numbers = self.read_numbers(*number, Links.of(place, relations + len(batch)), self.reads_plain)
        value = torch.where(asked.asks_number.unsqueeze(1), self.ask_number, self.ask_entity)
        if self.nearby is not None:
            value = value + self._nearby(self._values_near(batch, asked.asks_number, states.nearby))
        relation = self.ask_relation.expand(len(batch), -1)
        drop = self._drop(batch.head.device)
        for layer, before in zip(self.rounds, states.layers, strict=False):
            nodes = Nodes(
                torch.cat([before.value[asked.entity], value]), torch.cat([before.relation[asked.relation], relation])
            )
            after, _ = layer(nodes, nodes.normed(kind), entities, [(asked.plan, numbers)], drop)
            value, relation = after.value[entities:], after.relation[relations:]
        encoded = torch.where(asked.asks_relation.unsqueeze(1), relation, value)
        # Scoring needs the last states alone, so a question holds no more.
        return InductiveQuestion(encoded, batch.asked_relation(), states._replace(layers=states.layers[-1:]))

    def _values_near(self, batch: MaskedBatch, asks_number: Tensor, nearby: ObservedNeighbours) -> Tensor:
        """(rows, ·) the values near the numbers asked for; zeros for other questions."""
        nobody = batch.sizes.mask_entity
        tail = torch.where(asks_number & batch.asks_qualifier & ~batch.tail_is_number, batch.tail_entity, nobody)
        return nearby.features(torch.where(asks_number, batch.head, nobody), tail, batch.asked_relation())

    def _nearby(self, features: Tensor) -> Tensor:
        """(n, d) what these features add to the questions they belong to."""
        assert self.nearby is not None
        return (features @ self.nearby.t()).float()

    def read_step(self, step: ObservedStep) -> TargetOutcome:
        """A training step, in which observed facts and questions go through the layers together."""
        device = step.degrees.entity.device
        kind = self._precision(device)
        with torch.autocast(device.type, enabled=False):  # each product says its precision
            return self._read_step(step, kind, self._drop(device))

    def _read_step(self, step: ObservedStep, kind: torch.dtype, drop: Drop) -> TargetOutcome:
        asked, (entity, relation) = step.questions.targets, self._starts(step.degrees, step.share)
        entities, relations = len(entity), len(relation)
        value = torch.where(asked.is_number.unsqueeze(1), self.ask_number, self.ask_entity)
        if self.nearby is not None:  # filler among these questions has no features, so nothing is added to it
            value = value.index_add(0, step.number_question, self._nearby(step.nearby))
        wanted = self.ask_relation.expand(len(step.questions.relation), -1)
        nodes = Nodes(torch.cat([entity, value]), torch.cat([relation, wanted]))
        bare = step.numbers.features
        if self.reads_plain:
            bare = bare.index_select(0, asked.number.index_select(0, step.number_question))
        numbers = self._read_numbers(step.numbers.features, step.numbers.relation, bare, kind=kind)
        normed = nodes.normed(kind)
        for layer, weights in zip(self.rounds, lowered(self.rounds, kind), strict=True):
            nodes, normed = functional_call(layer, weights, (nodes, normed, entities, [(step.plan, numbers)], drop))
        scale = 1 / math.sqrt(self.settings.dimension)
        return TargetOutcome(
            stretched(normed.value.index_select(0, entities + step.entity_question), self.entity_norm, scale),
            stretched(normed.value[:entities], self.entity_norm),
            stretched(normed.relation[relations:], self.relation_norm, scale),
            stretched(normed.relation[:relations], self.relation_norm),
            self._number_logits(
                nodes.value.index_select(0, entities + step.number_question), look_up(nodes.relation, step.number_asked)
            ),
        )

    # ------------------------------------------------------------------ scoring

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Products with the states of entities or relations, or the mean of the number's distribution."""
        observed = _states_of(question)
        last, seen = observed.layers[-1], observed.seen
        match candidates:
            case Entities():
                return self._products(question.encoded, last.value, self.entity_norm, _unseen(seen))
            case EntityRange(start, end):
                states, added = last.value[start:end], _unseen(seen[start:end])
                return self._products(question.encoded, states, self.entity_norm, added)
            case EntityIds(ids) if ids.dim() == 1:
                return self._products(question.encoded, last.value[ids], self.entity_norm, _unseen(seen[ids]))
            case EntityIds(ids):
                asked = self.entity_norm(question.encoded) / math.sqrt(self.settings.dimension)
                products: Tensor = (self.entity_norm(last.value[ids]) @ asked.unsqueeze(2)).squeeze(2)
                return products + _unseen(seen[ids])
            case Relations():
                nothing = last.relation.new_zeros(len(last.relation))
                return self._products(question.encoded, last.relation, self.relation_norm, nothing)
            case ScaledNumber():
                return self.distribution(question).mean()
            case _:
                raise ValueError("this model scores entities, relations and numbers, not literals")

    def distribution(self, question: EncodedQuestion) -> NumberDistribution:
        """The predicted distributions of the numbers asked for."""
        relation = _states_of(question).layers[-1].relation
        asked = relation[question.relation.clamp(max=len(relation) - 1)]
        return NumberDistribution.of(self.bins, self._number_logits(question.encoded, asked))

    def _number_logits(self, encoded: Tensor, relation: Tensor) -> Tensor:
        """(n, bins) from questions and the states of the relations whose numbers they ask for, (n, d) each."""
        hidden = self.head_in(self.number_norm(encoded))
        if self.head_relation is not None:
            hidden = hidden + self.head_relation(norm(relation))
        logits: Tensor = self.head_out(functional.gelu(hidden))
        return logits

    def _products(self, question: Tensor, states: Tensor, normed: nn.LayerNorm, added: Tensor) -> Tensor:
        """(n, m): products of questions (n, d) and states (m, d), and `added` (m,) to those of each question."""
        return torch.addmm(added, normed(question) / math.sqrt(self.settings.dimension), normed(states).t())


def _with_lists(layers: tuple[Nodes, ...], facts: FactTensors, rows: Tensor, degrees: Degrees) -> ObservedStates:
    observed = torch.zeros(len(facts), dtype=torch.bool, device=facts.device).index_fill_(0, rows, True)
    return ObservedStates(layers, degrees.seen, NeighbourLists.of(facts).seen(observed))


def _states_of(question: EncodedQuestion) -> ObservedStates:
    if not isinstance(question, InductiveQuestion):
        raise ValueError("this model answers questions it has read itself")
    return question.states


def _vector(dimension: int) -> nn.Parameter:
    """A single vector, which starts as N(0, 0.1²)."""
    return nn.Parameter(torch.randn(dimension) * 0.1)


def _unseen(seen: Tensor) -> Tensor:
    """An entity that no observed fact names ranks last."""
    return torch.where(seen, 0.0, LAST)
