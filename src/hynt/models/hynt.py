"""HyNT (Chung, Lee and Whang, KDD 2023), Section 4, in the paper's order and with its names.

A fact ((h, r, t), {(q_i, v_i)}) becomes one token for the triplet and one for each qualifier. The context
transformer lets these exchange what they know; the prediction transformer looks at the asked triplet or qualifier,
part by part; a linear map of the masked part's final representation scores entities or relations, or is the number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Range, Rate, check_heads
from hynt.graph.fact_table import FIRST_QUALIFIER, HEAD, RELATION, TAIL, qualifier_of, relation_position
from hynt.models.contract import (
    EVERYWHERE,
    READS_A_FACT,
    Attention,
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Part,
    Relations,
    ScaledNumber,
    Tokens,
)
from hynt.models.layers.tokens import LiteralValues
from hynt.models.layers.transformer import TokenGroup, Transformer, embedding_table, linear, position_vectors
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import affine_loss
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

ALIGNMENT = 8
"""Candidates are scored in multiples of this on a GPU."""


class _Parts(NamedTuple):
    """Embeddings of the components of a batch, (rows, d) for the triplet and (slots, d) for qualifiers."""

    head: Tensor
    relation: Tensor
    tail: Tensor
    qualifier_relation: Tensor
    qualifier_value: Tensor


class Hynt(nn.Module):
    """Entities and relations as vectors, numbers as points on a line of their relation."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (MaskedFacts,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    reads_several_masks = True
    answers: ClassVar[frozenset[Capability]] = EVERYWHERE

    def __init__(self, sizes: Sizes, settings: HyntSettings, literals: LiteralValues | None = None) -> None:
        super().__init__()
        self.sizes, self.settings = sizes, settings
        d, tokens = settings.dimension, sizes.entities + 1 + sizes.literals
        if (settings.numbers == "discrete") != (literals is not None):
            raise ValueError('numbers="discrete" needs the values of the literals, and nothing else does')
        # Section 4.1. The last relation is the masked one, m_rel; entity number `entities` is the masked one, m_ent.
        self.entity = embedding_table(tokens, d)
        self.relation = embedding_table(sizes.relations + 1, d)
        self.number_weight = embedding_table(sizes.relations + 1, d)  # w_r
        self.number_bias = embedding_table(sizes.relations + 1, d) if settings.number_bias else None  # b_r
        self.hidden_number = nn.Parameter(torch.tensor(0.5))  # m_num
        self.encode_triplet = linear(3 * d, d, bias=settings.encoding_bias)  # W_tri
        self.encode_qualifier = linear(2 * d, d, bias=settings.encoding_bias)  # W_qual
        # Section 4.2 and 4.3. Positions: triplet, qualifier; then z of a triplet, h, r, t, z of a qualifier, q, v.
        self.context_position = position_vectors(2, d, settings.position_scale)
        self.prediction_position = position_vectors(7, d, settings.position_scale)
        self.context = Transformer(
            d,
            settings.context_layers,
            settings.context_heads,
            settings.context_feedforward,
            settings.dropout,
            settings.equal_start,
        )
        nn.init.constant_(self.context.last_norm().weight, settings.context_scale)
        self.prediction: Transformer | None = None
        if settings.prediction == "transformer":
            self.prediction = Transformer(
                d,
                settings.prediction_layers,
                settings.prediction_heads,
                settings.prediction_feedforward,
                settings.dropout,
                settings.equal_start,
            )
        else:
            self.project_triplet, self.project_qualifier = linear(4 * d, d), linear(3 * d, d)
        # Section 4.4: W_ent and b_ent, W_rel and b_rel, w_r and b_r of the answers.
        self.entity_output = None if settings.tied_output else embedding_table(tokens - 1, d)
        self.entity_output_bias = nn.Parameter(torch.zeros(tokens - 1))
        self.relation_output = linear(d, sizes.relations)
        self.number_output = embedding_table(sizes.relations, d)
        self.number_output_bias = nn.Parameter(torch.zeros(sizes.relations))
        self.literals = literals

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: HyntSettings) -> Hynt:
        """A new model. Only "discrete" numbers look at the training facts: for which literals each relation has."""
        discrete = settings.numbers == "discrete"
        return cls(sizes, settings, LiteralValues.of(train) if discrete else None)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Facts with a component hidden; very many entities are compared with a sample of them."""
        stream = MaskedFacts(train, settings.batch_size, settings.masking, settings.losses, affine_loss)
        return [Phase(stream, trainable(self), settings.epochs, work=self.work_of(settings))]

    def work_of(self, settings: PhaseSettings) -> int:
        """Products in a step that scores all entities."""
        return settings.batch_size * self.sizes.entities * self.settings.dimension

    # ------------------------------------------------------------------ reading

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """The final representation of the masked component of each row."""
        parts = self._embed(batch)
        z = self._context(batch, parts)
        encoded = self._predict(batch, parts, z)
        return EncodedQuestion(encoded, batch.asked_relation())

    def _embed(self, batch: MaskedBatch) -> _Parts:
        """Section 4.1. One look-up per table for the whole batch, so that its gradient is added up once."""
        rows = len(batch)
        relation_ids = torch.cat([batch.relation, batch.qualifier_relation])
        relations = functional.embedding(relation_ids, self.relation)
        entity_ids = torch.cat([batch.head, batch.tail_entity, batch.qualifier_entity])
        entities = self.entity_rows(entity_ids)
        values = entities[rows:]
        if self.settings.numbers == "numeric":
            is_number = torch.cat([batch.tail_is_number, batch.qualifier_is_number])
            values = torch.where(is_number.unsqueeze(1), self._numbers(batch, relation_ids), values)
        return _Parts(entities[:rows], relations[:rows], values[:rows], relations[rows:], values[rows:])

    def entity_rows(self, ids: Tensor) -> Tensor:
        """(n, d) the vectors of entities, the masked one among them. A table that lies elsewhere replaces this."""
        return functional.embedding(ids, self.entity)

    def entity_vectors(self) -> Tensor:
        """(tokens, d) what was learned about each entity, then about the masked one and about literals."""
        return self.entity

    def mask_entity_row(self) -> Tensor:
        """(d,) m_ent."""
        return self.entity[self.sizes.mask_entity]

    def _numbers(self, batch: MaskedBatch, relation_ids: Tensor) -> Tensor:
        """(rows + slots, d): v·w_r + b_r, with m_num in the place of a hidden v."""
        # Padding reads 0, so that whatever stands there reaches neither a score nor a gradient.
        shown = torch.cat([batch.tail_number, torch.where(batch.qualifier_present, batch.qualifier_number, 0.0)])
        hidden = torch.cat([batch.tail_number_masked, batch.qualifier_number_masked])
        if self.settings.number_of_hidden_relation == "hidden":
            hidden = hidden | (relation_ids == self.sizes.mask_relation)
        v = torch.where(hidden, self.hidden_number, shown).unsqueeze(1)
        numbers = v * functional.embedding(relation_ids, self.number_weight)
        if self.number_bias is not None:
            numbers = numbers + functional.embedding(relation_ids, self.number_bias)
        if self.settings.number_of_hidden_relation == "entity":
            of_mask = (relation_ids == self.sizes.mask_relation).unsqueeze(1)
            numbers = torch.where(of_mask, v * self.mask_entity_row(), numbers)
        return numbers

    def _encode(self, parts: _Parts) -> tuple[Tensor, Tensor]:
        """(rows, d) and (slots, d): the tokens of triplets and qualifiers, with their position vectors."""
        if self.settings.encoding == "hadamard":
            triplet = parts.head * parts.relation * parts.tail
            qualifier = parts.qualifier_relation * parts.qualifier_value
        else:
            triplet = self.encode_triplet(torch.cat([parts.head, parts.relation, parts.tail], 1))
            qualifier = self.encode_qualifier(torch.cat([parts.qualifier_relation, parts.qualifier_value], 1))
        return triplet + self.context_position[0], qualifier + self.context_position[1]

    def _prediction_places(self) -> list[Tensor]:
        """(d,) position vectors of the prediction transformer: z, h, r, t; then z, q, v."""
        place = list(self.prediction_position)
        if not self.settings.context_position:
            place[0] = place[4] = torch.zeros_like(place[0])
        return place

    def _context(self, batch: MaskedBatch, parts: _Parts) -> Tensor:
        """Section 4.2: z, (rows, d), the context transformer's view of the asked triplet or qualifier."""
        triplet, qualifier = self._encode(parts)
        tokens, groups = [], []
        for span in batch.layout.spans():
            of_triplets, of_qualifiers = triplet[span.rows].unsqueeze(1), qualifier[span.slots]
            if span.capacity == 0:
                tokens.append(triplet[span.rows])
                groups.append(TokenGroup(span.size, 1, None))
                continue
            both = torch.cat([of_triplets, of_qualifiers.view(span.size, span.capacity, -1)], 1)
            tokens.append(both.flatten(0, 1))
            present = batch.qualifier_present[span.slots].view(span.size, span.capacity)
            groups.append(TokenGroup(span.size, 1 + span.capacity, functional.pad(present, (1, 0), value=True)))
        asked_token = batch.places.row_token + torch.where(batch.asks_qualifier, 1 + batch.asked_slot, 0)
        return self.context(torch.cat(tokens), groups, asked_token)  # type: ignore[no-any-return]

    def _predict(self, batch: MaskedBatch, parts: _Parts, z: Tensor) -> Tensor:
        """Section 4.3: (rows, d) from [z; h; r; t] where the triplet is asked and [z; q; v] where a qualifier is."""
        place = self._prediction_places()
        of_triplet = [x + p for x, p in zip((z, parts.head, parts.relation, parts.tail), place[:4], strict=True)]
        # Rows without places for qualifiers come first and never ask for one.
        plain = sum(n for n, capacity in batch.layout.segments if capacity == 0)
        asks = batch.asks_qualifier
        if plain == len(batch):
            sequence = torch.stack(of_triplet, 1)
        else:
            slot = batch.slot_of_asked[plain:]
            of_qualifier = [
                z[plain:] + place[4],
                parts.qualifier_relation[slot] + place[5],
                parts.qualifier_value[slot] + place[6],
                torch.zeros_like(z[plain:]),
            ]
            chosen = asks[plain:, None, None]
            late = torch.where(chosen, torch.stack(of_qualifier, 1), torch.stack([x[plain:] for x in of_triplet], 1))
            sequence = torch.cat([torch.stack([x[:plain] for x in of_triplet], 1), late])
        if self.prediction is None:
            ends = self.project_triplet(sequence.flatten(1)), self.project_qualifier(sequence[:, :3].flatten(1))
            return torch.where(asks.unsqueeze(1), ends[1], ends[0])
        present = torch.arange(4, device=asks.device) < torch.where(asks, 3, 4).unsqueeze(1)
        hidden = torch.where(asks, 1 + (batch.asked - FIRST_QUALIFIER) % 2, 1 + batch.asked)
        asked_token = 4 * torch.arange(len(batch), device=asks.device) + hidden
        return self.prediction(sequence.flatten(0, 1), [TokenGroup(len(batch), 4, present)], asked_token)  # type: ignore[no-any-return]

    def attention(self, batch: MaskedBatch) -> Attention:
        """Where it looks, worked out layer by layer as the paper writes it: the scoring path keeps no weights."""
        position, present = int(batch.asked[0]), batch.qualifier_present
        own = qualifier_of(position) if position > TAIL else None  # the asked qualifier
        parts = self._embed(batch)
        relation, value = parts.qualifier_relation[present], parts.qualifier_value[present]
        triplet, qualifier = self._encode(parts)
        tokens = torch.cat([triplet, qualifier[present]])
        z, context = self.context.attention(tokens, 0 if own is None else 1 + own)
        place = self._prediction_places()
        if own is None:
            sequence, places = [z, parts.head[0], parts.relation[0], parts.tail[0]], place[:4]
            positions: tuple[int | None, ...] = (None, HEAD, RELATION, TAIL)
            asked = 1 + position
        else:
            sequence, places = [z, relation[own], value[own]], place[4:]
            positions = (None, relation_position(own), relation_position(own) + 1)
            asked = 1 + position - relation_position(own)
        both = torch.stack([part + where for part, where in zip(sequence, places, strict=True)])
        if self.prediction is None:
            project = self.project_triplet if own is None else self.project_qualifier
            return Attention(context, None, positions, project(both.flatten()))
        encoded, prediction = self.prediction.attention(both, asked)
        return Attention(context, prediction, positions, encoded)

    # ------------------------------------------------------------------ scoring

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Section 4.4: logits of entities or relations, or the numbers."""
        x, entities = question.encoded, self.sizes.entities
        match candidates:
            case Entities():
                return self._logits(x, slice(0, entities))
            case EntityRange(start, end):
                return self._logits(x, slice(start, end))
            case Tokens():
                return self._logits(x, slice(0, entities + self.sizes.literals))
            case EntityIds(ids):
                weight, bias = self._output_weight()[ids], self.entity_output_bias[ids]
                return (
                    functional.linear(x, weight, bias) if ids.dim() == 1 else (weight * x.unsqueeze(1)).sum(-1) + bias
                )
            case Relations():
                return _aligned(x, self.relation_output.weight, self.relation_output.bias)
            case ScaledNumber():
                return self._number(question)

    def output_table(self) -> tuple[Tensor, Tensor]:
        """W_ent (entities, d) and b_ent (entities,): what a sample of entities is scored by in training."""
        entities = self.sizes.entities
        if self.sizes.literals:
            return self._output_weight()[:entities], self.entity_output_bias[:entities]
        return self._output_weight(), self.entity_output_bias

    def _output_weight(self) -> Tensor:
        if self.entity_output is not None:
            return self.entity_output
        hidden = self.sizes.mask_entity
        return (
            torch.cat([self.entity[:hidden], self.entity[hidden + 1 :]])
            if self.sizes.literals
            else self.entity[:hidden]
        )

    def _logits(self, x: Tensor, which: slice) -> Tensor:
        return _aligned(x, self._output_weight()[which], self.entity_output_bias[which])

    def _number(self, question: EncodedQuestion) -> Tensor:
        """(rows,): w_r·x + b_r in full precision, or the value of the literal that the relation has and the model
        likes best.
        """
        if self.literals is not None:
            return self.literals.best(self.score(question, Tokens()), question.relation)
        relation = question.relation.clamp(max=self.sizes.relations - 1)  # no number is asked of a masked relation
        weight = functional.embedding(relation, self.number_output)
        return (weight * question.encoded.float()).sum(-1) + self.number_output_bias[relation]


def _aligned(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x·Wᵀ + b. Rows of odd length keep a GPU from its fast matrix products: a few columns more, cut off again."""
    if not x.is_cuda:
        return functional.linear(x, weight, bias)
    short = -len(bias) % ALIGNMENT
    padded = functional.linear(x, functional.pad(weight, (0, 0, 0, short)), functional.pad(bias, (0, short)))
    return padded[:, : len(bias)]


# The choices HyNT leaves open: sizes, and a switch for each ablation and each difference between paper and released
# code.


@dataclass(frozen=True)
class HyntSettings:
    """Defaults are the paper's form."""

    dimension: Count = 256
    context_layers: Count = 2
    prediction_layers: Count = 2
    context_heads: Count = 16
    prediction_heads: Count = 16
    context_feedforward: Count = 1024
    prediction_feedforward: Count = 1024
    dropout: Rate = 0.1
    tied_output: bool = False
    """Scores entities with their own embeddings instead of a table of their own."""
    encoding: Literal["linear", "hadamard"] = "linear"
    """How triplet and qualifier become one vector; "hadamard" is the ablation with the product of the parts."""
    prediction: Literal["transformer", "linear"] = "transformer"
    """"linear" is the ablation without prediction transformer: one linear map of its inputs, end to end."""
    numbers: Literal["numeric", "discrete"] = "numeric"
    """"discrete" is the ablation that takes each literal for an entity; a number is then the best-ranked literal's."""
    number_bias: bool = True
    """b_r in v·w_r + b_r; the released code has none."""
    encoding_bias: bool = False
    """Biases in W_tri and W_qual; the released code has them."""
    context_position: bool = True
    """The position vector of z in the prediction transformer; the released code adds none."""
    number_of_hidden_relation: Literal["relation", "entity", "hidden"] = "relation"
    """What embeds a number whose relation is masked: the w and b of the masked relation, or, as in the released code,
    the number times the vector of the masked entity. Both tell something of the answer, because the number is scaled by
    the relation that is asked for; "hidden" masks it too.
    """
    equal_start: bool = False
    """All layers of a transformer start from the same weights, as in the released code."""

    position_scale: Annotated[float, Range(0)] = 1.0
    """How large position vectors start, as a share of Xavier's bound, which is where the released code starts them.
    Small ones leave room for what they are added to (docs/background/models.md, "How weights start").
    """

    context_scale: Annotated[float, Range(0)] = 1.0
    """How large z starts: the gain of the context transformer's last norm. At 1, where the released code starts, z is
    far larger than the h, r and t it stands beside, and a model may learn to look at nothing else.
    """

    def __post_init__(self) -> None:
        for heads in (self.context_heads, self.prediction_heads):
            check_heads(self.dimension, heads)


def as_released(settings: HyntSettings) -> HyntSettings:
    """The same sizes in the form of the authors' released code."""
    return replace(
        settings,
        number_bias=False,
        encoding_bias=True,
        context_position=False,
        number_of_hidden_relation="entity",
        equal_start=True,
        position_scale=1.0,
        context_scale=1.0,
    )
