"""The contract of a dump: which files it consists of, which lines are wanted, and what a line says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hynt.creation.rows import Counts, Parsed
from hynt.creation.scanning import Scan
from hynt.creation.selection import Selection
from hynt.formats.format import UnitRule


@dataclass(frozen=True)
class ParseSettings:
    """What a source's parser is told; part of the identity of a build's parts."""

    language: str = "en"
    keep_text: bool = False
    preferred_only: bool = False
    subclasses: bool = False  # Wikidata: types stand for their subclasses too
    mediator_types: frozenset[str] = frozenset()  # Freebase: types whose nodes only hold other values together
    units: UnitRule = "si"  # what becomes of numbers in other units
    number_properties: frozenset[str] = frozenset()  # Freebase: whose plain strings are numbers, by its schema


class Selected(NamedTuple):
    """The wanted lines of a block, each with its offset, and what became of the others."""

    lines: list[tuple[int, bytes]]
    counts: Counts


def selected(lines: list[tuple[int, bytes]], others: Mapping[str, int]) -> Selected:
    """Wanted lines, and how many others there were, by reason."""
    return Selected(lines, Counter({("lines", reason): number for reason, number in others.items() if number}))


Selector = Callable[[bytes, int], Selected]
"""Takes a block of whole lines and its offset. Fast: it looks at the start of a line and no further."""

Parser = Callable[[bytes], Parsed]
"""Takes a line; raises RecordProblem where it cannot be read. Pure: the same line always gives the same rows."""


class DumpSource(Protocol):
    """One kind of dump."""

    name: str
    suffixes: tuple[str, ...]  # of its files, before any compression suffix

    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """What has to be known of the whole dump before a line of it can be parsed."""
        ...

    def selector(self, selection: Selection, settings: ParseSettings) -> Selector: ...

    def parser(self, selection: Selection, settings: ParseSettings) -> Parser: ...

    def is_document(self, start: bytes) -> bool:
        """Whether a file that starts so is one document and not lines."""
        ...

    def document_lines(self, data: bytes) -> list[tuple[int, bytes]]:
        """The entities of such a document."""
        ...
