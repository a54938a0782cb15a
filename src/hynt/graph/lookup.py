"""From what a person writes to an id: an id as it stands, a name, or a name in another case; and entities by what
someone has typed so far.

A name that several entities carry is settled by the position asked for (which of them stand there in some fact), else
refused with their ids. An unknown one is refused with the nearest names.

A search finds names that begin so, words that begin so, then names spelled alike. Names are folded (case, accents,
width) and indexed once by their pieces of three letters, in numpy arrays, so that a search looks at the names that
share a piece and at no others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hynt.errors import Meant, UsageError
from hynt.graph.fact_table import FIRST_QUALIFIER, HEAD, TAIL
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.seen_values import SeenValues
from hynt.graph.vocabulary import begins, offsets_of

EntityPosition: TypeAlias = Literal["head", "tail", "value"]
POSITIONS: tuple[EntityPosition, ...] = ("head", "tail", "value")
"""Where an entity can stand in a fact; `value` is the value of a qualifier."""


def entity_position(position: int) -> EntityPosition:
    """What a position of a fact that holds an entity is called."""
    return "head" if position == HEAD else "tail" if position == TAIL else "value"


_Kind: TypeAlias = Literal["entity", "relation"]
_SHOWN = 10
_LONGEST_NAME = 200
_CANDIDATES = 100
_SCANS = 8
_NEAREST = 5


class NameLookup:
    """Finds the entities and relations of one graph by what people call them."""

    def __init__(self, graph: KnowledgeGraph, search: NameSearch | None = None) -> None:
        """`search` is an index of the entities' names. To compare an unknown name with all others takes longer than to
        answer a question: one person does not mind, a service that gets hundreds at once would keep everybody waiting.
        """
        self._graph, self._search = graph, search

    def entity(self, name: str, position: EntityPosition | None = None, relation: int | None = None) -> int:
        """The id of an entity, by its id as written or its name.

        Where a name is shared, only entities seen at `position` count (under `relation`, if one is given: the fact's
        relation for a head or tail, the qualifier's for a value).
        """
        found, place = self.entities_called(name), ""
        if not found:
            self._refuse_unknown("entity", name)
        if len(found) > 1 and position is not None:
            seen = self.seen_at(position, relation)
            standing = [identity for identity in found if seen[identity]]
            found, place = (standing, f" seen as a {position}") if standing else (found, "")
        if len(found) > 1:
            self._refuse_shared("entity", name, found, place)
        return found[0]

    def has_entity(self, name: str) -> bool:
        """Whether at least one entity has this id or name."""
        return bool(self.entities_called(name))

    def entities_called(self, name: str) -> list[int]:
        """The entity with this id, else all that carry the name, else all that carry it in another case; where there
        are none, without the spaces at its ends.
        """
        known = self._graph.vocabulary.entity_ids.get(name)
        found = self._entities.carrying(name) if known is None else [known]
        return found if found or name == name.strip() else self.entities_called(name.strip())

    def relations_called(self, name: str) -> list[int]:
        """As `entities_called`, of relations."""
        known = self._graph.vocabulary.relation_ids.get(name)
        found = self._relations.carrying(name) if known is None else [known]
        return found if found or name == name.strip() else self.relations_called(name.strip())

    def relation(self, name: str) -> int:
        """The id of a relation, by its id as written or its name."""
        found = self.relations_called(name)
        if not found:
            self._refuse_unknown("relation", name)
        if len(found) > 1:
            self._refuse_shared("relation", name, found)
        return found[0]

    def seen_at(self, position: EntityPosition, relation: int | None = None) -> NDArray[np.bool_]:
        """(entities,) true for those that stand at a position of some fact."""
        place = {"head": HEAD, "tail": TAIL, "value": FIRST_QUALIFIER + 1}[position]
        values = self._values.under_any_relation(place) if relation is None else self._values.at(place, relation)
        seen = np.zeros(self._graph.vocabulary.entity_count, dtype=np.bool_)
        seen[values] = True
        return seen

    def positions_of(self, entity: int) -> tuple[EntityPosition, ...]:
        """Where an entity stands in the graph."""
        return tuple(position for position in POSITIONS if self._seen[position][entity])

    @cached_property
    def _values(self) -> SeenValues:
        return SeenValues.of(self._graph.splits.values(), self._graph.vocabulary.relation_is_number)

    @cached_property
    def _seen(self) -> dict[EntityPosition, NDArray[np.bool_]]:
        return {position: self.seen_at(position) for position in POSITIONS}

    @cached_property
    def _entities(self) -> LabelIndex:
        return LabelIndex(self._graph.entity_labels)

    @cached_property
    def _relations(self) -> LabelIndex:
        return LabelIndex(self._graph.relation_labels)

    def _refuse_unknown(self, what: _Kind, name: str) -> NoReturn:
        """With the names that are most like it, or else the ids."""
        index = self._entities if what == "entity" else self._relations
        if what == "entity" and self._search is not None:
            found = [one.identity for one in self._search.find(name, _SHOWN)[0]]
        else:
            found = index.nearest(name)
            if not found:
                known = self._graph.entities if what == "entity" else self._graph.relations
                index = LabelIndex([one.name for one in known])
                found = index.nearest(name)
        near = list(dict.fromkeys(index.names[one] for one in found))[:_NEAREST]
        listed = f". The nearest are {', '.join(map(repr, near))}." if near else "; none is spelled like this."
        raise UsageError(
            f"the graph has no {what} called {_shown(name)}.",
            advice=f"Give {'an' if what == 'entity' else 'a'} {what}'s id or name{listed}",
            nearest=[self._meant(what, one) for one in found[:_SHOWN]],
        )

    def _refuse_shared(self, what: _Kind, name: str, found: Sequence[int], place: str = "") -> NoReturn:
        """With their ids, and of entities what tells them apart: their types, and where they stand."""
        namesakes = [self._meant(what, one) for one in found[:_SHOWN]]
        if what == "entity":
            places = map(self.positions_of, found)
            namesakes = [replace(known, positions=own) for known, own in zip(namesakes, places, strict=False)]
        listed = ", ".join(
            one.id if what == "relation" else f"{one.id} ({', '.join(filter(None, (one.type, *one.positions)))})"
            for one in namesakes
        )
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UsageError(
            f"{len(found)} {'entities' if what == 'entity' else 'relations'}{place} are called {_shown(name)}.",
            advice=f"Give the id of one: {listed}{more}.",
            namesakes=namesakes,
        )

    def _meant(self, what: _Kind, identity: int) -> Meant:
        if what == "relation":
            return Meant(self._graph.relations[identity].name, self._relations.names[identity])
        known = self._graph.entities[identity]
        return Meant(known.name, self._entities.names[identity], known.type)


class LabelIndex:
    """Labels to the ids that carry them, exactly and then in any case.

    The first look-ups scan all names in compiled code, which is quicker than making dictionaries for one question;
    whoever asks more often gets the dictionaries.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._asked = 0

    def carrying(self, name: str) -> list[int]:
        self._asked += 1
        if self._asked <= _SCANS:
            return _places(self._column, name) or _places(self._lower_column, name.lower())
        return self.exact.get(name) or self.lower.get(name.lower(), [])

    def nearest(self, name: str) -> list[int]:
        """The ids of the labels most like one that nobody carries, most alike first."""
        near = nearest_names(name, self.names, column=self._column)
        alike = pc.is_in(self._column, value_set=pa.array(near, type=pa.string())).to_numpy(zero_copy_only=False)
        return sorted(np.flatnonzero(alike).tolist(), key=lambda one: near.index(self.names[one]))

    @cached_property
    def _column(self) -> pa.Array:
        return pa.array(self.names, type=pa.string())

    @cached_property
    def _lower_column(self) -> pa.Array:
        return pc.utf8_lower(self._column)

    @cached_property
    def exact(self) -> dict[str, list[int]]:
        return _grouped(self.names)

    @cached_property
    def lower(self) -> dict[str, list[int]]:
        return _grouped(name.lower() for name in self.names)


def _places(column: pa.Array, name: str) -> list[int]:
    found: list[int] = np.flatnonzero(pc.equal(column, _whole(name)).to_numpy(zero_copy_only=False)).tolist()
    return found


def _whole(name: str) -> str:
    """Without half characters, which a terminal of another encoding gives and no name has."""
    return name if name.isascii() else name.encode("utf-8", "replace").decode()


def _grouped(names: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for identity, name in enumerate(names):
        found.setdefault(name, []).append(identity)
    return found


def nearest_names(name: str, names: Sequence[str], column: pa.Array | None = None) -> list[str]:
    """The names most like one, most alike first.

    A quick pass over all names (how many pieces of three letters they share, counted in compiled code) leaves a hundred
    that are compared letter by letter: a fraction of a second for a million names. `column` holds the names as an
    Arrow array, where the caller has one.
    """
    wanted = _whole(name).casefold()[:_LONGEST_NAME]
    if not wanted or not names:
        return []
    column = pc.utf8_lower(pa.array(names, type=pa.string()) if column is None else column)
    pieces = _pieces(wanted)
    shared = np.zeros(len(names), dtype=np.int32)
    for piece in pieces:
        shared += pc.match_substring(column, piece).to_numpy(zero_copy_only=False)
    lengths = pc.utf8_length(column).to_numpy()
    likeness = shared / len(pieces) - np.abs(lengths - len(wanted)) / (lengths + len(wanted))
    # Half a name, or more than the name, is a common way to ask.
    words = wanted.split(" ")
    starts = pa.array([" ".join(words[:count]) for count in range(1, len(words))], type=pa.string())
    begins = pc.or_(pc.is_in(column, value_set=starts), pc.starts_with(column, f"{wanted} ")).to_numpy(
        zero_copy_only=False
    )
    likeness[begins] += 1.0
    few = np.argpartition(-likeness, min(_CANDIDATES, len(names)) - 1)[:_CANDIDATES]
    few = few[(shared[few] > 0) | begins[few]]
    matcher = SequenceMatcher(b=wanted, autojunk=False)
    scored = {}
    for index in few.tolist():
        candidate = names[index].casefold()[:_LONGEST_NAME]
        matcher.set_seq1(candidate)
        scored[names[index]] = -matcher.ratio() - (0.2 if begins[index] else 0.0)
    return sorted(scored, key=lambda found: (scored[found], found))[:_NEAREST]


def _pieces(text: str, most: int = 16) -> list[str]:
    """Pieces of three letters (two of a short text), evenly chosen where there are many."""
    size = 3 if len(text) > 4 else min(2, len(text))
    pieces = list(dict.fromkeys(text[at : at + size] for at in range(len(text) - size + 1)))
    return [pieces[at * len(pieces) // most] for at in range(most)] if len(pieces) > most else pieces


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")


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
    return _Letters(code, np.repeat(np.arange(len(names), dtype=np.int32), size), offsets_of(size))


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
    first = begins(piece, owner)
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
