"""Freebase's RDF dump: N-Triples with tabs, whose mediators (compound value types) hold the parts of one fact together.

    <…/ns/m.02mjmr>   <…/ns/award.award_nominee.award_nominations>   <…/ns/m.0x1>                          .
    <…/ns/m.0x1>      <…/ns/award.award_nomination.award>            <…/ns/m.02x4w6g>                      .
    <…/ns/m.0x1>      <…/ns/award.award_nomination.year>             "2006"^^<…XMLSchema#gYear>            .

A property is named after the type it belongs to, so its name tells whether its subject is a mediator. Which types are
mediators, and which properties hold numbers (they are written as plain strings), the dump's own schema says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hynt.creation.options import Selection
from hynt.creation.reading import Scan
from hynt.creation.sources.source import (
    DumpSource,
    Parsed,
    ParsedValue,
    Parser,
    ParseSettings,
    Selected,
    Selector,
    entity_name,
    line_text,
    literal_value,
    nothing,
    one_value,
    read_literal,
    selected,
)
from hynt.errors import DataError, RecordProblem
from hynt.formats.values import check_name

SPACE = "http://rdf.freebase.com/ns/"
_START = b"<http://rdf.freebase.com/ns/"
_NAME, _MEDIATOR, _EXPECTED = "type.object.name", "freebase.type_hints.mediator", "type.property.expected_type"
_KEY, _TYPE = "type.object.key", "type.object.type"
_NUMBER_TYPES = frozenset({"type.int", "type.float"})
_ENTITY_STARTS = (b"m.", b"g.")
_TOPICS = tuple(_START + start for start in _ENTITY_STARTS)
_PROPERTIES_REMEMBERED = 1_000_000


class FreebaseDump(DumpSource):
    """The last dump of Freebase, or triples in its form."""

    name = "freebase"
    suffixes = (".nt", ".rdf", ".ttl", "freebase-rdf-latest")

    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """Look the schema up: mediator types (unless they were given), properties of numbers, entities of types."""
        needles = [_needle(_EXPECTED)]
        if not settings.mediator_types:
            needles.append(_needle(_MEDIATOR))
        of_type = {f"{_TYPE}>\t<{SPACE}{name}>": name for name in selection.types}
        needles += [needle.encode() for needle in of_type]
        mediators: set[str] = set()
        numbers: set[str] = set()
        entities: set[str] = set()
        for subject, predicate, value, name in _triples(dump, *needles):
            if predicate == _EXPECTED and name in _NUMBER_TYPES:
                numbers.add(subject)
            elif predicate == _MEDIATOR and (value.startswith('"true"') or name == "type.boolean.true"):
                mediators.add(subject)
            elif predicate == _TYPE and name in selection.types:
                entities.add(subject)
        if selection.types:
            if not entities:
                raise DataError(
                    f"nothing in this dump is of the type {' or '.join(sorted(selection.types))}.",
                    where="--instance-of",
                    advice="Write types as people.person.",
                )
            selection = Selection(frozenset(entities), selection.types)
        elif selection.entities is not None:  # /m/02mjmr, as FB15K writes it, is m.02mjmr in the dump
            names = frozenset(name.removeprefix("/").replace("/", ".") for name in selection.entities)
            selection = replace(selection, entities=names)
        found = settings.mediator_types or _resolved(dump, mediators)
        return selection, replace(settings, mediator_types=found, number_properties=frozenset(numbers))

    def selector(self, selection: Selection, settings: ParseSettings) -> Selector:
        """Lines about a wanted topic, and those that a mediator's property says; others are told by two cells."""
        wanted = (
            None
            if selection.entities is None
            else frozenset(_START + name.encode() + b">" for name in selection.entities)
        )
        of_mediator = _OfMediator(settings.mediator_types)

        def select(block: bytes, offset: int) -> Selected:
            lines: list[tuple[int, bytes]] = []
            foreign = blank = 0
            for line in block.split(b"\n"):
                cells = line.split(b"\t", 2)
                if len(cells) < 3:
                    if line and not line.isspace():  # other separators, or no triple: the parser knows
                        lines.append((offset, line))
                    else:
                        blank += 1
                else:
                    known = cells[0].startswith(_TOPICS) if wanted is None else cells[0] in wanted
                    if known or of_mediator[cells[1]]:
                        lines.append((offset, line))
                    else:
                        foreign += 1
                offset += len(line) + 1
            return selected(lines, {"not-selected": foreign, "blank": blank})

        return select

    def parser(self, selection: Selection, settings: ParseSettings) -> Parser:  # noqa: ARG002
        mediators, numbers = settings.mediator_types, settings.number_properties

        def parse(line: bytes) -> Parsed:
            triple = _triple(line)
            if triple is None:
                raise RecordProblem("bad-line", "the line is not a triple of Freebase.", "Get the dump again.")
            subject, predicate, value = triple
            if not predicate or not subject:
                return nothing("other-vocabulary")
            if predicate == _NAME:
                return _name(subject, value, settings.language)
            of_mediator = predicate.rpartition(".")[0] in mediators
            is_numeric = predicate in numbers
            return one_value(
                subject, predicate, lambda: _value(value, is_numeric, settings.keep_text), of_node=of_mediator
            )

        return parse


class _OfMediator(dict[bytes, bool]):
    """Whether a property, as a cell of the dump, belongs to a mediator's type; found once for each."""

    def __init__(self, types: frozenset[str]) -> None:
        super().__init__()
        self._types = frozenset(name.encode() for name in types)

    def __missing__(self, cell: bytes) -> bool:
        found = cell.startswith(_START) and cell[len(_START) : -1].rpartition(b".")[0] in self._types
        if len(self) < _PROPERTIES_REMEMBERED:
            self[cell] = found
        return found


def _needle(predicate: str) -> bytes:
    return f"<{SPACE}{predicate}>".encode()


def _triples(dump: Scan, *needles: bytes) -> Iterator[tuple[str, str, str, str]]:
    """The triples with one of the needles, and what their value names; bad lines are counted when they are parsed."""
    for line in dump.lines_with(*needles):
        try:
            triple = _triple(line)
            if triple is not None:
                yield *triple, _inside(triple[2])
        except RecordProblem:
            continue


def _triple(line: bytes) -> tuple[str, str, str] | None:
    """Subject and predicate without their address ("" where it is another vocabulary's), and the value as written."""
    text = line_text(line).strip()
    if not text.endswith("."):
        return None
    pieces = text[:-1].rstrip().split(None, 2)
    if len(pieces) != 3 or not (_is_address(pieces[0]) and _is_address(pieces[1])):
        return None
    return _inside(pieces[0]), _inside(pieces[1]), pieces[2]


def _is_address(token: str) -> bool:
    return len(token) > 2 and token[0] == "<" and token[-1] == ">"


def _inside(token: str) -> str:
    """The name of one of Freebase's own addresses; "" for anything else."""
    return check_name(token[len(SPACE) + 1 : -1], "id") if token.startswith(f"<{SPACE}") and token[-1] == ">" else ""


def _value(token: str, is_numeric: bool, keep_text: bool) -> ParsedValue:
    if token.startswith("<"):
        name = _inside(token)
        if not name.encode().startswith(_ENTITY_STARTS):
            raise RecordProblem("not-an-entity", "the value is an address that names no topic.")
        return ParsedValue("entity", name)
    return literal_value(token, keep_text, bare_is_number=is_numeric)


def _name(subject: str, value: str, language: str) -> Parsed:
    literal = read_literal(value)
    return entity_name(subject, literal) if literal.language == language else nothing("name")


def _resolved(dump: Scan, declared: set[str]) -> frozenset[str]:
    """Type names of mediators. The schema marks most of them under a machine id, which a key gives the type's name."""
    names = {name for name in declared if not name.encode().startswith(_ENTITY_STARTS)}
    machine = declared - names
    if machine:
        for subject, _, value, _ in _triples(dump, _needle(_KEY) + b'\t"/'):
            if subject in machine and value.endswith('"'):
                names.add(value[1:-1].strip("/").replace("/", "."))
    return frozenset(names)
