"""A fact as a set of pairs of a role and a value, judged by the lowest features of its pairs (NaLP and tNaLP).

The head of relation r plays one role, its tail another, and each relation of a qualifier a third: roles have ids r,
relations + r and 2 × relations + q. What a channel makes of a pair is pooled by the minimum over pairs, so a question
is read once as the minimum over its visible pairs, and a candidate adds one pair to it.

The plain form is `Nalp.fact_score`, which writes a fact down and every pair of its pairs: of a fact of m pairs, m²
features instead of m, and for every candidate anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from hynt.batches.buckets import rows_by_key
from hynt.batches.masked_batch import MaskedBatch, asked_slots
from hynt.batches.questions import EncodedQuestion
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.kernels.swept_minimum import NOTHING, slot_minimum

HELD_ON_GPU, HELD_ON_CPU = 1 << 28, 1 << 24
"""How many features of candidates are held at once."""


class Channel(Protocol):
    """What can be made of a pair: linear in role and value, then `after` to features, then `finish` to a score."""

    width: int  # features of a pair

    def role_part(self, roles: Tensor) -> Tensor:
        """(…, hidden) from (…) int64."""
        ...

    def value_part(self, values: Tensor) -> Tensor:
        """(…, hidden) from (…) int64."""
        ...

    def both(self, roles: Tensor, values: Tensor) -> Tensor:
        """(n, hidden) the sum of both parts from (n,) int64 each."""
        ...

    def after(self, joined: Tensor, counted: Tensor | None) -> Tensor:
        """(…, width) from the sum of both parts. `counted` (n,) bool: rows that make statistics; None: fixed ones."""
        ...

    def finish(self, lowest: Tensor) -> Tensor:
        """(…) scores from (…, width) minima over pairs."""
        ...


@dataclass(frozen=True, eq=False)
class PairQuestion(EncodedQuestion):
    """The minima over the visible pairs, channel by channel, and what stands beside the masked component."""

    asked: Tensor  # (rows,) int64 position
    head: Tensor  # (rows,) int64
    tail: Tensor  # (rows,) int64
    value: Tensor  # (rows,) int64 the value of the asked qualifier, where its relation is asked


def role_count(relations: int) -> int:
    """Every relation has a role for heads, one for tails and one for values of qualifiers."""
    return 3 * relations


def lowest_features(channels: Sequence[Channel], batch: MaskedBatch, counted: Tensor | None, shown: Tensor) -> Tensor:
    """(rows, widths) minima over the pairs of each row: heads, tails and slots, of which `shown` (2 rows + slots,) bool
    take part; `counted`, as long, make statistics.
    """
    rows, relations = len(batch), batch.sizes.relations
    relation, qualifier = (ids.clamp(max=relations - 1) for ids in (batch.relation, batch.qualifier_relation))
    roles = torch.cat([relation, relations + relation, 2 * relations + qualifier])
    values = torch.cat([batch.head, batch.tail_entity, batch.qualifier_entity])
    features = torch.cat([c.after(c.both(roles, values), counted) for c in channels], 1)
    head, tail, slots = torch.split(features, [rows, rows, len(features) - 2 * rows])
    head = torch.where(shown[:rows].unsqueeze(1), head, NOTHING)
    tail = torch.where(shown[rows : 2 * rows].unsqueeze(1), tail, NOTHING)
    return torch.minimum(torch.minimum(head, tail), slot_minimum(slots, shown[2 * rows :], batch.layout))


def pair_scores(channels: Sequence[Channel], lowest: Tensor) -> Tensor:
    """(…) the lowest of the channels' scores, from (…, widths) minima."""
    pieces = torch.split(lowest, [channel.width for channel in channels], -1)
    scores = [channel.finish(piece) for channel, piece in zip(channels, pieces, strict=True)]
    return torch.stack(scores).amin(0)


def score_whole(channels: Sequence[Channel], batch: MaskedBatch, real: Tensor) -> Tensor:
    """(rows,) scores of whole facts; `real` (rows,) bool is false for filler."""
    shown = torch.cat([torch.ones_like(real), torch.ones_like(real), batch.qualifier_present])
    counted = torch.cat([real, real, batch.qualifier_present & real[batch.places.slot_row]])
    return pair_scores(channels, lowest_features(channels, batch, counted, shown))


def read_pairs(channels: Sequence[Channel], batch: MaskedBatch) -> PairQuestion:
    """All visible pairs, once. The relation of a triplet is in two pairs: neither is visible where it is asked."""
    asked = batch.asked
    asks_relation, asks_value = asked_slots(asked, batch.places)
    slots = batch.qualifier_present & ~asks_relation & ~asks_value
    shown = torch.cat([(asked != HEAD) & (asked != RELATION), (asked != TAIL) & (asked != RELATION), slots])
    value = batch.qualifier_entity[batch.slot_of_asked] if batch.layout.slots else batch.head
    lowest = lowest_features(channels, batch, None, shown)
    return PairQuestion(lowest, batch.asked_relation(), asked, batch.head, batch.tail_entity, value)


def score_values(channels: Sequence[Channel], question: PairQuestion, ids: Tensor, relations: int) -> Tensor:
    """(rows, candidates) with the tokens `ids`, (candidates,) or (rows, candidates), in the masked place.

    What a pair becomes depends on role and candidate alone, so questions about one role share it.
    """
    place = torch.where(question.asked == HEAD, 0, torch.where(question.asked == TAIL, 1, 2))
    role = place * relations + question.relation
    if ids.dim() == 2:
        pairs = [c.after(c.role_part(role).unsqueeze(1) + c.value_part(ids), None) for c in channels]
        return pair_scores(channels, torch.minimum(question.encoded.unsqueeze(1), torch.cat(pairs, -1)))
    chunks = torch.split(ids, max(1, _held(question.encoded) // question.encoded.shape[1]))
    result = question.encoded.new_zeros(len(role), len(ids))
    for key, rows in rows_by_key(role):
        one, found = torch.tensor(key, device=ids.device), []
        for chunk in chunks:
            pair = torch.cat([c.after(c.role_part(one) + c.value_part(chunk), None) for c in channels], -1)
            # Each question by itself: a product of several would be rounded by how many they are.
            each = [pair_scores(channels, torch.minimum(question.encoded[row], pair)) for row in torch.split(rows, 1)]
            found.append(torch.stack(each))
        result = result.index_put((rows,), torch.cat(found, 1))
    return result


def score_relations(channels: Sequence[Channel], question: PairQuestion, relations: int) -> Tensor:
    """(rows, relations) with each relation in the masked place; that of a triplet in the roles of head and tail."""
    every = torch.arange(relations, device=question.asked.device)
    heads, tails, qualifiers = ([c.role_part(first * relations + every) for c in channels] for first in range(3))

    def pairs(value: Tensor, roles: list[Tensor]) -> Tensor:
        """(relations, widths) with the one value of (1,) in each role."""
        made = (c.after(role + c.value_part(value), None) for c, role in zip(channels, roles, strict=True))
        return torch.cat(list(made), -1)

    def scores(one: PairQuestion, asked: int) -> Tensor:
        if asked == RELATION:
            pair = torch.minimum(pairs(one.head, heads), pairs(one.tail, tails))
        else:
            pair = pairs(one.value, qualifiers)
        return pair_scores(channels, torch.minimum(one.encoded, pair))

    each = torch.split(torch.arange(len(question.asked), device=every.device), 1)
    asked = question.asked.tolist()
    return torch.stack([scores(question.take(row), place) for row, place in zip(each, asked, strict=True)])


def _held(features: Tensor) -> int:
    return HELD_ON_GPU if features.is_cuda else HELD_ON_CPU
