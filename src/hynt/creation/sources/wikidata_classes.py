"""Wikidata's classes: which lines may be of a type, told from their bytes, and what the subclasses of a type are."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from hynt.creation.scanning import Scan
from hynt.creation.sources.wikidata_structures import EntityIdentity, Statement

INSTANCE_OF, SUBCLASS_OF = "P31", "P279"
_FEW_TYPES = 4
_CLAIMS = b'"%s":[' % INSTANCE_OF.encode()
_NEXT_CLAIMS = b'],"P'
_NUMBER = re.compile(rb'"(?:id":"Q|numeric-id":)([0-9]+)')

TypeTest = Callable[[bytes, int, int], bool]
"""Whether the line from one place to another of a block may be of a type; a line that may, may still not be."""


class _Class(msgspec.Struct, gc=False):
    id: str
    claims: dict[str, list[Statement]] | list[Any] | None = None


def type_test(types: frozenset[str]) -> TypeTest | None:
    """A quick test that never says no to a line of one of the types; None where every line will do."""
    if not types:
        return None
    if len(types) > _FEW_TYPES:
        return _by_claims(frozenset(name[1:].encode() for name in types))
    needles: list[bytes] = []
    for name in sorted(types):
        number = name[1:].encode()
        needles += [b'"%s"' % name.encode(), b'"numeric-id":%s,' % number, b'"numeric-id":%s}' % number]

    def by_needles(block: bytes, start: int, end: int) -> bool:
        return any(block.find(needle, start, end) >= 0 for needle in needles)

    return by_needles


def _by_claims(numbers: frozenset[bytes]) -> TypeTest:
    """For many types: look at every id in what the line is an instance of."""

    def test(block: bytes, start: int, end: int) -> bool:
        first = block.find(_CLAIMS, start, end)
        if first < 0:
            return False
        last = block.find(_NEXT_CLAIMS, first, end)
        return not numbers.isdisjoint(_NUMBER.findall(block, first, end if last < 0 else last))

    return test


def with_subclasses(types: frozenset[str], dump: Scan) -> frozenset[str]:
    """The types and all that stand below them, however far."""
    decode = msgspec.json.Decoder(_Class).decode
    identity_of = msgspec.json.Decoder(EntityIdentity).decode
    children, parents = array("q"), array("q")  # numbers of items: a dictionary would take ten times the room
    for line in dump.lines_with(b'"%s":[' % SUBCLASS_OF.encode()):
        try:
            entity = decode(line.strip().removesuffix(b","))
            claims = entity.claims if isinstance(entity.claims, dict) else {}
            for statement in claims.get(SUBCLASS_OF, ()):
                value = statement.mainsnak.datavalue
                if statement.rank != "deprecated" and statement.mainsnak.snaktype == "value" and value is not None:
                    found = identity_of(value.value)
                    child, parent = int(entity.id[1:]), int(found.identity[1:] or found.numeric)
                    children.append(child)
                    parents.append(parent)
        except (msgspec.MsgspecError, ValueError, OverflowError):
            continue  # a line that cannot be read is counted when it is parsed
    below, above = np.frombuffer(children, dtype=np.int64), np.frombuffer(parents, dtype=np.int64)
    reached = np.array(sorted(int(name[1:]) for name in types), dtype=np.int64)
    newest = reached
    while len(newest):
        newest = np.setdiff1d(below[np.isin(above, newest)], reached)
        reached = np.union1d(reached, newest)
    return frozenset(f"Q{number}" for number in reached.tolist())
