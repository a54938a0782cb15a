"""A triplet judged by itself and together with each of its qualifiers (HINGE and NeuInfer).

Both models begin with a map that is linear in the parts of (h, r, t) and of (h, r, t, q, v). So a candidate for one
part adds one term to what the other parts make together: candidates are swept without building their facts.

The plain form is `Hinge.fact_score`, which writes a fact down with its candidate in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.buckets import rows_by_key
from hynt.batches.masked_batch import MaskedBatch
from hynt.batches.questions import EncodedQuestion, position_of
from hynt.kernels.swept_minimum import NOTHING, SweptMinimum, slot_minimum

HELD_ON_GPU, HELD_ON_CPU = 1 << 26, 1 << 20
"""How many features of candidates are held at once."""
HELD_BY_KERNEL, ROWS_OF_KERNEL = 1 << 28, 64
"""Where one kernel makes the pairs: features of candidates alone, and questions at once."""
_HEAD, _RELATION, _TAIL, _QUALIFIER, _VALUE = range(5)
"""Parts of a qualified triplet, in the order of `Position`."""


class PartLayer(Protocol):
    """What a model makes of parts side by side. Parts are numbered h 0, r 1, t 2, q 3, v 4.

    In training that is `after` of the sum of `linear` terms. With fixed statistics it is also `rest` of the sum of
    their `fold`s, one of them `shifted`: then a candidate's term is folded once for all questions.
    """

    @property
    def is_monotone(self) -> bool:
        """Whether `rest` works feature by feature and never falls: then a minimum may be taken before it."""
        ...

    def linear(self, vectors: Tensor, first: int) -> Tensor:
        """(n, F) what parts `first`, `first` + 1, … with (n, parts, d) vectors add to the first layer."""
        ...

    def after(self, added: Tensor, counted: Tensor) -> Tensor:
        """(n, A) from (n, F) sums over all parts. `counted` (n,) bool: rows that make statistics while training."""
        ...

    def fold(self, added: Tensor, *, shifted: bool) -> Tensor:
        """(…, F) by fixed statistics; with the constant term where `shifted`."""
        ...

    def rest(self, folded: Tensor) -> Tensor:
        """(…, A) from folded sums."""
        ...


class TripletNetwork(Protocol):
    """A model's layers, in the terms of the sweep."""

    entity: nn.Parameter  # (tokens, d)
    relation: nn.Parameter  # (relations, d)

    def vectors(self, ids: Tensor) -> Tensor:
        """(…, d) vectors of visible tokens (…)."""
        ...

    @property
    def kernel(self) -> SweptMinimum | None:
        """Where scores are linear in rectified minima: what makes and sums them in one."""
        ...

    @property
    def of_triplet(self) -> PartLayer:
        """Looks at h, r, t."""
        ...

    @property
    def of_qualifier(self) -> PartLayer:
        """Looks at h, r, t, q, v."""
        ...

    def finish(self, triplet: Tensor, lowest: Tensor | None, has_any: Tensor) -> Tensor:
        """(…) scores from (…, A), from (…, P) minima over qualifiers, None where no row has places for any, and from
        whether there is one, (…) bool: where not, the minima are infinite.
        """
        ...


@dataclass(frozen=True, eq=False)
class FactQuestion(EncodedQuestion):
    """The visible parts, by id: encoding them is a small part of sweeping candidates."""

    asked: Tensor  # (rows,) int64 position
    head: Tensor  # (rows,) int64
    primary: Tensor  # (rows,) int64 the triplet's relation
    tail: Tensor  # (rows,) int64
    qualifier: Tensor  # (rows, most) int64
    value: Tensor  # (rows, most) int64
    present: Tensor  # (rows, most) bool


def fact_vectors(network: TripletNetwork, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
    """(rows, 3, d) vectors of h, r, t of whole facts, and (slots, 2, d) of q, v."""
    rows = len(batch)
    entities = functional.embedding(torch.cat([batch.head, batch.tail_entity, batch.qualifier_entity]), network.entity)
    relations = _relations(network, torch.cat([batch.relation, batch.qualifier_relation]))
    triplets = torch.stack([entities[:rows], relations[:rows], entities[rows : 2 * rows]], 1)
    return triplets, torch.stack([relations[rows:], entities[2 * rows :]], 1)


def score_whole(network: TripletNetwork, batch: MaskedBatch, real: Tensor) -> Tensor:
    """(rows,) scores of whole facts; `real` (rows,) bool is false for filler."""
    vectors, pairs = fact_vectors(network, batch)
    triplet = network.of_triplet.after(network.of_triplet.linear(vectors, 0), real)
    none = torch.zeros_like(real)
    if not batch.layout.slots:
        return network.finish(triplet, None, none)
    slot_row, present = batch.places.slot_row, batch.qualifier_present
    # Rows without places for qualifiers come first: nothing need be made of them here.
    plain = sum(size for size, capacity in batch.layout.segments if capacity == 0)
    layer = network.of_qualifier
    added = layer.linear(vectors[plain:], 0)[slot_row - plain] + layer.linear(pairs, _QUALIFIER)
    features = layer.after(added, present & real[slot_row])
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
    )


def sweep(network: TripletNetwork, question: FactQuestion, ids: Tensor) -> Tensor:
    """(rows, candidates) scores with each candidate in the masked place: tokens or relations, whichever is asked.

    `ids` (candidates,) or (rows, candidates).

    Questions are taken one by one, or in a kernel's blocks, and candidates in chunks of one size: even where a score
    stands in a product changes its last digit, so it must not depend on what else is asked.
    """
    kernel = network.kernel if network.kernel is not None and network.kernel.serves(ids) else None
    result = torch.zeros(len(question.asked), ids.shape[-1], device=ids.device)
    size = max(1, _held(network) if kernel is None else HELD_BY_KERNEL // _width(network))
    for part, rows in rows_by_key(position_of(question.asked)):
        of = partial(_terms, network, part, bool(question.present.shape[1]))
        read = _of_triplet if part <= _TAIL else _of_qualifier
        blocks = list(_blocks(rows, 1 if kernel is None else ROWS_OF_KERNEL))
        score = [read(network, question.take(some), part, kernel) for some, _ in blocks]
        found: list[list[Tensor]] = [[] for _ in blocks]
        for chunk in torch.split(ids, size, -1):
            shared = of(chunk) if chunk.dim() == 1 else None
            for (some, _), scored, line in zip(blocks, score, found, strict=True):
                line.append(scored(shared or of(chunk[some])))
        for (some, real), line in zip(blocks, found, strict=True):
            result = result.index_put((some[:real],), torch.cat(line, 1)[:real])
    return result


def _blocks(rows: Tensor, size: int) -> Iterator[tuple[Tensor, int]]:
    """Exactly `size` row numbers at a time, and how many of them count: the last are filled up with repeats."""
    for some in torch.split(rows, size):
        yield torch.cat([some, some[:1].expand(size - len(some))]), len(some)


class _Terms(NamedTuple):
    """What candidates for one part add, folded: (1, c, F) for all questions, or (rows, c, F) for each its own."""

    of_triplet: Tensor | None  # None where the part is a qualifier's
    of_qualifier: Tensor | None  # None where no fact has places for qualifiers


def _terms(network: TripletNetwork, part: int, qualified: bool, ids: Tensor) -> _Terms:
    vectors = functional.embedding(ids, network.relation if part in (_RELATION, _QUALIFIER) else network.entity)
    return _Terms(
        _candidates(network.of_triplet, vectors, part) if part <= _TAIL else None,
        _candidates(network.of_qualifier, vectors, part) if qualified else None,
    )


def _of_triplet(
    network: TripletNetwork, question: FactQuestion, hidden: int, kernel: SweptMinimum | None
) -> Callable[[_Terms], Tensor]:
    """Makes (rows, c): a candidate for a part of the triplet adds the same to what each qualifier makes with it.

    So the minimum over qualifiers is taken before the candidates come, where what follows is monotone.
    """
    parts = [part for part in _triplet_parts(network, question) if part[0] != hidden]
    first, second = network.of_triplet, network.of_qualifier
    around = first.fold(_added(first, parts), shifted=True)
    has_any = question.present.any(1, keepdim=True)
    own: Tensor | None = None
    if question.present.shape[1]:
        own = _added(second, parts).unsqueeze(1) + _qualifier_parts(network, question)
        own = torch.where(question.present.unsqueeze(2), second.fold(own, shifted=True), NOTHING)
        own = own.amin(1, keepdim=True) if second.is_monotone else own

    def score(terms: _Terms) -> Tensor:
        of_triplet, more = terms
        assert of_triplet is not None
        if kernel is not None:
            beside = () if own is None or more is None else (own.squeeze(1), more.squeeze(0))
            return kernel(around, of_triplet.squeeze(0), *beside)
        triplet = first.rest(around.unsqueeze(1) + of_triplet)
        if own is None or more is None:
            return network.finish(triplet, None, has_any)
        if second.is_monotone:
            return network.finish(triplet, second.rest(own + more), has_any)
        lowest: Tensor | None = None
        for slot in range(own.shape[1]):
            there = question.present[:, slot, None, None]
            features = second.rest(torch.where(there, own[:, slot].unsqueeze(1), 0.0) + more)
            features = torch.where(there, features, NOTHING)
            lowest = features if lowest is None else torch.minimum(lowest, features)
        return network.finish(triplet, lowest, has_any)

    return score


def _of_qualifier(
    network: TripletNetwork, question: FactQuestion, hidden: int, kernel: SweptMinimum | None
) -> Callable[[_Terms], Tensor]:
    """Makes (rows, c): a candidate for a part of a qualifier changes that qualifier alone."""
    parts = list(_triplet_parts(network, question))
    first, second = network.of_triplet, network.of_qualifier
    triplet = first.rest(first.fold(_added(first, parts), shifted=True)).unsqueeze(1)
    around = _added(second, parts)
    slot = torch.arange(question.present.shape[1], device=question.asked.device)
    mine = slot * 2 + hidden == question.asked[:, None]
    others = second.fold(around.unsqueeze(1) + _qualifier_parts(network, question), shifted=True)
    rest = torch.where((question.present & ~mine).unsqueeze(2), second.rest(others), NOTHING).amin(1, keepdim=True)
    if hidden == _VALUE:
        partner = second.linear(_relations(network, question.qualifier[mine].unsqueeze(1)), _QUALIFIER)
    else:
        partner = second.linear(network.vectors(question.value[mine].unsqueeze(1)), _VALUE)
    beside = second.fold(around + partner, shifted=True).unsqueeze(1)
    always = torch.ones_like(question.asked, dtype=torch.bool).unsqueeze(1)

    def score(terms: _Terms) -> Tensor:
        added = terms.of_qualifier
        assert added is not None
        if kernel is not None:
            # Features are not negative, so those that no candidate changes may stand inside the rectifier.
            fixed = torch.minimum(triplet, rest).squeeze(1)
            return kernel(beside.squeeze(1), added.squeeze(0), fixed, torch.zeros_like(added.squeeze(0)))
        return network.finish(triplet, torch.minimum(second.rest(beside + added), rest), always)

    return score


def _triplet_parts(network: TripletNetwork, question: FactQuestion) -> Iterator[tuple[int, Tensor]]:
    yield _HEAD, network.vectors(question.head)
    yield _RELATION, _relations(network, question.primary)
    yield _TAIL, network.vectors(question.tail)


def _qualifier_parts(network: TripletNetwork, question: FactQuestion) -> Tensor:
    """(rows, most, F) what qualifiers add."""
    vectors = torch.stack([_relations(network, question.qualifier), network.vectors(question.value)], 2)
    return network.of_qualifier.linear(vectors.flatten(0, 1), _QUALIFIER).view(*question.present.shape, -1)


def _added(layer: PartLayer, parts: list[tuple[int, Tensor]]) -> Tensor:
    return torch.stack([layer.linear(vector.unsqueeze(1), part) for part, vector in parts]).sum(0)


def _candidates(layer: PartLayer, vectors: Tensor, part: int) -> Tensor:
    """(1, c, F) or (rows, c, F) folded, from (c, d) or (rows, c, d)."""
    wide = vectors if vectors.dim() == 3 else vectors.unsqueeze(0)
    added = layer.linear(wide.flatten(0, 1).unsqueeze(1), part)
    return layer.fold(added, shifted=False).view(*wide.shape[:2], -1)


def _relations(network: TripletNetwork, ids: Tensor) -> Tensor:
    """Vectors of relations; a masked one has none, and whatever stands for it here is not used."""
    return functional.embedding(ids.clamp(max=len(network.relation) - 1), network.relation)


def _width(network: TripletNetwork) -> int:
    """How many features a pair of a question and a candidate has."""
    blank = network.entity.new_zeros(1, 1, network.entity.shape[1])
    with torch.no_grad():
        return max(layer.linear(blank, 0).shape[1] for layer in (network.of_triplet, network.of_qualifier))


def _held(network: TripletNetwork) -> int:
    """How many candidates of questions are scored at once."""
    return (HELD_ON_GPU if network.entity.is_cuda else HELD_ON_CPU) // _width(network)
