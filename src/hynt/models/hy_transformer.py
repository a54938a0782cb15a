"""Hy-Transformer (Yu and Yang, 2021): StarE's transformer without its graph encoder.

What the graph encoder gave was mostly order in the embeddings, so layer norm and dropout over the whole tables take
its place. The masked entity has a token of its own, from whose outcome all entities are scored. Numbers are tokens by
their literals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.batches.questions import Grouping
from hynt.config.declarations import Count, Rate, Share, check_heads
from hynt.graph.fact_table import HEAD, TAIL, component_count
from hynt.models.contract import OF_TRIPLETS, READS_A_FACT, Candidates, Capability, EncodedQuestion, Part, Position
from hynt.models.layers.tokens import LiteralValues, NumberReading, TokenQuestion, answered_by_table, token_rows
from hynt.models.layers.transformer import TokenGroup, Transformer
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

OF_QUALIFIERS: frozenset[Capability] = frozenset(
    {(Task.LINK, Position.QUALIFIER_VALUE), (Task.NUMBER, Position.QUALIFIER_VALUE)}
)
ROLES = 5
"""Subject, relation, object, relation of a qualifier, value of a qualifier: all qualifiers are alike."""


@dataclass(frozen=True)
class HyTransformerSettings:
    """The paper's form, in the width that the HyNT paper gave all models."""

    dimension: Count = 256
    layers: Count = 2
    heads: Count = 4
    feedforward: Count = 512
    dropout: Rate = 0.1
    """In the transformer."""
    table_dropout: Rate = 0.3
    """Of the whole table of entities: the same entries are missing in what is read and in the candidates."""
    normalise: bool = True
    """Layer norm over both tables; without it and without table dropout this is a plain transformer."""
    qualifier_values: Share = 0.0
    """How likely each value of a qualifier is asked for in an epoch. Above 0 the model also answers these."""
    numbers: NumberReading = "argmax"

    def __post_init__(self) -> None:
        check_heads(self.dimension, self.heads)


class HyTransformer(nn.Module):
    """A head is found as the object of the reverse relation."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (GroupedQuestions,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: frozenset[Capability] = OF_TRIPLETS

    def __init__(self, sizes: Sizes, settings: HyTransformerSettings, literals: LiteralValues) -> None:
        super().__init__()
        self.sizes, self.settings, self.literals = sizes, settings, literals
        if settings.qualifier_values:
            self.answers = OF_TRIPLETS | OF_QUALIFIERS
        d = settings.dimension
        self.hidden = sizes.entities + sizes.literals  # the last row
        self.entity = nn.Parameter(nn.init.xavier_normal_(torch.empty(self.hidden + 1, d)))
        self.relation = nn.Parameter(nn.init.xavier_normal_(torch.empty(2 * sizes.relations, d)))  # and reverse ones
        self.entity_norm: nn.Module = nn.LayerNorm(d) if settings.normalise else nn.Identity()
        self.relation_norm: nn.Module = nn.LayerNorm(d) if settings.normalise else nn.Identity()
        self.role = nn.Parameter(torch.randn(ROLES, d))
        self.encoder = Transformer(d, settings.layers, settings.heads, settings.feedforward, settings.dropout)
        self.output = nn.Linear(d, d)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: HyTransformerSettings) -> HyTransformer:
        """A new model; of the training facts it keeps which literals each relation has."""
        return cls(sizes, settings, LiteralValues.of(train))

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Questions with all their true answers, some of them about values of qualifiers."""
        grouping = Grouping(qualifier_values=self.settings.qualifier_values)
        stream = GroupedQuestions(train, settings.batch_size, grouping, settings.losses.smoothing)
        return [Phase(stream, trainable(self), settings.epochs)]

    def entity_vectors(self) -> Tensor:
        """(tokens, d) what was learned about each entity, then about literals and the masked one."""
        return self.entity

    def read(self, batch: MaskedBatch) -> TokenQuestion:
        """The masked token of each row, as the last layer sees it, and the table of this step."""
        rate = self.settings.table_dropout if self.training else 0.0
        table = functional.dropout(self.entity_norm(self.entity), rate, rate > 0)
        tokens, groups = self._tokens(batch, table)
        place = torch.where(batch.asked == HEAD, TAIL, batch.asked)
        row = torch.arange(len(batch), device=place.device)
        asked = 3 * row + 2 * batch.places.row_slot + place
        encoded = self.output(self.encoder(tokens, groups, asked))
        return TokenQuestion(encoded, batch.asked_relation(), table)

    def _tokens(self, batch: MaskedBatch, table: Tensor) -> tuple[Tensor, list[TokenGroup]]:
        """(tokens, d): subject, relation, object and the qualifiers of each row, end to end; and how they lie."""
        asks_head, rows = batch.asked == HEAD, len(batch)
        subject = torch.where(asks_head, batch.tail_entity, batch.head)
        hidden = self.sizes.mask_entity
        target = torch.where(asks_head | (batch.asked == TAIL), hidden, batch.tail_entity)
        ids = token_rows(torch.cat([subject, target, batch.qualifier_entity]), self.sizes, self.hidden)
        entities = functional.embedding(ids, table)
        relation = batch.relation + torch.where(asks_head, self.sizes.relations, 0)
        relations = functional.embedding(
            torch.cat([relation, batch.qualifier_relation]), self.relation_norm(self.relation)
        )
        triplet = torch.stack([entities[:rows], relations[:rows], entities[rows : 2 * rows]], 1) + self.role[:3]
        pair = torch.stack([relations[rows:], entities[2 * rows :]], 1) + self.role[3:]
        tokens, groups = [], []
        for span in batch.layout.spans():
            size, length = span.size, component_count(span.capacity)
            pairs = pair[span.slots].reshape(size, 2 * span.capacity, pair.shape[-1])
            tokens.append(torch.cat([triplet[span.rows], pairs], 1).flatten(0, 1))
            present = batch.qualifier_present[span.slots].view(size, span.capacity).repeat_interleave(2, 1)
            groups.append(
                TokenGroup(size, length, functional.pad(present, (3, 0), value=True) if span.capacity else None)
            )
        return torch.cat(tokens), groups

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Products with the table, or the number of a literal that the relation had in training."""
        if not isinstance(question, TokenQuestion):
            raise ValueError("this model answers questions it has read itself")
        numbers = self.settings.numbers
        return answered_by_table(question, question.table, candidates, self.sizes, self.literals, numbers)
