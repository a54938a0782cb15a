"""Entities by what someone has typed so far: names that begin so, words that begin so, then names spelled alike.

Names are folded (case, accents, width) and indexed once by their pieces of three letters, in numpy arrays, so that a
search looks at the names that share a piece and at no others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Match: TypeAlias = Literal["exact", "prefix", "word", "similar"]
MATCHES: tuple[Match, ...] = ("exact", "prefix", "word", "similar")

_LONGEST = 200
_ALIKE = 0.3
"""The share of pieces that two names must have in common to be called alike."""


class NameMatch(NamedTuple):
    """An entity, and how its name meets the query."""

    identity: int
    match: Match


def folded(text: str, longest: int | None = _LONGEST) -> str:
    """Without case, accents and differences of width; spaces once. `Curaçao` and `CURACAO` become the same."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(kept.split())[:longest]


class NameSearch:
    """An index over the names of one graph."""

    def __init__(self, names: Sequence[str], weight: NDArray[np.int64] | None = None) -> None:
        """`weight` (names,): where names meet a query equally well, the heavier one comes first."""
        self._size = len(names)
        self._weight = np.zeros(len(names), dtype=np.int64) if weight is None else weight
        self._letters = _letters([folded(name) for name in names])
        pieces, owner = _trigrams(self._letters)
        order = np.lexsort((owner, pieces))
        pieces, owner = pieces[order], owner[order]
        self._piece, self._start = np.unique(pieces, return_index=True)
        self._start = np.append(self._start, len(pieces))
        self._owner = owner.astype(np.int32)
        self._count = np.bincount(owner, minlength=len(names)).astype(np.int32)  # (names,) different pieces of each

    def find(self, query: str, limit: int) -> tuple[list[NameMatch], bool]:
        """The best matches, best first, and whether there are more."""
        wanted = folded(query)
        if not wanted:
            order = np.lexsort((np.arange(len(self._weight)), -self._weight))[: limit + 1]
            return [NameMatch(one, "prefix") for one in order[:limit].tolist()], len(order) > limit
        shared = self._shared(wanted)
        kind, closeness = self._kinds(wanted, shared)
        chosen = np.flatnonzero(kind < len(MATCHES))
        # Within a kind: similar names by how alike they are; then heavier, shorter and earlier ones first.
        alike = np.where(kind[chosen] == 3, -closeness[chosen], 0.0)
        order = np.lexsort((chosen, self._count[chosen], -self._weight[chosen], alike, kind[chosen]))
        ranked = chosen[order][: limit + 1].tolist()
        return [NameMatch(one, MATCHES[int(kind[one])]) for one in ranked[:limit]], len(ranked) > limit

    def _shared(self, wanted: str) -> NDArray[np.int32]:
        """(names,) how many different pieces each name has in common with the query."""
        pieces, _ = _trigrams(_letters([wanted]))
        place = np.searchsorted(self._piece, pieces)
        inside = place < len(self._piece)
        place, pieces = place[inside], pieces[inside]
        place = place[self._piece[place] == pieces]
        spans = [self._owner[self._start[one] : self._start[one + 1]] for one in place.tolist()]
        if not spans:
            return np.zeros(self._size, dtype=np.int32)
        return np.bincount(np.concatenate(spans), minlength=self._size).astype(np.int32)

    def _kinds(self, wanted: str, shared: NDArray[np.int32]) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        """(names,) an index into MATCHES, its length where a name does not meet the query; (names,) how alike."""
        asked = max(1, len(_trigrams(_letters([wanted]))[0]))
        closeness = 2.0 * shared / (asked + self._count)
        kind = np.full(self._size, len(MATCHES), dtype=np.int8)
        kind[(closeness >= _ALIKE) & (shared > 0)] = 3
        begins = _at_word_start(self._letters, wanted)
        kind[begins.word] = 2
        kind[begins.name] = 1
        kind[begins.whole] = 0
        return kind, closeness


class _Begins(NamedTuple):
    """(names,) whether the query is the whole name, begins it, or begins one of its words."""

    whole: NDArray[np.bool_]
    name: NDArray[np.bool_]
    word: NDArray[np.bool_]


class _Letters(NamedTuple):
    """All names end to end, each with a space before and after it."""

    code: NDArray[np.uint32]  # (letters,) code points
    owner: NDArray[np.int32]  # (letters,) the name that a letter belongs to
    start: NDArray[np.int64]  # (names + 1,) where each name's leading space stands


_SPACE = ord(" ")


def _letters(names: Sequence[str]) -> _Letters:
    text = "".join(f" {name} " for name in names)
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    size = np.array([len(name) + 2 for name in names], dtype=np.int64)
    start = np.append(0, np.cumsum(size))
    return _Letters(code, np.repeat(np.arange(len(names), dtype=np.int32), size), start)


def _trigrams(letters: _Letters) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The different pieces of three letters of each name: (pieces,) as one number each, and (pieces,) whose."""
    code, owner = letters.code.astype(np.uint64), letters.owner
    if len(code) < 3:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)
    piece = (code[:-2] << np.uint64(42)) | (code[1:-1] << np.uint64(21)) | code[2:]
    inside = owner[:-2] == owner[2:]
    piece, owner = piece[inside], owner[:-2][inside]
    order = np.lexsort((piece, owner))
    piece, owner = piece[order], owner[order]
    first = np.ones(len(piece), dtype=np.bool_)
    first[1:] = (piece[1:] != piece[:-1]) | (owner[1:] != owner[:-1])
    return piece[first], owner[first]


def _at_word_start(letters: _Letters, wanted: str) -> _Begins:
    """Where the query stands at the beginning of a word, letter by letter over all names at once."""
    names = len(letters.start) - 1
    masks = _Begins(*(np.zeros(names, dtype=np.bool_) for _ in range(3)))
    query = np.frombuffer(f" {wanted}".encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    place = np.flatnonzero(letters.code == _SPACE)
    for offset in range(1, len(query)):
        place = place[place + offset < len(letters.code)]
        place = place[letters.code[place + offset] == query[offset]]
        if not len(place):
            return masks
    end = place + len(query)  # a match stays within its name: the next letter is at most its trailing space
    owner = letters.owner[place]
    masks.word[owner] = True
    at_start = place == letters.start[owner]
    masks.name[owner[at_start]] = True
    masks.whole[owner[at_start & (end == letters.start[owner + 1] - 1)]] = True
    return masks
