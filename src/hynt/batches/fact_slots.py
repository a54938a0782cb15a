"""Facts laid out as slots, and sorted lists that say which row each item belongs to.

A fact has a slot for its head, one for its tail and one for each qualifier's value; its slots lie side by side. Every
list is sorted by who reads or receives, so sums run over neighbours, in one order, without atomics.

For many processors a list is cut: each row's items in pieces of bounded length, in a fixed order. A row with few items
is one piece and finished at once. The pieces of a long row leave partial results in numbered places, which are then
added in their order: no atomics, and the same sums every time. Shapes follow from the number of rows and items alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors
from hynt.graph.fact_table import HEAD, TAIL

ROLES = 3
HEAD_ROLE, TAIL_ROLE, QUALIFIER_ROLE = range(ROLES)
"""Where a value stands in its fact. A place is a relation and a role in it: relation × ROLES + role."""


def role_at(position: Tensor) -> Tensor:
    """(n,) int64 the role of the value at, or beside, each position (n,)."""
    return torch.where(position == HEAD, HEAD_ROLE, torch.where(position <= TAIL, TAIL_ROLE, QUALIFIER_ROLE))


class Links(NamedTuple):
    """Which row of a table each item of a list belongs to, and the items sorted by row.

    An item that belongs to no row has the number `rows`; it is sorted last and takes no part in sums.
    """

    rows: int
    row: Tensor  # (items,) int32 the row of each item
    order: Tensor  # (items,) int32 items sorted by row, stable
    offsets: Tensor  # (rows + 2,) int32 the items of row r are order[offsets[r] : offsets[r + 1]]
    pieces: Pieces | None = None  # how kernels share the work; made with the list on a GPU, else when asked for

    @classmethod
    def of(cls, row: Tensor, rows: int) -> Links:
        """From the row of each item, (items,) integers of at most `rows`."""
        row = row.to(torch.int32)
        kind = torch.int16 if rows < 2**15 - 1 else torch.int32  # a GPU sorts in time that grows with the bits
        ordered, order = torch.sort(row.to(kind), stable=True)
        bounds = torch.arange(rows + 2, dtype=kind, device=row.device)
        offsets = torch.searchsorted(ordered, bounds, out_int32=True)
        pieces = pieces_of(offsets, rows, len(row)) if row.is_cuda else None
        return cls(rows, row, order.to(torch.int32), offsets, pieces)

    def cut(self) -> Pieces:
        """The list in pieces of bounded length."""
        return pieces_of(self.offsets, self.rows, len(self.row)) if self.pieces is None else self.pieces


class Slots(NamedTuple):
    """Slots of facts, those of a fact side by side. A slot that is not there belongs to an empty range."""

    first: Tensor  # (slots,) int32 the first slot of the same fact
    stop: Tensor  # (slots,) int32 one behind its last
    fact: Tensor  # (slots,) int64 which of the facts
    role: Tensor  # (slots,) int32 HEAD_ROLE, TAIL_ROLE or QUALIFIER_ROLE
    there: Tensor  # (slots,) bool false for filler
    is_number: Tensor  # (slots,) bool
    entity: Tensor  # (slots,) int32 the entity that stands there; 0 where a number does
    number: Tensor  # (slots,) int32 the row of the number that stands there; 0 where an entity does
    relation: Tensor  # (slots,) int32 the relation: the fact's, or the qualifier's

    def shifted(self, slots: int) -> Slots:
        """The same behind so many other slots."""
        return self._replace(first=self.first + slots, stop=self.stop + slots)


class NumberRows(NamedTuple):
    """The numbers of some facts, each once, and where each stands."""

    relation: Tensor  # (numbers,) int64
    value: Tensor  # (numbers,) float32 scaled
    plain: Tensor  # (numbers,) float64 in the graph's unit
    of_tail: Tensor  # (facts,) int32 the row of each fact's number; 0 where the tail is an entity
    of_qualifier: Tensor  # (qualifiers + 1,) int32 likewise

    @classmethod
    def of(cls, facts: FactTensors) -> NumberRows:
        """All numbers: tails first, then qualifiers."""
        of_tail, of_qualifier = facts.tail_is_number, facts.qualifier_is_number[:-1]
        tails = torch.cumsum(of_tail, 0).to(torch.int32)
        total = int(tails[-1]) if len(tails) else 0
        qualifiers = torch.cumsum(facts.qualifier_is_number, 0).to(torch.int32) + total
        return cls(
            torch.cat([facts.relation[of_tail], facts.qualifier_relation[:-1][of_qualifier]]).long(),
            torch.cat([facts.tail_number[of_tail], facts.qualifier_number[:-1][of_qualifier]]),
            torch.cat([facts.tail_value[of_tail], facts.qualifier_value[:-1][of_qualifier]]),
            torch.where(of_tail, tails - 1, 0),
            torch.where(facts.qualifier_is_number, qualifiers - 1, 0),
        )

    def of_facts(self, facts: FactTensors, rows: Tensor) -> tuple[NumberRows, Tensor]:
        """The numbers of the facts at `rows` (k,) int64 alone, and which these are of all, (numbers,) int64."""
        mine = torch.zeros(len(facts), dtype=torch.bool, device=facts.device).index_fill_(0, rows, True)
        of_qualifier = torch.repeat_interleave(mine, facts.qualifier_counts(), output_size=facts.qualifier_total)
        kept = torch.cat([mine[facts.tail_is_number], of_qualifier[facts.qualifier_is_number[:-1]]])
        place = functional.pad((torch.cumsum(kept, 0) - 1).clamp(min=0).to(torch.int32), (0, 1))
        chosen = torch.nonzero(kept).squeeze(1)
        of_tail, of_qualifier = (place[column.long()] for column in (self.of_tail, self.of_qualifier))
        relation, value, plain = (column[chosen] for column in (self.relation, self.value, self.plain))
        return NumberRows(relation, value, plain, of_tail, of_qualifier), chosen

    def distinct(self) -> NumberRows:
        """The same numbers, each only once: facts that give the same date share its row."""
        bits = self.value.view(torch.int32).long() & 0xFFFFFFFF
        scaled, plain = (
            torch.unique(one, return_inverse=True)[1] for one in (self.relation << 32 | bits, self.plain)
        )  # two numbers may be the same on a scale of single precision
        key, place = torch.unique(scaled << 32 | plain, return_inverse=True)
        place, first = functional.pad(place.to(torch.int32), (0, 1)), torch.zeros_like(key)
        first[place[:-1].long()] = torch.arange(len(self.value), device=key.device)
        of_tail, of_qualifier = (place[column.long()] for column in (self.of_tail, self.of_qualifier))
        return NumberRows(self.relation[first], self.value[first], self.plain[first], of_tail, of_qualifier)


def slots_of(facts: FactTensors, rows: Tensor, numbers: NumberRows, capacity: int) -> Slots:
    """Slots of the facts `rows` (k,) int64, with places for `capacity` qualifiers in all.

    Places left over are filler; qualifiers beyond the capacity are not read. No shape depends on the data.
    """
    k, device = len(rows), rows.device
    begin = facts.offsets[rows]
    kept = torch.cumsum(facts.offsets[rows + 1] - begin, 0).clamp(max=capacity)
    ends = kept + 2 * torch.arange(1, k + 1, device=device)
    starts = torch.cat([ends.new_zeros(1), ends])
    place = torch.arange(2 * k + capacity, device=device)
    fact = torch.searchsorted(ends, place, right=True).clamp(max=max(k - 1, 0))
    first = starts[fact]
    there = place < ends[fact]
    stop = torch.where(there, ends[fact], first)
    within = (place - first).clamp(min=0)
    of_fact = rows[fact]
    role = within.clamp(max=QUALIFIER_ROLE)
    qualifier = torch.where(there & (within >= 2), begin[fact] + within - 2, facts.qualifier_total)
    in_triplet, is_tail = within < 2, within == 1
    is_number = torch.where(in_triplet, is_tail & facts.tail_is_number[of_fact], facts.qualifier_is_number[qualifier])
    of_triplet = torch.where(is_tail, facts.tail_entity[of_fact], facts.head[of_fact])
    entity = torch.where(in_triplet, of_triplet, facts.qualifier_entity[qualifier])
    number = torch.where(in_triplet, numbers.of_tail[of_fact], numbers.of_qualifier[qualifier])
    relation = torch.where(in_triplet, facts.relation[of_fact], facts.qualifier_relation[qualifier])
    return Slots(
        first.to(torch.int32),
        stop.to(torch.int32),
        fact,
        role.to(torch.int32),
        there,
        is_number & there,
        torch.where(is_number, 0, entity).to(torch.int32),
        torch.where(is_number, number, 0).to(torch.int32),
        relation.to(torch.int32),
    )


LONGEST = 64
"""Items of a piece."""


class Pieces(NamedTuple):
    """Pieces of `rows` rows and, behind them, of the items that belong to no row."""

    row: Tensor  # (pieces,) int32 the row; `rows` for items of no row, `rows + 1` for pieces that are not needed
    first: Tensor  # (pieces,) int32 the first of its items in the sorted list
    last: Tensor  # (pieces,) int32 one behind the last
    place: Tensor  # (pieces,) int32 where a piece of a long row leaves its part; `places` for a row that is one piece
    long_row: Tensor  # (longs,) int32 rows of several pieces; `rows + 1` where there are fewer of them
    long_first: Tensor  # (longs,) int32 the first of its places
    long_last: Tensor  # (longs,) int32 one behind the last
    places: int


HAS_KERNEL = find_spec("triton") is not None


def pieces_of(offsets: Tensor, rows: int, items: int) -> Pieces:
    """From the offsets of `Links`, (rows + 2,) int32."""
    device = offsets.device
    longs, places = items // LONGEST + 1, 2 * (items // LONGEST) + 2
    if HAS_KERNEL and offsets.is_cuda:
        from hynt.batches.piece_kernel import cut_by_kernel

        return Pieces._make([*cut_by_kernel(offsets, rows, items, LONGEST), places])
    count = torch.diff(offsets)  # (rows + 1,)
    parts = ((count + LONGEST - 1) // LONGEST).clamp(min=1)
    ends = torch.cumsum(parts, 0, dtype=torch.int32)
    number = torch.arange(rows + 1 + items // LONGEST, dtype=torch.int32, device=device)
    row = torch.searchsorted(ends, number, right=True, out_int32=True)
    real = row.clamp(max=rows)
    within = number - (ends - parts).index_select(0, real)
    first = offsets.index_select(0, real) + within * LONGEST
    last = torch.minimum(first + LONGEST, offsets.index_select(0, real + 1))
    is_long = parts > 1
    of_long = torch.where(is_long, parts, 0)
    place_ends = torch.cumsum(of_long, 0, dtype=torch.int32)
    place_first = place_ends - of_long
    place = torch.where(is_long.index_select(0, real), place_first.index_select(0, real) + within, places)
    nth = torch.where(is_long, torch.cumsum(is_long, 0) - 1, longs)
    long_row = torch.full((longs + 1,), rows + 1, dtype=torch.int32, device=device)
    long_row.index_copy_(0, nth, torch.arange(rows + 1, dtype=torch.int32, device=device))
    long_row = long_row[:longs]
    of_row = long_row.clamp(max=rows)
    return Pieces(
        row,
        torch.where(row > rows, 0, first),
        torch.where(row > rows, 0, last),
        place,
        long_row,
        place_first.index_select(0, of_row),
        place_ends.index_select(0, of_row),
        places,
    )
