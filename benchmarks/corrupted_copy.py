"""A copy of a graph with some facts made wrong on purpose, and a list of what was done, kept aside.

Four kinds in equal shares:
  entity     an entity swapped for another one that is seen in that place of that relation
  number     a number replaced by another number of the same relation
  magnitude  a number ten times too large, or too small
  relation   a relation swapped for one that fits: same kind of value and unit, seen with the same head or tail (an
             import would have refused a population in degrees)

Where nothing fits, such as for the only relation in seconds, the fact stays as it is and another one is drawn; how
often that was so is counted for each kind.

python -m benchmarks.corrupted_copy --graph world --out corrupted --truth truth.json
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict, deque
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hynt.graph.fact_table import HEAD, RELATION, TAIL, FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph, save_graph

KINDS = ("entity", "number", "magnitude", "relation")
SHARE = 0.02
_TRIES = 50


@dataclass(frozen=True)
class Change:
    """One fact that was made wrong."""

    fact: int  # its number among the facts of all splits
    kind: str  # of KINDS
    position: int  # the component that was changed
    was: str
    now: str


class AlteredCopy(NamedTuple):
    """A graph with the same names and splits, and what is wrong in it."""

    graph: KnowledgeGraph
    changes: list[Change]  # by fact
    passed_over: dict[str, int]  # kind → facts that were drawn for it and that nothing fitted


class _Draft:
    """The columns of a table while they are changed, and what is needed to choose changes that fit."""

    def __init__(self, table: FactTable, graph: KnowledgeGraph, seed: int) -> None:
        self.table, self.vocabulary = table, graph.vocabulary
        self.is_number = graph.vocabulary.relation_is_number
        self.random = np.random.default_rng(seed)
        self.head, self.relation = table.head.copy(), table.relation.copy()
        self.tail, self.tail_number = table.tail_entity.copy(), table.tail_number.copy()
        self.value, self.number = table.qualifier_entity.copy(), table.qualifier_number.copy()
        self.tail_literal, self.literal = table.tail_literal.to_pylist(), table.qualifier_literal.to_pylist()
        self.triplets = set(
            zip(table.head.tolist(), table.relation.tolist(), self._tails(range(len(table))), strict=True)
        )
        self.heads, self.tails, self.values = (self._seen(place) for place in ("head", "tail", "value"))
        self.numbers = self._seen_numbers()
        self.by_head, self.by_tail = self._neighbours()

    def _tails(self, rows: range) -> list[float]:
        is_number = self.is_number[self.table.relation]
        return [float(self.tail_number[row] if is_number[row] else self.tail[row]) for row in rows]

    def _seen(self, place: str) -> dict[int, np.ndarray]:
        """Relation → the different entities at a place of it."""
        table = self.table
        relation = table.qualifier_relation if place == "value" else table.relation
        entity = {"head": table.head, "tail": table.tail_entity, "value": table.qualifier_entity}[place]
        keep = np.ones(len(relation), np.bool_) if place == "head" else ~self.is_number[relation]
        return {int(one): np.unique(entity[keep & (relation == one)]) for one in np.unique(relation[keep])}

    def _seen_numbers(self) -> dict[int, np.ndarray]:
        relation = np.concatenate([self.table.relation, self.table.qualifier_relation])
        value = np.concatenate([self.table.tail_number, self.table.qualifier_number])
        return {int(one): value[relation == one] for one in np.unique(relation[self.is_number[relation]])}

    def _neighbours(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """Entity → the relations it is the head, or the tail, of."""
        by_head, by_tail = defaultdict(set), defaultdict(set)
        for row, (head, relation) in enumerate(zip(self.head.tolist(), self.relation.tolist(), strict=True)):
            by_head[head].add(relation)
            if not self.is_number[relation]:
                by_tail[int(self.tail[row])].add(relation)
        return by_head, by_tail

    def slots(self, row: int) -> range:
        return range(int(self.table.offsets[row]), int(self.table.offsets[row + 1]))

    # Each of these changes a fact in one place, or says None where nothing fits.

    def entity(self, row: int) -> Change | None:
        relation = int(self.relation[row])
        places = [(HEAD, -1)] + ([] if self.is_number[relation] else [(TAIL, -1)])
        places += [
            (4 + 2 * number, slot)
            for number, slot in enumerate(self.slots(row))
            if not self.is_number[self.table.qualifier_relation[slot]]
        ]
        position, slot = places[self.random.integers(len(places))]
        if position == HEAD:
            seen, was = self.heads[relation], int(self.head[row])
        elif position == TAIL:
            seen, was = self.tails[relation], int(self.tail[row])
        else:
            seen, was = self.values[int(self.table.qualifier_relation[slot])], int(self.value[slot])
        now = int(seen[self.random.integers(len(seen))])
        triplet = (
            now if position == HEAD else int(self.head[row]),
            relation,
            float(now) if position == TAIL else self._tails(range(row, row + 1))[0],
        )
        if now == was or (position <= TAIL and triplet in self.triplets):
            return None
        column, place = (
            (self.head, row) if position == HEAD else (self.tail, row) if position == TAIL else (self.value, slot)
        )
        column[place] = now
        return Change(row, "entity", position, self.vocabulary.entities[was], self.vocabulary.entities[now])

    def _number_place(self, row: int) -> tuple[int, int, int] | None:
        """Position, relation and qualifier slot of one of the fact's numbers."""
        places = [(TAIL, int(self.relation[row]), -1)] if self.is_number[self.relation[row]] else []
        places += [
            (4 + 2 * number, int(self.table.qualifier_relation[slot]), slot)
            for number, slot in enumerate(self.slots(row))
            if self.is_number[self.table.qualifier_relation[slot]]
        ]
        return places[self.random.integers(len(places))] if places else None

    def number_changed(self, row: int, kind: str) -> Change | None:
        place = self._number_place(row)
        if place is None:
            return None
        position, relation, slot = place
        was = float(self.tail_number[row] if position == TAIL else self.number[slot])
        if kind == "number":
            now = float(self.numbers[relation][self.random.integers(len(self.numbers[relation]))])
        else:
            now = was * 10 if self.random.random() < 0.5 else was / 10
        if now == was or not np.isfinite(now):
            return None
        column, literal, index = (
            (self.tail_number, self.tail_literal, row) if position == TAIL else (self.number, self.literal, slot)
        )
        column[index], literal[index] = now, repr(now)
        return Change(row, kind, position, repr(was), repr(now))

    def relation_changed(self, row: int) -> Change | None:
        was, head = int(self.relation[row]), int(self.head[row])
        fits = set(self.by_head[head])
        if not self.is_number[was]:
            fits |= self.by_tail[int(self.tail[row])]
        known = self.vocabulary.relations
        fits = {one for one in fits if known[one].kind == known[was].kind and known[one].unit == known[was].unit}
        fits -= {was}
        tail = self._tails(range(row, row + 1))[0]
        choices = sorted(one for one in fits if (head, one, tail) not in self.triplets)
        if not choices:
            return None
        now = choices[self.random.integers(len(choices))]
        self.relation[row] = now
        return Change(row, "relation", RELATION, known[was].name, known[now].name)

    def altered(self, row: int, kind: str) -> Change | None:
        """Changes the fact as the kind says; None where nothing was found that fits."""
        for _ in range(_TRIES if kind == "entity" else 3):
            if kind == "entity":
                found = self.entity(row)
            else:
                found = self.relation_changed(row) if kind == "relation" else self.number_changed(row, kind)
            if found is not None:
                return found
        return None

    def changed(self) -> FactTable:
        return replace(
            self.table,
            head=self.head,
            relation=self.relation,
            tail_entity=self.tail,
            tail_number=self.tail_number,
            tail_literal=pa.array(self.tail_literal, type=pa.string()),
            qualifier_entity=self.value,
            qualifier_number=self.number,
            qualifier_literal=pa.array(self.literal, type=pa.string()),
        )


def corrupted(graph: KnowledgeGraph, share: float = SHARE, seed: int = 0) -> AlteredCopy:
    """Changes a share of the facts, each in one place."""
    table = concatenate(list(graph.splits.values()))
    draft = _Draft(table, graph, seed)
    left, kinds, turn = deque(draft.random.permutation(len(table)).tolist()), list(KINDS), 0
    changes: list[Change] = []
    passed_over = dict.fromkeys(KINDS, 0)
    while len(changes) < round(share * len(table)) and kinds:
        kind, nothing_fitted = kinds[turn % len(kinds)], []
        found = None
        while left and found is None:
            found = draft.altered(row := left.popleft(), kind)
            if found is None:
                nothing_fitted.append(row)
        passed_over[kind] += len(nothing_fitted)
        if found is not None:
            changes.append(found)
            turn += 1
        else:  # nothing of this kind fits anywhere: the other kinds take what was drawn for it
            kinds.remove(kind)
            left.extend(nothing_fitted)
    made, sizes = draft.changed(), np.cumsum([0, *(len(one) for one in graph.splits.values())])
    splits = {name: made.take(np.arange(sizes[index], sizes[index + 1])) for index, name in enumerate(graph.splits)}
    copy = KnowledgeGraph(graph.vocabulary, splits, graph.entities, replace(graph.manifest, files={}))
    return AlteredCopy(copy, sorted(changes, key=lambda change: change.fact), passed_over)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="world")
    parser.add_argument("--share", type=float, default=SHARE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--truth", type=Path, required=True)
    arguments = parser.parse_args()
    copy = corrupted(load_graph(arguments.graph), arguments.share, arguments.seed)
    save_graph(copy.graph, arguments.out)
    arguments.truth.write_text(json.dumps([asdict(change) for change in copy.changes], indent=1), encoding="utf-8")
    for kind, count in copy.passed_over.items():
        print(f"{kind}: nothing fitted {count:,} facts; others were drawn instead")


if __name__ == "__main__":
    main()
