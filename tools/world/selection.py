"""From what the sources say to the facts of the graph: bounds, contradictions, duplicates, entities seen too rarely.

Nothing vanishes: every statement that does not enter is counted under a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tools.world.relations import DATE, ENTITY, NUMBER, RELATIONS
from tools.world.statement import Date, Entity, Quantity, Statement, Value, subject_key, value_key

CORE = 2
_KINDS = {Entity: ENTITY, Quantity: NUMBER, Date: DATE}


class Counts:
    """How many statements and qualifiers were left out, by reason."""

    def __init__(self) -> None:
        self.statements: Counter[str] = Counter()
        self.qualifiers: Counter[str] = Counter()


def check_kinds(statement: Statement) -> None:
    """A builder's mistake, not the source's: a relation must carry the kind its table says."""
    for relation, value in ((statement.relation, statement.tail), *statement.qualifiers):
        expected = RELATIONS[relation].kind
        if _KINDS[type(value)] != expected:
            raise ValueError(
                f"{statement.origin}: {relation!r} carries a {_KINDS[type(value)]}, its table says {expected}"
            )


def within_bounds(relation: str, value: Value) -> bool:
    """Whether a number is believable for its relation; entities and dates always are."""
    known = RELATIONS[relation]
    if not isinstance(value, Quantity) or known.low is None or known.high is None:
        return True
    return known.low <= value.value <= known.high


def keep_believable(statements: Iterable[Statement], counts: Counts) -> list[Statement]:
    """Drops statements with a number out of bounds, in the tail or in a qualifier."""
    kept = []
    for statement in statements:
        check_kinds(statement)
        pairs = ((statement.relation, statement.tail), *statement.qualifiers)
        if all(within_bounds(relation, value) for relation, value in pairs):
            kept.append(statement)
        else:
            counts.statements["number out of bounds"] += 1
    return kept


def keep_first(statements: Iterable[Statement], counts: Counts) -> list[Statement]:
    """Drops repeats, and every later number for a subject that already has one: the sources come in order of trust."""
    kept, numbers, facts = [], set(), set()
    for statement in statements:
        subject = subject_key(statement)
        fact = (*subject, value_key(statement.tail))
        if fact in facts:
            counts.statements["told before"] += 1
        elif not isinstance(statement.tail, Entity) and subject in numbers:
            counts.statements["second number for the same subject"] += 1
        else:
            facts.add(fact)
            numbers.add(subject)
            kept.append(statement)
    return kept


def _entities(statement: Statement) -> set[str]:
    values = (statement.head, statement.tail, *(value for _, value in statement.qualifiers))
    return {value.id for value in values if isinstance(value, Entity)}


def keep_core(statements: list[Statement], counts: Counts) -> list[Statement]:
    """Keeps entities that at least two statements name: a thing seen once can be neither learned nor tested.

    A statement goes with its head or tail; a qualifier goes alone.
    """
    while True:
        seen = Counter(entity for statement in statements for entity in _entities(statement))
        rare = {entity for entity, count in seen.items() if count < CORE}
        if not rare:
            return statements
        kept = []
        for statement in statements:
            tail_is_rare = isinstance(statement.tail, Entity) and statement.tail.id in rare
            if statement.head.id in rare or tail_is_rare:
                counts.statements["names an entity that no other statement names"] += 1
                continue
            pairs = tuple(
                pair for pair in statement.qualifiers if not (isinstance(pair[1], Entity) and pair[1].id in rare)
            )
            counts.qualifiers["names an entity that no other statement names"] += len(statement.qualifiers) - len(pairs)
            kept.append(replace(statement, qualifiers=pairs))
        statements = kept


def select(statements: Iterable[Statement], counts: Counts) -> list[Statement]:
    """All steps in order; dropping a qualifier can make two statements contradict, so the last steps repeat."""
    kept = keep_first(keep_believable(statements, counts), counts)
    while True:
        core = keep_core(kept, counts)
        unique = keep_first(core, counts)
        if len(unique) == len(core):
            return unique
        kept = unique
