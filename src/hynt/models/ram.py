"""RAM (Liu, Yao and Li, WWW 2021): roles are mixtures of a few basis vectors, entities fit them by patterns.

A fact of arity n scores Σ_a ⟨u_a, Π_i Σ_j P_a[i, j] x_i[j]⟩ over its roles a: x_i are the m parts of the entity at
position i. The sum is linear in the masked entity, so a question is one vector and all candidates are one matrix
product. Products are made as sums of logarithms: those of long facts would be too small for any float.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import Span
from hynt.batches.corruption import mixed
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch
from hynt.config.declarations import Count, Rate
from hynt.graph.fact_table import HEAD, TAIL, qualifier_of
from hynt.models.contract import EVERYWHERE, READS_A_FACT, Candidates, Capability, EncodedQuestion, Part, Task
from hynt.models.layers.tokens import LiteralValues, NumberReading, answered_by_table, token_rows
from hynt.objectives.masked_facts import MaskedComponents
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings, trainable

FLOOR = -60.0
"""A question whose vector would be smaller than exp(FLOOR) in all places is scaled up to that: its candidates then
still differ. Questions about facts of a dozen qualifiers or fewer are not touched."""
SMALLEST = 1e-30
"""Factors nearer to 0 than this count as this; their gradient is 0."""


@dataclass(frozen=True)
class RamSettings:
    """The sizes of RAM's vectors, its basis and its dropouts."""

    dimension: Count = 128  # d, of each part
    parts: Count = 2  # m, of an entity
    basis: Count = 10  # K
    role_dropout: Rate = 0.0
    entity_dropout: Rate = 0.2
    instances: Count = 64  # how many values of one fact are hidden in turn in an epoch; of longer facts some are drawn
    numbers: NumberReading = "argmax"


class Ram(nn.Module):
    """A basis, entities in parts, role weights by composite relation and patterns by arity."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (MaskedComponents,)
    reads: ClassVar[frozenset[Part]] = READS_A_FACT
    answers: ClassVar[frozenset[Capability]] = frozenset(pair for pair in EVERYWHERE if pair[0] is not Task.RELATION)

    def __init__(
        self, sizes: Sizes, settings: RamSettings, composites: CompositeRelations, literals: LiteralValues
    ) -> None:
        super().__init__()
        self.sizes, self.settings = sizes, settings
        self.composites, self.literals = composites, literals
        d, m, k = settings.dimension, settings.parts, settings.basis
        self.tokens = sizes.entities + sizes.literals
        self.basis = _normal(k, d)
        self.entity = _normal(self.tokens + 1, m * d)  # the last is for literals never seen in training
        self.role_logits = _normal(len(composites.place), k)
        self.pattern_logits = _normal(composites.arity_positions, k * m)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: RamSettings) -> Ram:
        """A new model; training facts say which composite relations there are, and which literals relations have."""
        return cls(sizes, settings, CompositeRelations.of(train), LiteralValues.of(train))

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """Every value of every fact hidden in turn; relations it cannot be asked for."""
        masking = replace(settings.masking, relations=False)
        stream = MaskedComponents(train, settings.batch_size, masking, settings.losses, self.settings.instances)
        return [Phase(stream, trainable(self), settings.epochs)]

    def entity_vectors(self) -> Tensor:
        """(tokens, m·d) what was learned about each entity, then about literals."""
        return self.entity

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """The vector that candidates are multiplied with."""
        unseen = None if self.training else self._mean_logits()
        encoded = [self._read(batch, span, unseen) for span in batch.layout.spans()]
        return EncodedQuestion(torch.cat(encoded), batch.asked_relation())

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """Products of question vectors and entities, or the numbers."""
        numbers = self.settings.numbers
        return answered_by_table(question, self.entity, candidates, self.sizes, self.literals, numbers)

    def _read(self, batch: MaskedBatch, span: Span, unseen: Tensor | None) -> Tensor:
        """(size, m·d) the question vectors of a segment, whose facts have up to n = capacity + 2 positions."""
        relation, asked = batch.relation[span.rows], batch.asked[span.rows]
        shape = (span.size, span.capacity)
        qualifier, value = (
            batch.qualifier_relation[span.slots].view(shape),
            batch.qualifier_entity[span.slots].view(shape),
        )
        present = batch.qualifier_present[span.slots].view(shape)
        # Positions: head, tail, then qualifiers by relation and, among equal ones, by value; absent ones last.
        ids = self.sizes.entities + 1 + self.sizes.literals
        order = torch.where(present, qualifier * ids + value, torch.iinfo(torch.int64).max).argsort(dim=1, stable=True)
        slot_asked = (order == qualifier_of(asked).unsqueeze(1)).long() * (
            2 + torch.arange(span.capacity, device=order.device)
        )
        position = torch.where(asked == HEAD, 0, torch.where(asked == TAIL, 1, slot_asked.sum(1)))
        heads, tails = batch.head[span.rows].unsqueeze(1), batch.tail_entity[span.rows].unsqueeze(1)
        entity = token_rows(torch.cat([heads, tails, value.gather(1, order)], 1), self.sizes, self.tokens)
        shown = functional.pad(present.gather(1, order), (2, 0), value=True)

        weights = self._role_weights(relation, qualifier.gather(1, order), shown, unseen)  # (b, n, K) α
        roles = functional.dropout(weights @ self.basis, self.settings.role_dropout, self.training)  # (b, n, d) u
        roles = roles * shown.unsqueeze(2)
        patterns = torch.einsum("bak,bkij->baij", weights, self.patterns(shown))  # (b, n, n, m) P_a
        vectors = functional.embedding(entity, self.entity).view(*entity.shape, self.settings.parts, -1)
        vectors = functional.dropout(vectors, self.settings.entity_dropout, self.training)
        factors = torch.einsum("baij,bijd->baid", patterns, vectors).float()
        # The hidden position and absent ones are left out of the product.
        hidden = torch.arange(entity.shape[1], device=entity.device) == position.unsqueeze(1)
        factors = torch.where((shown & ~hidden)[:, None, :, None], factors, 1.0)
        around = _product(factors, roles.float())
        at = position[:, None, None, None].expand(-1, patterns.shape[1], 1, self.settings.parts)
        of_mask = patterns.gather(2, at).squeeze(2)  # (b, n, m)
        return torch.einsum("baj,bad->bjd", of_mask.float(), around).flatten(1)

    def _role_weights(self, relation: Tensor, qualifier: Tensor, shown: Tensor, unseen: Tensor | None) -> Tensor:
        """(b, n, K) α; a composite relation that training lacks takes the mean weights of like positions."""
        first, seen = self.composites.lookup(relation, qualifier, shown[:, 2:])
        n = shown.shape[1]
        at = (first.unsqueeze(1) + torch.arange(n, device=first.device)).clamp(max=len(self.role_logits) - 1)
        logits = functional.embedding(at, self.role_logits)
        if unseen is not None:
            relations = self.sizes.relations
            place = torch.cat([relation.unsqueeze(1), relations + relation.unsqueeze(1), 2 * relations + qualifier], 1)
            like = functional.embedding(place, unseen)
            logits = torch.where(seen[:, None, None], logits, like)
        return logits.softmax(2)

    def _mean_logits(self) -> Tensor:
        """(places, K): for each relation as a head's, a tail's and a qualifier's, the mean over composite relations."""
        place, blank = self.composites.place, self.role_logits.new_zeros(3 * self.sizes.relations, self.settings.basis)
        count = blank[:, 0].index_add(0, place, torch.ones_like(place, dtype=blank.dtype))
        return blank.index_add(0, place, self.role_logits) / count.clamp(min=1).unsqueeze(1)

    def patterns(self, shown: Tensor) -> Tensor:
        """(b, K, n, m): for each basis vector, weights of all parts at all positions, of which (b, n) are there; they
        add up to 1. An arity that training lacks weighs all alike.
        """
        known, n = self.composites, shown.shape[1]
        arity = shown.sum(1)
        seen = (arity < len(known.arity_seen)) & known.arity_seen[arity.clamp(max=len(known.arity_seen) - 1)]
        first = known.arity_first[arity.clamp(max=len(known.arity_seen) - 1)]
        at = (first.unsqueeze(1) + torch.arange(n, device=first.device)).clamp(max=len(self.pattern_logits) - 1)
        logits = functional.embedding(at, self.pattern_logits) * seen[:, None, None]
        logits = logits.view(*at.shape, self.settings.basis, self.settings.parts).permute(0, 2, 1, 3)
        logits = logits.masked_fill(~shown[:, None, :, None], float("-inf"))
        return logits.flatten(2).softmax(2).view_as(logits)


def _product(factors: Tensor, roles: Tensor) -> Tensor:
    """(b, n, d) roles × the product of (b, n, i, d) factors over i, by logarithms; lifted where it would vanish."""
    magnitude = factors.abs().clamp(min=SMALLEST).log().sum(2)
    sign = 1.0 - 2.0 * ((factors < 0).sum(2) % 2)
    with torch.no_grad():
        largest = (magnitude + roles.abs().clamp(min=SMALLEST).log()).amax((1, 2), keepdim=True)
        lift = (FLOOR - largest).clamp(min=0.0)
    return sign * torch.exp(magnitude + lift) * roles


def _normal(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, columns)))


# Composite relations: what a fact's relations are together, the primary one and the multiset of its qualifiers'.
#
# RAM has a role for each position of each composite relation: head, tail, then qualifiers by the id of their relation.


class CompositeRelations(nn.Module):
    """The composite relations met in training, and where the positions of each begin in one long table. Not learned."""

    key: Tensor  # (c,) int64 ascending
    first: Tensor  # (c,) int64 the first of its positions
    place: Tensor  # (positions,) int64 what each position is: head or tail of a relation, or value of a qualifier's
    arity_first: Tensor  # (longest arity + 1,) int64 where positions of facts of an arity begin in a table by arity
    arity_seen: Tensor  # (longest arity + 1,) bool

    def __init__(self, key: Tensor, first: Tensor, place: Tensor, arity_seen: Tensor) -> None:
        super().__init__()
        sizes = torch.arange(len(arity_seen), device=key.device) * arity_seen
        self.register_buffer("key", key)
        self.register_buffer("first", first)
        self.register_buffer("place", place)
        self.register_buffer("arity_seen", arity_seen)
        self.register_buffer("arity_first", sizes.cumsum(0) - sizes)
        self.arity_positions = int(sizes.sum())  # positions of all arities seen, end to end

    @classmethod
    def of(cls, facts: FactTensors) -> CompositeRelations:
        """The composite relations that occur in the training facts."""
        count, relations, device = facts.qualifier_counts(), facts.sizes.relations, facts.device
        rows = torch.arange(len(facts), device=device)
        owner = torch.repeat_interleave(rows, count)
        qualifier, relation = facts.qualifier_relation[:-1].long(), facts.relation.long()
        keys = mixed(~relation).index_add(0, owner, mixed(qualifier))
        key, which = torch.unique(keys, return_inverse=True)
        example = torch.zeros_like(key).index_put((which,), rows)  # a fact that has this composite relation
        arity = count[example] + 2
        first = arity.cumsum(0) - arity
        place = torch.zeros(int(arity.sum()), dtype=torch.int64, device=device)
        place[first], place[first + 1] = relation[example], relations + relation[example]
        is_example = torch.zeros_like(rows).index_put((example,), torch.ones_like(example)).bool()
        slots = torch.nonzero(is_example[owner]).squeeze(1)
        of_key = which[owner[slots]]
        order = torch.argsort(of_key * relations + qualifier[slots])
        slots, of_key = slots[order], of_key[order]
        started = torch.cumsum(arity - 2, 0) - (arity - 2)
        within = torch.arange(len(slots), device=device) - started[of_key]
        place[first[of_key] + 2 + within] = 2 * relations + qualifier[slots]
        seen = torch.zeros(int(arity.max()) + 1, dtype=torch.bool, device=device)
        seen[arity] = True
        return cls(key, first, place, seen)

    def lookup(self, relation: Tensor, qualifier: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """(rows,) int64 where the positions of each row's composite relation begin, and (rows,) bool whether training
        had it; from (rows,) relations and (rows, most) those of qualifiers that are `present`.
        """
        key = mixed(~relation) + torch.where(present, mixed(qualifier), 0).sum(1)
        at = torch.searchsorted(self.key, key).clamp(max=len(self.key) - 1)
        return self.first[at], self.key[at] == key
