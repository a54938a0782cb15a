"""Train, valid and test: keeping given splits as they are, or making them by content.

A made split depends on the fact and the seed alone: its fingerprint, mixed with the seed, is a number in [0, 1) that
falls into a share. Adding facts to a graph therefore moves none of the others, with one exception that a fair split
needs: when an entity or relation is met nowhere in train, the fact (or group) that holds it and has the lowest
fingerprint goes to train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hynt.errors import UsageError
from hynt.graph.content_hash import Hashes, mixed
from hynt.graph.fact_table import FactTable

SPLITS = ("train", "valid", "test")
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


def parse_shares(text: str) -> tuple[float, float, float]:
    """Shares from `8:1:1`."""
    try:
        shares = tuple(float(part) for part in text.split(":"))
    except ValueError:
        shares = ()
    if len(shares) != 3 or not all(np.isfinite(shares)):
        raise UsageError(f"{text!r} is not a split.", where="--split", advice="Give train:valid:test, such as 8:1:1.")
    return shares[0], shares[1], shares[2]


def draw(rule: SplitRule, groups: Hashes) -> NDArray[np.int8]:
    """(n,) the split each row falls into, as an index into SPLITS, from the (n, 2) hash of its group."""
    seed = np.array([rule.seed, rule.seed ^ 0x5851F42D], dtype=np.int64).astype(np.uint64)
    place = mixed(groups ^ mixed(seed[None, :]))[:, 0].astype(np.float64) / 2.0**64
    limits = np.cumsum(rule.shares) / sum(rule.shares)
    return np.minimum(np.searchsorted(limits, place, side="right"), 2).astype(np.int8)


def bring_into_train(
    split: NDArray[np.int8],
    groups: Hashes,
    chunks: Callable[[], Iterator[FactTable]],
    entity_count: int,
    relation_count: int,
    relation_is_number: NDArray[np.bool_],
) -> tuple[NDArray[np.int8], int]:
    """Move groups to train until every entity and relation is there; the new splits and how many facts moved.

    A row with a negative split is one that was dropped.
    """
    present = np.zeros(entity_count + relation_count, dtype=np.bool_)
    for rows, chunk in _with_rows(chunks()):
        present[_names_used(chunk.where(split[rows] == 0), entity_count, relation_is_number)[1]] = True
    best = np.full(entity_count + relation_count, np.iinfo(np.uint64).max, dtype=np.uint64)
    for rows, chunk in _with_rows(chunks()):
        outside = np.flatnonzero(split[rows] > 0)
        owners, names = _names_used(chunk.take(outside), entity_count, relation_is_number)
        wanted = ~present[names]
        np.minimum.at(best, names[wanted], groups[rows][outside][owners[wanted], 0])
    chosen = np.unique(best[~present])
    move = np.isin(groups[:, 0], chosen) & (split > 0)
    return np.where(move, np.int8(0), split).astype(np.int8), int(move.sum())


def missing_from_train(
    tables: Sequence[FactTable], entity_count: int, relation_count: int, relation_is_number: NDArray[np.bool_]
) -> tuple[int, int]:
    """How many entities and relations of valid and test (tables after the first) train, the first, lacks."""
    used = []
    for part in (tables[:1], tables[1:]):
        seen = np.zeros(entity_count + relation_count, dtype=np.bool_)
        for table in part:
            seen[_names_used(table, entity_count, relation_is_number)[1]] = True
        used.append(seen)
    lacking = used[1] & ~used[0]
    return int(lacking[:entity_count].sum()), int(lacking[entity_count:].sum())


def _with_rows(chunks: Iterator[FactTable]) -> Iterator[tuple[slice, FactTable]]:
    start = 0
    for chunk in chunks:
        yield slice(start, start + len(chunk)), chunk
        start += len(chunk)


def _names_used(
    table: FactTable, entity_count: int, relation_is_number: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every use of an entity or relation: the row that uses it, and its id (relations after the entities)."""
    rows = np.arange(len(table), dtype=np.int64)
    owner = table.qualifier_owner()
    tails = ~relation_is_number[table.relation]
    values = ~relation_is_number[table.qualifier_relation]
    owners = [rows, rows, rows[tails], owner, owner[values]]
    names = [
        table.head,
        table.relation + np.int64(entity_count),
        table.tail_entity[tails],
        table.qualifier_relation + np.int64(entity_count),
        table.qualifier_entity[values],
    ]
    return np.concatenate(owners), np.concatenate([part.astype(np.int64) for part in names])
