"""Drawing the steps of "observed and target facts" on a GPU, where no shape may depend on the draw.

What a captured step reads must stay where it is. So what is drawn for a step, nested tuples and dataclasses of tensors,
is packed into one long tensor per type, copied with a few launches into
buffers that stay, and read from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.batches.fact_slots import Links, NumberRows
from hynt.batches.fact_tensors import FactTensors

if TYPE_CHECKING:
    from hynt.objectives.observed_and_targets import ObservedAndTargets, ObservedStep

ALIGNMENT = 16
"""Every tensor begins at a multiple of so many items: kernels load aligned rows faster."""

Nested = TypeVar("Nested")


class Packing(Generic[Nested]):
    """How values like an example are packed. Tensors that are `constant` are left where they are."""

    def __init__(self, example: Nested, constant: Iterable[Tensor] = ()) -> None:
        self._constant = {id(one) for one in constant}
        self._shapes: Nested = _rebuilt(example, lambda one: one if self._stays(one) else one.to("meta"))
        self._kinds = sorted({one.dtype for one in _tensors(self._shapes) if one.is_meta}, key=str)

    def _stays(self, one: Tensor) -> bool:
        return id(one) in self._constant

    def packed(self, value: Nested) -> tuple[Tensor, ...]:
        """One tensor (n,) per type."""
        moving = [one for one in _tensors(value) if not self._stays(one)]
        sizes = {kind: sum(_room(one) for one in moving if one.dtype == kind) for kind in self._kinds}
        buffers = tuple(torch.empty(sizes[kind], dtype=kind, device=moving[0].device) for kind in self._kinds)
        places = [one for one in _tensors(self.unpacked(buffers)) if not self._stays(one)]
        for kind in self._kinds:
            both = [(place, one) for place, one in zip(places, moving, strict=True) if one.dtype == kind]
            torch._foreach_copy_([place for place, _ in both], [one for _, one in both])
        return buffers

    def unpacked(self, buffers: tuple[Tensor, ...]) -> Nested:
        """The value as views of these tensors."""
        by_kind, at = dict(zip(self._kinds, buffers, strict=True)), dict.fromkeys(self._kinds, 0)

        def placed(one: Tensor) -> Tensor:
            if not one.is_meta:
                return one
            begin = at[one.dtype]
            at[one.dtype] += _room(one)
            return by_kind[one.dtype][begin : begin + one.numel()].view(one.shape)

        found: Nested = _rebuilt(self._shapes, placed)
        return found


def _room(one: Tensor) -> int:
    return -(-one.numel() // ALIGNMENT) * ALIGNMENT


def _rebuilt(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with other tensors."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return type(value)(*(_rebuilt(one, change) for one in value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _rebuilt(getattr(value, one.name), change) for one in fields(value)})
    return value


def _tensors(value: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def taken(one: Tensor) -> Tensor:
        found.append(one)
        return one

    _rebuilt(value, taken)
    return found


UNLIKELY = 50.0
"""A captured step has room for the qualifiers of all draws but one in e⁵⁰; that one would stop training aloud."""


class Room(NamedTuple):
    """How many places a step has for what varies from draw to draw."""

    observed: int  # for qualifiers of observed facts
    asked: int  # for qualifiers of facts asked about
    entities: int  # for questions for entities
    numbers: int  # for questions for numbers
    neighbours: int  # for neighbours whose values a question for a number is told

    def relation_nodes(self, facts: FactTensors, targets: int) -> int:
        """Relations, and a question for every relation of the targets."""
        return facts.sizes.relations + targets + self.asked


class ReadNumbers(NamedTuple):
    """The numbers that a step reads."""

    features: Tensor  # (numbers, ·)
    relation: Links  # numbers → relation nodes
    value: Tensor  # (numbers + 1,) float32 scaled; filler has the row 0, which must be there

    @classmethod
    def of(cls, numbers: NumberRows, features: Tensor, relation_nodes: int) -> ReadNumbers:
        return cls(features, Links.of(numbers.relation, relation_nodes), functional.pad(numbers.value, (0, 1)))


class DrawnBeside:
    """Draws steps on a GPU, on a stream of its own: while one step runs, the next is drawn. All have one shape, so
    drawing is captured once and replayed from other random numbers.
    """

    def __init__(self, stream: ObservedAndTargets) -> None:
        facts, split = stream.facts, stream.split
        self._stream, self._side = stream, torch.cuda.Stream(facts.device)  # type: ignore[no-untyped-call]
        # Longest facts first: a kernel's tile then holds facts of like length, and the longest do not finish last.
        order = torch.argsort(facts.qualifier_counts(), descending=True, stable=True)
        has_number = facts.tail_is_number[order]
        self._kinds = (order[~has_number], order[has_number])
        self._sizes = ((split[0], split[2]), (split[1], split[3]))
        self._room = self._room_for_all()
        relation_nodes = self._room.relation_nodes(facts, split.targets)
        self._read = ReadNumbers.of(stream.numbers, stream.features, relation_nodes)
        self._chances = [torch.zeros(len(rows), dtype=torch.float64, device=facts.device) for rows in self._kinds]
        self._generator = torch.Generator(facts.device)
        self._captured: tuple[torch.cuda.CUDAGraph, Packing[ObservedStep], tuple[Tensor, ...]] | None = None
        self._earlier = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def _room_for_all(self) -> Room:
        facts, of_number = self._stream.facts, self._stream.number_counts
        counts, total = facts.qualifier_counts(), Room(0, 0, 0, 0, 0)
        for rows, (seen, asked) in zip(self._kinds, self._sizes, strict=True):
            mine, numbers, around = counts[rows], of_number[rows], self._stream.neighbour_counts[rows]
            needed = [room_for(mine, seen), *(room_for(one, asked) for one in (mine, mine - numbers, numbers, around))]
            total = Room(*(one + other for one, other in zip(total, needed, strict=True)))
        split = self._stream.split
        entities = total.entities + 2 * split.target_entities + split.target_numbers
        return total._replace(entities=entities, numbers=total.numbers + split.target_numbers)

    def drawn(self, seed: int) -> tuple[Tensor, ...]:
        """A step, packed; it is ready for the current stream."""
        here = torch.cuda.current_stream(self._stream.facts.device)
        if self._captured is None:
            self._side.wait_stream(here)
            self._captured = self._capture()
        else:
            self._side.wait_event(self._earlier)  # not before the last step but one is over: few are kept, not many
        graph, _, packed = self._captured
        with torch.cuda.stream(self._side):
            self._generator.manual_seed(seed)
            for chance in self._chances:
                chance.uniform_(generator=self._generator)
            graph.replay()
            drawn = tuple(one.clone() for one in packed)
        here.wait_stream(self._side)
        for one in drawn:
            one.record_stream(here)
        self._earlier = here.record_event()
        return drawn

    def step(self, packed: tuple[Tensor, ...]) -> ObservedStep:
        """The step that was packed into these tensors."""
        assert self._captured is not None
        return self._captured[1].unpacked(packed)

    def _capture(self) -> tuple[torch.cuda.CUDAGraph, Packing[ObservedStep], tuple[Tensor, ...]]:
        read = self._read
        relation = [one for one in (*read.relation, *read.relation.cut()) if isinstance(one, Tensor)]
        with torch.cuda.stream(self._side):
            packing = Packing(self._chosen(), [read.features, read.value, *relation, self._stream.known.answers])
            packing.packed(self._chosen())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._side):
            packed = packing.packed(self._chosen())
        return graph, packing, packed

    def _chosen(self) -> ObservedStep:
        """The step that the random numbers choose: those of the lowest numbers are observed, the next asked about."""
        parts = []
        for rows, chance, (seen, asked) in zip(self._kinds, self._chances, self._sizes, strict=True):
            place = torch.argsort(chance, stable=True)
            # A GPU sorts numbers of 32 bits in half the time of those of 64.
            chosen = torch.split(place[: seen + asked].to(torch.int32), [seen, asked])
            parts.append([rows.index_select(0, one.sort().values) for one in chosen])
        (first, first_asked), (second, second_asked) = parts
        return self._stream.step((first, second), torch.cat([first_asked, second_asked]), self._room, self._read)


def room_for(counts: Tensor, chosen: int) -> int:
    """How many things so many random facts have, from the counts of all, (n,): by Chernoff's bound more are met in
    fewer than one of e⁵⁰ draws.
    """
    if not chosen:
        return 0
    counts = counts.double().sort(descending=True).values.cpu()
    value, times = torch.unique(counts, return_counts=True)
    # The bound holds at any rate; the best is taken.
    rate = torch.logspace(-5, 2, 300, dtype=torch.float64).unsqueeze(1) / counts[0].clamp(min=1)
    share, rest = torch.log(times / len(counts)), len(counts) - chosen
    grown, shrunk = (torch.logsumexp(sign * rate * value + share, 1) for sign in (1, -1))
    most = ((chosen * grown + UNLIKELY) / rate.squeeze(1)).min()
    least_left = ((-rest * shrunk - UNLIKELY) / rate.squeeze(1)).max().clamp(min=0)
    return int(torch.stack([counts[:chosen].sum(), most, counts.sum() - least_left]).min())
