"""A triplet judged by itself and together with each of its qualifiers (HINGE and NeuInfer).

Both models begin with a map that is linear in the parts of (h, r, t) and of (h, r, t, q, v). So a candidate for one
part adds one term to what the other parts make together: candidates are swept without building their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.masked_batch import MaskedBatch
from hynt.models.contract import Question, position_of
from hynt.models.layers.slot_minimum import NOTHING, slot_minimum
from hynt.models.layers.tokens import groups_of

HELD_ON_GPU, HELD_ON_CPU = 1 << 26, 1 << 22
"""How many features of candidates are held at once."""
_HEAD, _RELATION, _TAIL, _QUALIFIER, _VALUE = range(5)
"""Parts of a qualified triplet, in the order of `Position`."""

Linear: TypeAlias = Callable[[Tensor, int], Tensor]


class TripletNetwork(Protocol):
    """A model's layers, in the terms of the sweep. Parts are numbered h 0, r 1, t 2, q 3, v 4."""

    entity: nn.Parameter  # (tokens, d)
    relation: nn.Parameter  # (relations, d)

    def triplet_linear(self, vectors: Tensor, first: int) -> Tensor:
        """(n, F) what parts `first`, `first` + 1, … with (n, parts, d) vectors add to the triplet's first layer."""
        ...

    def qualifier_linear(self, vectors: Tensor, first: int) -> Tensor:
        """(n, G), the same for the first layer of a triplet with a qualifier."""
        ...

    def triplet_after(self, added: Tensor, counted: Tensor | None) -> Tensor:
        """(…, A) from (…, F). `counted` (n,) bool: rows that make statistics; None: fixed ones."""
        ...

    def qualifier_after(self, added: Tensor, counted: Tensor | None) -> Tensor:
        """(…, P) from (…, G)."""
        ...

    def finish(self, triplet: Tensor, lowest: Tensor | None, has_any: Tensor) -> Tensor:
        """(…) scores from (…, A), from (…, P) minima over qualifiers, None where no row has places for any, and from
        whether there is one, (…) bool: where not, the minima are infinite.
        """
        ...


@dataclass(frozen=True, eq=False)
class FactQuestion(Question):
    """The visible parts, by id: encoding them is a small part of sweeping candidates."""

    asked: Tensor  # (rows,) int64 position
    head: Tensor  # (rows,) int64
    primary: Tensor  # (rows,) int64 the triplet's relation
    tail: Tensor  # (rows,) int64
    qualifier: Tensor  # (rows, most) int64
    value: Tensor  # (rows, most) int64
    present: Tensor  # (rows, most) bool


def score_whole(network: TripletNetwork, batch: MaskedBatch, real: Tensor) -> Tensor:
    """(rows,) scores of whole facts; `real` (rows,) bool is false for filler."""
    rows = len(batch)
    entities = functional.embedding(torch.cat([batch.head, batch.tail_entity, batch.qualifier_entity]), network.entity)
    relations = _relations(network, torch.cat([batch.relation, batch.qualifier_relation]))
    vectors = torch.stack([entities[:rows], relations[:rows], entities[rows : 2 * rows]], 1)
    triplet = network.triplet_after(network.triplet_linear(vectors, 0), real)
    none = torch.zeros_like(real)
    if not batch.layout.slots:
        return network.finish(triplet, None, none)
    slot_row, present = batch.places.slot_row, batch.qualifier_present
    # Rows without places for qualifiers come first: nothing need be made of them here.
    plain = sum(size for size, capacity in batch.layout.segments if capacity == 0)
    of_triplet = network.qualifier_linear(vectors[plain:], 0)[slot_row - plain]
    of_qualifier = network.qualifier_linear(torch.stack([relations[rows:], entities[2 * rows :]], 1), _QUALIFIER)
    features = network.qualifier_after(of_triplet + of_qualifier, present & real[slot_row])
    has_any = none.float().index_add(0, slot_row, present.float()) > 0
    return network.finish(triplet, slot_minimum(features, present, batch.layout), has_any)


def read_fact(batch: MaskedBatch) -> FactQuestion:
    """The ids of the visible parts, padded to the longest fact of the batch."""
    most = max((capacity for _, capacity in batch.layout.segments), default=0)
    columns = []
    for flat in (batch.qualifier_relation, batch.qualifier_entity, batch.qualifier_present):
        views = [
            functional.pad(flat[span.slots].view(span.size, span.capacity), (0, most - span.capacity))
            for span in batch.layout.spans()
        ]
        columns.append(torch.cat(views))
    nothing = torch.zeros(len(batch), 0, device=batch.asked.device)
    return FactQuestion(
        nothing, batch.asked_relation(), batch.asked, batch.head, batch.relation, batch.tail_entity, *columns
    )  # fmt: skip


def sweep(network: TripletNetwork, question: FactQuestion, ids: Tensor) -> Tensor:
    """(rows, candidates) scores with each candidate in the hidden place: tokens or relations, whichever is asked.

    `ids` (candidates,) or (rows, candidates).
    """
    result = torch.zeros(len(question.asked), ids.shape[-1], device=ids.device)
    for part, rows in groups_of(position_of(question.asked)):
        for some in torch.split(rows, _rows_at_once(network, question)):
            mine = ids if ids.dim() == 1 else ids[some]
            result = result.index_put((some,), _swept(network, question.take(some), part, mine))
    return result


def _swept(network: TripletNetwork, question: FactQuestion, hidden: int, ids: Tensor) -> Tensor:
    table = network.relation if hidden in (_RELATION, _QUALIFIER) else network.entity
    scores = _of_triplet if hidden <= _TAIL else _of_qualifier
    chunks = torch.split(ids, max(1, _held(network) // len(question.asked)), -1)
    return torch.cat([scores(network, question, hidden, functional.embedding(chunk, table)) for chunk in chunks], 1)


def _of_triplet(network: TripletNetwork, question: FactQuestion, hidden: int, candidates: Tensor) -> Tensor:
    """(rows, c): a candidate for a part of the triplet changes what every qualifier makes with it."""
    parts = [part for part in _triplet_parts(network, question) if part[0] != hidden]
    added = _candidate(network.triplet_linear, candidates, hidden) + _added(network.triplet_linear, parts).unsqueeze(1)
    triplet = network.triplet_after(added, None)
    has_any = question.present.any(1, keepdim=True)
    if not question.present.shape[1]:
        return network.finish(triplet, None, has_any)
    around = _candidate(network.qualifier_linear, candidates, hidden)
    around = around + _added(network.qualifier_linear, parts).unsqueeze(1)
    own = _qualifier_parts(network, question)
    lowest: Tensor | None = None
    for slot in range(question.present.shape[1]):
        features = network.qualifier_after(around + own[:, slot].unsqueeze(1), None)
        features = torch.where(question.present[:, slot, None, None], features, NOTHING)
        lowest = features if lowest is None else torch.minimum(lowest, features)
    return network.finish(triplet, lowest, has_any)


def _of_qualifier(network: TripletNetwork, question: FactQuestion, hidden: int, candidates: Tensor) -> Tensor:
    """(rows, c): a candidate for a part of a qualifier changes that qualifier alone."""
    parts = list(_triplet_parts(network, question))
    triplet = network.triplet_after(_added(network.triplet_linear, parts), None).unsqueeze(1)
    around = _added(network.qualifier_linear, parts)
    mine = (torch.arange(question.present.shape[1], device=candidates.device) * 2 + hidden) == question.asked[:, None]
    others = network.qualifier_after(around.unsqueeze(1) + _qualifier_parts(network, question), None)
    shown = question.present & ~mine
    rest = torch.where(shown.unsqueeze(2), others, NOTHING).amin(1)
    beside = (question.qualifier if hidden == _VALUE else question.value)[mine].unsqueeze(1)
    if hidden == _VALUE:
        partner = network.qualifier_linear(_relations(network, beside), _QUALIFIER)
    else:
        partner = network.qualifier_linear(functional.embedding(beside, network.entity), _VALUE)
    added = _candidate(network.qualifier_linear, candidates, hidden) + (around + partner).unsqueeze(1)
    lowest = torch.minimum(network.qualifier_after(added, None), rest.unsqueeze(1))
    return network.finish(triplet, lowest, torch.ones_like(question.asked, dtype=torch.bool).unsqueeze(1))


def _triplet_parts(network: TripletNetwork, question: FactQuestion) -> Iterator[tuple[int, Tensor]]:
    yield _HEAD, functional.embedding(question.head, network.entity)
    yield _RELATION, _relations(network, question.primary)
    yield _TAIL, functional.embedding(question.tail, network.entity)


def _qualifier_parts(network: TripletNetwork, question: FactQuestion) -> Tensor:
    """(rows, most, G) what qualifiers add."""
    vectors = torch.stack(
        [_relations(network, question.qualifier), functional.embedding(question.value, network.entity)], 2
    )
    return network.qualifier_linear(vectors.flatten(0, 1), _QUALIFIER).view(*question.present.shape, -1)


def _added(linear: Linear, parts: list[tuple[int, Tensor]]) -> Tensor:
    terms = [linear(vector.unsqueeze(1), part) for part, vector in parts]
    return torch.stack(terms).sum(0)


def _candidate(linear: Linear, vectors: Tensor, part: int) -> Tensor:
    """(1, c, F) or (rows, c, F) from (c, d) or (rows, c, d)."""
    wide = vectors if vectors.dim() == 3 else vectors.unsqueeze(0)
    return linear(wide.flatten(0, 1).unsqueeze(1), part).view(*wide.shape[:2], -1)


def _relations(network: TripletNetwork, ids: Tensor) -> Tensor:
    """Vectors of relations; a hidden one has none, and whatever stands for it here is not used."""
    return functional.embedding(ids.clamp(max=len(network.relation) - 1), network.relation)


def _width(network: TripletNetwork) -> int:
    blank = network.entity.new_zeros(1, 1, network.entity.shape[1])
    with torch.no_grad():
        return max(network.triplet_linear(blank, 0).shape[1], network.qualifier_linear(blank, 0).shape[1])


def _held(network: TripletNetwork) -> int:
    return (HELD_ON_GPU if network.entity.is_cuda else HELD_ON_CPU) // _width(network)


def _rows_at_once(network: TripletNetwork, question: FactQuestion) -> int:
    return max(1, _held(network) // max(64, question.present.shape[1]))
