"""Train, valid and test: keeping given splits as they are, or making them by content.

A made split depends on the fact and the seed alone: its fingerprint, mixed with the seed, is a number in [0, 1) that
falls into a share. Adding facts to a graph therefore moves none of the others, with one exception that a fair split
needs: when an entity or relation is met nowhere in train, the fact (or group) that holds it and has the lowest
fingerprint goes to train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.content_hash import Hashes, mixed
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Ids, Vocabulary, begins, offsets_of

SPLITS = ("train", "valid", "test")
ADDED = "added"
"""The split of facts that join train beside given splits: those of a second source."""
AcrossSplits = Literal["keep", "drop", "error"]


@dataclass(frozen=True)
class SplitRule:
    """How to split facts that come without a split."""

    shares: tuple[float, float, float] = (8.0, 1.0, 1.0)
    seed: int = 0
    group_by: tuple[str, ...] = ()  # of head, relation, tail: facts that agree in them stay together

    def __post_init__(self) -> None:
        if len(self.shares) != 3 or any(not share >= 0 for share in self.shares) or not self.shares[0] > 0:
            raise UsageError(
                f"the split {':'.join(f'{share:g}' for share in self.shares)} is not three shares.",
                where="--split",
                advice="Give train:valid:test with train above zero, such as 8:1:1.",
            )
        wrong = [name for name in self.group_by if name not in ("head", "relation", "tail")]
        if wrong:
            raise UsageError(
                f"facts cannot be grouped by {wrong[0]!r}.", where="--split-by", advice="Use head, relation, tail."
            )

    @classmethod
    def of(cls, shares: str | tuple[float, float, float], seed: int = 0, group_by: Sequence[str] = ()) -> SplitRule:
        """Shares may be written as `8:1:1`."""
        if not isinstance(shares, str):
            return cls(shares, seed, tuple(group_by))
        try:
            train, valid, test = (float(part) for part in shares.split(":"))
        except ValueError:
            train = valid = test = float("nan")
        if not np.isfinite([train, valid, test]).all():
            raise UsageError(
                f"{shares!r} is not a split.", where="--split", advice="Give train:valid:test, such as 8:1:1."
            )
        return cls((train, valid, test), seed, tuple(group_by))

    def report(self, brought_into_train: int) -> dict[str, Any]:
        """What was done by it, for a manifest."""
        told = {"shares": list(self.shares), "seed": self.seed, "group_by": list(self.group_by)}
        return {"rule": "made by content", **told, "brought_into_train": brought_into_train}


def draw(rule: SplitRule, groups: Hashes) -> NDArray[np.int8]:
    """(n,) the split each row falls into, as an index into SPLITS, from the (n, 2) hash of its group."""
    seed = np.array([rule.seed, rule.seed ^ 0x5851F42D], dtype=np.int64).astype(np.uint64)
    place = mixed(groups ^ mixed(seed[None, :]))[:, 0].astype(np.float64) / 2.0**64
    limits = np.cumsum(rule.shares) / sum(rule.shares)
    return np.minimum(np.searchsorted(limits, place, side="right"), 2).astype(np.int8)


def bring_into_train(
    split: NDArray[np.int8],
    groups: Hashes,
    chunks: Callable[[], Iterable[FactTable]],
    vocabulary: Vocabulary,
    kept: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int8], int]:
    """Move groups to train until every entity and relation is there; the new splits and how many facts moved.

    `kept`, (n,), says which rows count; None stands for all.
    """
    in_train, outside_train = split == 0, split > 0
    if kept is not None:
        in_train, outside_train = in_train & kept, outside_train & kept
    present = np.zeros(vocabulary.entity_count + vocabulary.relation_count, dtype=np.bool_)
    for rows, chunk in with_rows(chunks()):
        present[names_used(chunk.where(in_train[rows]), vocabulary)[1]] = True
    best = np.full(len(present), np.iinfo(np.uint64).max, dtype=np.uint64)
    for rows, chunk in with_rows(chunks()):
        outside = np.flatnonzero(outside_train[rows])
        owners, names = names_used(chunk.take(outside), vocabulary)
        wanted = ~present[names]
        np.minimum.at(best, names[wanted], groups[rows][outside][owners[wanted], 0])
    chosen = np.unique(best[~present])
    move = np.isin(groups[:, 0], chosen) & outside_train
    return np.where(move, np.int8(0), split).astype(np.int8), int(move.sum())


def missing_from_train(tables: Sequence[FactTable], vocabulary: Vocabulary) -> dict[str, int]:
    """How many entities and relations of valid and test (tables after the first) train, the first, lacks."""
    entities = vocabulary.entity_count
    first, *others = (names_used(table, vocabulary)[1] for table in tables)
    lacking = np.setdiff1d(np.concatenate([first[:0], *others]), first)
    return {"entities": int((lacking < entities).sum()), "relations": int((lacking >= entities).sum())}


def with_rows(chunks: Iterable[FactTable]) -> Iterator[tuple[slice, FactTable]]:
    """Tables one after the other, each with its rows among all."""
    start = 0
    for chunk in chunks:
        yield slice(start, start + len(chunk)), chunk
        start += len(chunk)


def names_used(table: FactTable, vocabulary: Vocabulary) -> tuple[Ids, Ids]:
    """For every use of an entity or relation: the row that uses it, and its id (relations after the entities)."""
    rows = np.arange(len(table), dtype=np.int64)
    owner = table.qualifier_owner()
    tails = ~vocabulary.relation_is_number[table.relation]
    values = ~vocabulary.relation_is_number[table.qualifier_relation]
    after = np.int64(vocabulary.entity_count)
    owners = [rows, rows, rows[tails], owner, owner[values]]
    names = [
        table.head,
        table.relation + after,
        table.tail_entity[tails],
        table.qualifier_relation + after,
        table.qualifier_entity[values],
    ]
    return np.concatenate(owners), np.concatenate([part.astype(np.int64) for part in names])


# Relations that give others away: inverses and near-duplicates, found by how many pairs of entities they share.
#
# The rule of FB15K-237: two relations whose sets of (head, tail) pairs overlap almost wholly say the same thing; if one
# pair is in test and its twin in train, the answer leaks. For each such couple the rarer relation is the one to remove.
# A symmetric relation is no leak of another and is only reported.

MINIMUM_PAIRS = 10
"""Relations with fewer pairs overlap by chance and are left alone."""
MOST_PARALLEL = 100
"""A pair under which more relations stand tells no two of them apart, and is left alone."""
_JOINED_AT_ONCE = 2**22

LeakKind = Literal["inverse", "duplicate"]


class Leak(NamedTuple):
    """Two relations that share pairs: `removed` is the rarer, `shared` of its `pairs` stand under `kept` too."""

    removed: int
    kept: int
    kind: LeakKind
    shared: int
    pairs: int
    kept_pairs: int

    @property
    def overlap(self) -> float:
        """The smaller of the two shares of pairs that the relations have in common."""
        return self.shared / max(self.pairs, self.kept_pairs)

    def to_mapping(self, names: Sequence[str]) -> dict[str, Any]:
        named = {"removed": names[self.removed], "kept": names[self.kept]}
        return self._asdict() | named | {"overlap": round(self.overlap, 4)}


def find_leakage(chunks: Iterable[FactTable], vocabulary: Vocabulary, *, threshold: float = 0.97) -> list[Leak]:
    """Couples of relations whose pairs overlap by at least `threshold` on both sides; no relation is removed twice."""
    keys, relations, entity_count = [], [], vocabulary.entity_count
    for chunk in chunks:
        rows = ~vocabulary.relation_is_number[chunk.relation]
        keys.append(chunk.head[rows].astype(np.int64) * entity_count + chunk.tail_entity[rows])
        relations.append(chunk.relation[rows].astype(np.int64))
    if not keys:
        return []
    pair, relation = np.concatenate(keys), np.concatenate(relations)
    order = np.lexsort((relation, pair))
    pair, relation = pair[order], relation[order]
    new = begins(pair, relation)
    pair, relation = pair[new], relation[new]
    _, place, parallel = np.unique(pair, return_inverse=True, return_counts=True)
    few = parallel[place] <= MOST_PARALLEL
    pair, relation = pair[few], relation[few]
    totals = np.bincount(relation, minlength=vocabulary.relation_count)
    able = totals[relation] >= MINIMUM_PAIRS
    pair, relation = pair[able], relation[able]
    backward = (pair % entity_count) * entity_count + pair // entity_count
    ways: tuple[tuple[LeakKind, NDArray[np.int64]], ...] = (("duplicate", pair), ("inverse", backward))
    leaks = [
        Leak(rare, frequent, kind, number, int(totals[rare]), int(totals[frequent]))
        for kind, other in ways
        for first, second, number in _shared(pair, other, relation, totals, threshold)
        for rare, frequent in [sorted((first, second), key=lambda name: (totals[name], -name))]
    ]
    leaks.sort(key=lambda leak: (-leak.overlap, leak.removed, leak.kept))
    gone: set[int] = set()
    chosen = []
    for leak in leaks:
        if leak.removed not in gone and leak.kept not in gone:
            gone.add(leak.removed)
            chosen.append(leak)
    return chosen


def _shared(
    pair: NDArray[np.int64],
    other_pair: NDArray[np.int64],
    relation: NDArray[np.int64],
    totals: NDArray[np.int64],
    threshold: float,
) -> Iterator[tuple[int, int, int]]:
    """Couples of relations, the lower first, with how many pairs they share: at least `threshold` of either's. The two
    lists of pairs are joined for a few relations at a time.
    """
    order = np.argsort(other_pair, kind="stable")
    other_pair, other_relation = other_pair[order], relation[order]
    by_relation = np.argsort(relation, kind="stable")
    pair, relation = pair[by_relation], relation[by_relation]
    start = np.searchsorted(other_pair, pair, side="left")
    size = np.searchsorted(other_pair, pair, side="right") - start
    joined = offsets_of(size)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(relation)) + 1, [len(relation)]])
    low = 0
    while low < len(bounds) - 1:
        high = int(np.searchsorted(joined[bounds], joined[bounds[low]] + _JOINED_AT_ONCE, side="right")) - 1
        high = max(high, low + 1)
        rows = slice(bounds[low], bounds[high])
        within = np.arange(joined[rows.stop] - joined[rows.start]) - np.repeat(
            joined[rows] - joined[rows.start], size[rows]
        )
        partner = other_relation[np.repeat(start[rows], size[rows]) + within]
        code, number = np.unique(np.repeat(relation[rows], size[rows]) * len(totals) + partner, return_counts=True)
        first, second = code // len(totals), code % len(totals)
        found = (first < second) & (number / np.maximum(totals[first], totals[second]) >= threshold)
        yield from zip(first[found].tolist(), second[found].tolist(), number[found].tolist(), strict=True)
        low = high
