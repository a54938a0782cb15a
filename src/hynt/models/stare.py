"""StarE (Galkin, Trivedi, Maheshwari, Usbeck and Lehmann, EMNLP 2020).

A graph encoder over all training facts gives every entity and relation a vector that knows its neighbourhood and the
qualifiers there. A transformer reads the question's own tokens, its outcomes are averaged, and products with the
encoded entities are the scores. Numbers are tokens by their literals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import Span
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.batches.questions import Grouping
from hynt.config.declarations import Count, Range, Rate, Share, UnfitSettings, check_heads
from hynt.graph.fact_table import HEAD
from hynt.models.contract import OF_TRIPLETS, READS_A_FACT, Candidates, Capability, EncodedQuestion, Part
from hynt.models.layers.tokens import LiteralValues, NumberReading, TokenQuestion, answered_by_table, token_rows
from hynt.models.layers.transformer import TokenGroup, TransformerLayer
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

# StarE's graph encoder: entities gather messages from their neighbours, whose relations are changed by qualifiers.

Composition: TypeAlias = Literal["rotate", "multiply", "subtract", "correlate"]
Degrees: TypeAlias = Literal["symmetric", "mean"]

DIRECTIONS = 2
"""Along a fact, from its tail to its head, and against it."""


def composed(entity: Tensor, relation: Tensor, how: Composition) -> Tensor:
    """(n, d) from the same. "rotate" takes halves for real and imaginary parts and multiplies as complex numbers."""
    match how:
        case "rotate":
            (real, imaginary), (cosine, sine) = entity.chunk(2, -1), relation.expand_as(entity).chunk(2, -1)
            return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
        case "multiply":
            return entity * relation
        case "subtract":
            return entity - relation
        case "correlate":
            width = entity.shape[-1]
            spectrum = torch.conj(torch.fft.rfft(entity.float())) * torch.fft.rfft(relation.float())
            correlated: Tensor = torch.fft.irfft(spectrum, n=width)
            return correlated


class StarGraph(nn.Module):
    """The training facts as edges between tokens. Not learned, and not saved: it is made from the training facts."""

    receiver: Tensor  # (2, edges) int64 rows of tokens: heads, then tails
    sender: Tensor  # (2, edges) int64: tails, then heads
    relation: Tensor  # (2, edges) int64 rows of relations: direct ones, then reverse ones
    share: Tensor  # (2, edges) float32 what each message counts
    qualified: Tensor  # (q,) int64 edges that have qualifiers
    qualifier_edge: Tensor  # (m,) int64 which of `qualified` each qualifier belongs to
    qualifier_relation: Tensor  # (m,) int64
    qualifier_value: Tensor  # (m,) int64 rows of tokens

    def __init__(self, train: FactTensors, degrees: Degrees) -> None:
        super().__init__()
        sizes = train.sizes
        self.tokens = sizes.entities + sizes.literals
        ends = token_rows(torch.stack([train.head, train.tail_entity]).long(), sizes, self.tokens)
        value = token_rows(train.qualifier_entity[:-1].long(), sizes, self.tokens)
        relation = train.relation.long()
        counts = train.qualifier_counts()
        qualified = torch.nonzero(counts).squeeze(1)
        number = torch.arange(len(qualified), device=counts.device)
        columns = {
            "receiver": ends,
            "sender": ends.flip(0),
            "relation": torch.stack([relation, relation + sizes.relations]),
            "share": self._shares(ends, degrees),
            "qualified": qualified,
            "qualifier_edge": torch.repeat_interleave(number, counts[qualified]),
            "qualifier_relation": train.qualifier_relation[:-1].long(),
            "qualifier_value": value,
        }
        for name, column in columns.items():
            self.register_buffer(name, column, persistent=False)

    def _shares(self, ends: Tensor, degrees: Degrees) -> Tensor:
        """(2, edges): one over the root of both ends' degrees, each counted as receiver in that direction.

        So a sender that never receives in a direction is silent in it, as in StarE's code; "mean" divides by the
        receiver's degree alone.
        """
        found = []
        for receiver, sender in (ends, ends.flip(0)):
            degree = torch.bincount(receiver, minlength=self.tokens).float()
            if degrees == "mean":
                found.append(1 / degree[receiver])
            else:
                root = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, 0.0)
                found.append(root[receiver] * root[sender])
        return torch.stack(found)


class StarLayer(nn.Module):
    """One round of messages. Maps after sums instead of before are exact, and cost by entity instead of by edge."""

    def __init__(self, dimension: int, composition: Composition, qualifier_weight: float, dropout: float) -> None:
        super().__init__()
        self.composition, self.qualifier_weight, self.dropout = composition, qualifier_weight, dropout
        d = dimension
        self.message = nn.Parameter(_weights(DIRECTIONS, d, d))  # W_in and W_out
        self.loop, self.of_relations = nn.Parameter(_weights(d, d)), nn.Parameter(_weights(d, d))  # W_loop, W_rel
        self.of_qualifiers = nn.Parameter(_weights(d, d))  # W_q
        self.loop_relation = nn.Parameter(_weights(1, d))
        self.norm = nn.BatchNorm1d(d)

    def forward(self, x: Tensor, relations: Tensor, graph: StarGraph) -> tuple[Tensor, Tensor]:
        """(tokens, d) and (2 × relations, d) from the same."""
        rate = self.dropout if self.training else 0.0
        keep = 1 - self.qualifier_weight  # α
        # Looked up as embeddings, whose way back shares the sums over a much-used row among many threads of a GPU.
        values = functional.embedding(graph.qualifier_value, x)
        pairs = composed(values, functional.embedding(graph.qualifier_relation, relations), self.composition)
        context = x.new_zeros(len(graph.qualified), x.shape[1]).index_add(0, graph.qualifier_edge, pairs.to(x.dtype))
        context = self.qualifier_weight * (context @ self.of_qualifiers)
        total = composed(x, self.loop_relation, self.composition) @ self.loop
        for direction in range(DIRECTIONS):
            of_edge = keep * functional.embedding(graph.relation[direction], relations)
            of_edge = of_edge.index_add(0, graph.qualified, context.to(of_edge.dtype))
            messages = composed(functional.embedding(graph.sender[direction], x), of_edge, self.composition)
            messages = messages * graph.share[direction].unsqueeze(1)
            gathered = x.new_zeros(x.shape).index_add(0, graph.receiver[direction], messages.to(x.dtype))
            total = total + functional.dropout(gathered @ self.message[direction], rate, rate > 0)
        return torch.tanh(self.norm(total / 3)), relations @ self.of_relations


def _weights(*shape: int) -> Tensor:
    """Each matrix on its own by Xavier's rule."""
    made = torch.empty(shape)
    for matrix in made if made.dim() == 3 else made.unsqueeze(0):
        nn.init.xavier_normal_(matrix)
    return made


@dataclass(frozen=True)
class StareSettings:
    """The paper's form, in the width that the HyNT paper gave all models."""

    dimension: Count = 256
    graph_layers: Annotated[int, Range(0)] = 2
    """0 is the paper's ablation without graph encoder."""
    layers: Count = 2
    """Of the transformer."""
    heads: Count = 4
    feedforward: Count = 512
    dropout: Rate = 0.1
    """In the transformer."""
    message_dropout: Rate = 0.1
    """Of what each direction of the graph brings an entity."""
    graph_dropout: Rate = 0.3
    """After each graph layer."""
    composition: Composition = "rotate"
    qualifier_weight: Share = 0.2
    """1 − α: how much of an edge's relation its qualifiers make."""
    degrees: Degrees = "symmetric"
    """How messages are weighed; "mean" does not silence entities that never stand as head."""
    decoder_qualifiers: bool = True
    """Whether the transformer reads the question's qualifiers; the graph encoder always does."""
    positions: bool = True
    """Position vectors in the transformer."""
    numbers: NumberReading = "argmax"

    def __post_init__(self) -> None:
        check_heads(self.dimension, self.heads)
        if self.composition == "rotate" and self.dimension % 2:
            raise UnfitSettings(f"the dimension {self.dimension} has no halves to rotate", "Take an even one.")


class Stare(nn.Module):
    """A head is found as the object of the reverse relation."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (GroupedQuestions,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: ClassVar[frozenset[Capability]] = OF_TRIPLETS

    def __init__(
        self, sizes: Sizes, settings: StareSettings, graph: StarGraph, literals: LiteralValues, longest: int
    ) -> None:
        """`longest` is the greatest number of qualifiers that a training fact has."""
        super().__init__()
        self.sizes, self.settings, self.graph, self.literals = sizes, settings, graph, literals
        d = settings.dimension
        self.entity = nn.Parameter(nn.init.xavier_normal_(torch.empty(graph.tokens, d)))
        self.relation = nn.Parameter(_relations(sizes.relations, d, settings.composition))
        weight = settings.qualifier_weight
        self.encoder = nn.ModuleList(
            StarLayer(d, settings.composition, weight, settings.message_dropout) for _ in range(settings.graph_layers)
        )
        self.position = nn.Parameter(torch.randn(2 + 2 * max(longest, 1), d)) if settings.positions else None
        self.decoder = nn.ModuleList(
            TransformerLayer(d, settings.heads, settings.feedforward, settings.dropout) for _ in range(settings.layers)
        )
        self.output = nn.Linear(d, d)
        self._kept: tuple[list[int], tuple[Tensor, Tensor]] | None = None

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: StareSettings) -> Stare:
        """A new model over the graph of the training facts."""
        longest = int(train.qualifier_counts().max()) if len(train) else 0
        return cls(sizes, settings, StarGraph(train, settings.degrees), LiteralValues.of(train), longest)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Questions with all their true answers."""
        stream = GroupedQuestions(train, settings.batch_size, Grouping(), settings.losses.smoothing)
        return [Phase(stream, trainable(self), settings.epochs)]

    def entity_vectors(self) -> Tensor:
        """(tokens, d) what was learned about each entity, then about literals."""
        return self.entity

    def train(self, mode: bool = True) -> Stare:
        """Weights are about to change or have changed, perhaps unseen by Python: nothing computed from them is kept."""
        self._kept = None
        return super().train(mode)

    def encoded_graph(self) -> tuple[Tensor, Tensor]:
        """(tokens, d) and (2 × relations, d). When nothing is learnt, it is kept until a weight changes."""
        if self.training or torch.is_grad_enabled():
            return self._encode()
        state = [tensor._version for tensor in (*self.parameters(), *self.buffers())]
        state += [self.entity.data_ptr()]
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, self._encode())
        return self._kept[1]

    def _encode(self) -> tuple[Tensor, Tensor]:
        rate = self.settings.graph_dropout if self.training else 0.0
        x: Tensor = self.entity
        relations: Tensor = self.relation
        for layer in self.encoder:
            x, relations = layer(x, relations, self.graph)
            x = functional.dropout(x, rate, rate > 0)
        return x, relations

    def read(self, batch: MaskedBatch) -> TokenQuestion:
        """The mean outcome of each row's tokens, mapped once more, and the encoded entities."""
        x, relations = self.encoded_graph()
        x = functional.pad(x, (0, 0, 0, 1))  # a literal that training did not have is the zero vector
        tokens, groups = self._tokens(batch, x, relations)
        for layer in self.decoder:
            tokens = layer(tokens, groups)
        pooled, at = [], 0
        for group in groups:
            outcome = tokens[at : at + group.tokens].view(group.size, group.length, -1)
            if group.present is None:
                pooled.append(outcome.mean(1))
            else:
                there = group.present.unsqueeze(2)
                pooled.append(torch.where(there, outcome, 0.0).sum(1) / there.sum(1))
            at += group.tokens
        return TokenQuestion(self.output(torch.cat(pooled)), batch.asked_relation(), x)

    def _tokens(self, batch: MaskedBatch, x: Tensor, relations: Tensor) -> tuple[Tensor, list[TokenGroup]]:
        """(tokens, d): subject, relation and the qualifiers of each row, end to end; and how they lie."""
        asks_head = batch.asked == HEAD
        unknown = self.graph.tokens
        subject = token_rows(torch.where(asks_head, batch.tail_entity, batch.head), self.sizes, unknown)
        relation = batch.relation + torch.where(asks_head, self.sizes.relations, 0)
        lead = torch.stack([functional.embedding(subject, x), functional.embedding(relation, relations)], 1)
        value = token_rows(batch.qualifier_entity, self.sizes, unknown)
        tokens, groups = [], []
        for span in batch.layout.spans():
            found, present = lead[span.rows], None
            if span.capacity and self.settings.decoder_qualifiers:
                key, own, here = _sorted(batch, value, span, unknown + 1)
                pairs = torch.stack([functional.embedding(key, relations), functional.embedding(own, x)], 2)
                pairs = pairs.view(span.size, 2 * span.capacity, -1)
                found = torch.cat([found, pairs], 1)
                present = functional.pad(here.repeat_interleave(2, 1), (2, 0), value=True)
            if self.position is not None:
                found = found + self._positions(found.shape[1])
            tokens.append(found.flatten(0, 1))
            groups.append(TokenGroup(span.size, found.shape[1], present))
        return torch.cat(tokens), groups

    def _positions(self, length: int) -> Tensor:
        """(length, d). Qualifiers beyond the longest training fact share the places of its last one."""
        assert self.position is not None
        beyond = max(0, length - len(self.position)) // 2
        return torch.cat([self.position[:length], self.position[-2:].repeat(beyond, 1)])

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Products with the encoded entities, or the number of a literal that the relation had in training."""
        if not isinstance(question, TokenQuestion):
            raise ValueError("this model answers questions it has read itself")
        numbers = self.settings.numbers
        return answered_by_table(question, question.table, candidates, self.sizes, self.literals, numbers)


def _sorted(batch: MaskedBatch, value: Tensor, span: Span, values: int) -> tuple[Tensor, Tensor, Tensor]:
    """(size, capacity) relations, values and presence of a segment's qualifiers in one fixed order, absent ones last.

    Positions tell qualifiers apart, but a file's order means nothing.
    """
    shape = (span.size, span.capacity)
    present = batch.qualifier_present[span.slots].view(shape)
    key, own = batch.qualifier_relation[span.slots].view(shape), value[span.slots].view(shape)
    order = torch.where(present, key * values + own, torch.iinfo(torch.int64).max).argsort(1)
    return key.gather(1, order), own.gather(1, order), present.gather(1, order)


def _relations(count: int, dimension: int, composition: Composition) -> Tensor:
    """(2 × count, dimension): direct relations, then reverse ones. Rotations start with the reverse as the inverse."""
    if composition != "rotate":
        return nn.init.xavier_normal_(torch.empty(2 * count, dimension))
    phase = 2 * math.pi * torch.rand(count, dimension // 2)
    return torch.cat([torch.cat([phase.cos(), sine], 1) for sine in (phase.sin(), -phase.sin())])
