"""All questions about some facts as one batch, and facts in which what is asked for has been exchanged."""

from __future__ import annotations

from dataclasses import replace

import torch

from hynt.batches.buckets import layout_of, rows_by_bucket
from hynt.batches.masked_batch import mask


def every_question(facts, rows, device="cpu"):
    """All questions about some facts as one batch, with the fact and position of each."""
    where = [(int(r), p) for r in rows for p in range(3 + 2 * int(facts.qualifier_counts()[r]))]
    count = facts.qualifier_counts()[torch.tensor([r for r, _ in where])]
    order, segments = [], []
    for capacity, members in rows_by_bucket(count):
        order += members.tolist()
        segments.append((len(members), capacity))
    where = [where[k] for k in order]
    rows, positions = (torch.tensor(column, device=device) for column in zip(*where, strict=True))
    batch, answers = mask(facts.to(device), rows, positions, layout_of(segments))
    return batch, answers, where


def exchanged(facts, rows, position):
    """The facts with what stands at `position` of those in `rows` exchanged, its kind kept."""
    e, r = facts.sizes.entities, facts.sizes.relations
    mine = torch.zeros(len(facts), dtype=torch.bool).index_fill_(0, rows, True)
    here = torch.zeros(len(facts.qualifier_relation), dtype=torch.bool)
    at = facts.offsets[rows] + (position - 3) // 2
    here[at[(at < facts.offsets[rows + 1]) & (position > 2)]] = True

    def moved(name, mark, new):
        column = getattr(facts, name)
        return {name: torch.where(mark, new(column), column).to(column.dtype)}

    def next_entity(ids):
        return (ids + 3) % e

    def next_relation(ids):
        return (ids + 3) % r  # of the same kind: every third relation has numbers

    if position == 0:
        return replace(facts, **moved("head", mine, next_entity))
    if position == 1:
        return replace(facts, **moved("relation", mine, next_relation))
    if position == 2:
        number = facts.tail_is_number
        tail = moved("tail_entity", mine & ~number, next_entity)
        numbers = moved("tail_number", mine & number, lambda x: 1 - x)
        return replace(facts, **tail, **numbers, **moved("tail_value", mine & number, lambda x: 3 - 2 * x))
    if position % 2:
        return replace(facts, **moved("qualifier_relation", here, next_relation))
    number = facts.qualifier_is_number
    value = moved("qualifier_entity", here & ~number, next_entity)
    numbers = moved("qualifier_number", here & number, lambda x: 1 - x)
    return replace(facts, **value, **numbers, **moved("qualifier_value", here & number, lambda x: 3 - 2 * x))
