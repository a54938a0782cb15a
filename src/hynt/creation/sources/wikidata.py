"""Wikidata's JSON: dumps with one entity per line, what the API answers, and files of single entities."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec

from hynt.creation.options import Selection
from hynt.creation.reading import Scan
from hynt.creation.sources.source import (
    Counts,
    DumpSource,
    Named,
    Parsed,
    ParsedFact,
    ParsedValue,
    Parser,
    ParseSettings,
    Selected,
    Selector,
    nothing,
    selected,
)
from hynt.creation.sources.wikidata_json import (
    IDENTITY,
    INSTANCE_OF,
    LATITUDE,
    LONGITUDE,
    Envelope,
    NoValue,
    Snak,
    SnakValues,
    Statement,
    checked_identity,
    entity_structure,
    texts_structure,
    type_test,
    with_subclasses,
)
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.source_files import bare_name
from hynt.formats.values import as_description, check_name

_ITEM = b'{"type":"item","id":"'  # how lines of dumps start, so that foreign ones are told by their first bytes
_DOCUMENT = re.compile(rb'\s*\{\s*"(?:entities|success)"\s*:|\s*\[?\s*\{\s*\n|\s*\[[ \t]*\{[^\n]*\Z')
"""An answer of the API, something written over several lines, or a list that begins with a long line."""
_LABEL_ENDINGS = ((LATITUDE, " (latitude)"), (LONGITUDE, " (longitude)"))


class WikidataDump(DumpSource):
    """Entity dumps, `latest-all.json` and its parts, and answers of wbgetentities or Special:EntityData."""

    name = "wikidata"
    suffixes = (".json", ".jsonl", ".ndjson")

    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """Where subclasses count, find them; else a line says all there is to know."""
        _refuse_foreign_names(selection, dump)
        if not settings.subclasses:
            return selection, settings
        return replace(selection, types=with_subclasses(selection.types, dump)), settings

    def selector(self, selection: Selection, settings: ParseSettings) -> Selector:  # noqa: ARG002
        """With given entities the id decides; with types, whether a type's id is anywhere in the line."""
        wanted = None if selection.entities is None else frozenset(name.encode() for name in selection.entities)
        may_have_type = type_test(selection.types)

        def select(block: bytes, offset: int) -> Selected:
            lines: list[tuple[int, bytes]] = []
            foreign = frame = blank = 0
            find, begins = block.find, block.startswith
            start, length = 0, len(block)
            while start < length:
                end = find(b"\n", start)
                if end < 0:
                    end = length
                if begins(_ITEM, start):
                    if wanted is not None:
                        first = start + 21
                        if block[first : find(b'"', first)] not in wanted:
                            foreign += 1
                            start = end + 1
                            continue
                    elif may_have_type is not None and not may_have_type(block, start, end):
                        foreign += 1
                        start = end + 1
                        continue
                elif end - start < 4:  # the array around the entities, or nothing
                    text = block[start:end].strip()
                    if text in (b"[", b"]", b"],", b"", b","):
                        frame += bool(text)
                        blank += not text
                        start = end + 1
                        continue
                lines.append((offset + start, block[start:end]))
                start = end + 1
            return selected(lines, {"not-selected": foreign, "frame": frame, "blank": blank})

        return select

    def parser(self, selection: Selection, settings: ParseSettings) -> Parser:
        return WikidataParser(selection, settings).parse

    def is_document(self, start: bytes) -> bool:
        return _DOCUMENT.match(start) is not None

    def document_lines(self, data: bytes) -> list[tuple[int, bytes]]:
        try:
            if data.lstrip().startswith(b"["):
                entities = msgspec.json.decode(data, type=list[msgspec.Raw])
            else:
                envelope = msgspec.json.decode(data, type=Envelope)
                entities = [msgspec.Raw(data)] if envelope.entities is None else list(envelope.entities.values())
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise DataError(
                f"the answer of the API cannot be read: {problem}.", advice="Save the answer whole, as JSON."
            ) from None
        lines, place = [], 0
        for raw in entities:
            text = bytes(raw)
            place = data.find(text, place)
            lines.append((place, text))
            place += len(text)
        return lines


class WikidataParser:
    """From a line with one entity to its facts, names and redirects."""

    def __init__(self, selection: Selection, settings: ParseSettings) -> None:
        self._decode = msgspec.json.Decoder(entity_structure(settings.language)).decode
        self._texts = msgspec.json.Decoder(texts_structure(settings.language)).decode
        self._selection = selection
        self._values = SnakValues(settings.keep_text)
        self._preferred_only = settings.preferred_only

    def parse(self, line: bytes) -> Parsed:
        """The rows of a line, with or without the comma that follows it in a dump, or the brackets of a short list."""
        try:
            entity = self._decode(line.strip().removesuffix(b",").removeprefix(b"[").removesuffix(b"]"))
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise RecordProblem("bad-json", f"{problem}.", "Get the dump again, or look at the line.") from None
        except RecursionError:
            raise RecordProblem("bad-json", "the JSON is nested too deeply.", "Look at the line.") from None
        if entity.missing is not None:
            return nothing("deleted-entity")
        identity = checked_identity(entity.id)
        if entity.type == "property":
            names = _property_names(identity, _label(entity.labels), self._description(entity.descriptions))
            return Parsed([], [], names, [], Counter({("lines", "property"): 1}))
        label = _label(entity.labels)
        if entity.type != "item":
            return nothing("other-entity-type")
        redirects = [] if entity.redirects is None else [(checked_identity(entity.redirects.source), identity)]
        claims: dict[str, list[Statement]] = entity.claims if isinstance(entity.claims, dict) else {}
        types = self._types(claims.get(INSTANCE_OF, ()))
        if not self._is_wanted([identity, *(source for source, _ in redirects)], types):
            return nothing("not-selected")
        counts: Counts = Counter({("lines", "parsed"): 1})
        if not label:
            counts["notes", "without-label"] += 1
        facts: list[ParsedFact] = []
        for statements in claims.values():
            self._add_statements(identity, statements, facts, counts)
        names = [Named("entity", identity, label, types[0] if types else "")]
        return Parsed(facts, [], names, redirects, counts)

    def _description(self, written: msgspec.Raw) -> str:
        try:
            return as_description(_text(self._texts(written)))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ""  # the facts of a dump do not need it

    def _is_wanted(self, identities: list[str], types: list[str]) -> bool:
        if self._selection.entities is not None:
            return not self._selection.entities.isdisjoint(identities)
        return not self._selection.types or not self._selection.types.isdisjoint(types)

    def _add_statements(self, head: str, statements: list[Statement], facts: list[ParsedFact], counts: Counts) -> None:
        best_only = self._preferred_only and any(statement.rank == "preferred" for statement in statements)

        def note(what: str) -> None:
            counts["notes", what] += 1

        for statement in statements:
            snak = statement.mainsnak
            given = statement.qualifiers if isinstance(statement.qualifiers, dict) else {}
            reason = "deprecated" if statement.rank == "deprecated" else ""
            if best_only and statement.rank == "normal":
                reason = "not-preferred"
            try:
                pieces = self._values.pieces(snak, note) if not reason else []
            except NoValue as problem:
                reason = problem.reason
            if reason:
                number = self._values.count(snak)
                counts["facts", reason] += number
                if given:
                    lost = sum(self._values.count(snak) for snaks in given.values() for snak in snaks)
                    counts["qualifiers", "fact-dropped"] += lost * number
                continue
            qualifiers = self._qualifiers(given, len(pieces), counts) if given else ()
            relation = checked_property(snak.property)
            facts.extend(ParsedFact(head, relation + ending, value, qualifiers) for ending, value in pieces)

    def _qualifiers(
        self, given: dict[str, list[Snak]], copies: int, counts: Counts
    ) -> tuple[tuple[str, ParsedValue], ...]:
        """The qualifiers of a statement; each counts once for every fact that the statement becomes."""

        def note(what: str) -> None:
            counts["notes", what] += copies

        kept: list[tuple[str, ParsedValue]] = []
        for snaks in given.values():
            for snak in snaks:
                try:
                    relation = checked_property(snak.property)
                    kept.extend((relation + ending, value) for ending, value in self._values.pieces(snak, note))
                except NoValue as problem:
                    counts["qualifiers", problem.reason] += copies * self._values.count(snak)
        return tuple(kept)

    def _types(self, statements: Any) -> list[str]:
        """What the entity is an instance of, the best ranks first."""
        found: list[tuple[bool, str]] = []
        for statement in statements:
            if statement.rank == "deprecated":
                continue
            try:
                pieces = self._values.pieces(statement.mainsnak, lambda what: None)
            except NoValue:
                continue
            found.extend((statement.rank != "preferred", piece.value) for _, piece in pieces if piece.kind == "entity")
        return [name for _, name in sorted(found, key=lambda pair: pair[0])]


def _refuse_foreign_names(selection: Selection, dump: Scan) -> None:
    """What could never be found is said before the dump is read."""
    for name in sorted(selection.types):
        if not (name.startswith("Q") and IDENTITY.fullmatch(name)):
            raise UsageError(
                f"{name!r} is not a Wikidata item.", where="--instance-of", advice="Give its id, such as Q11424."
            )
    if selection.entities is not None and not any(map(IDENTITY.fullmatch, selection.entities)):
        raise DataError(
            f"none of the entities, such as {min(selection.entities)!r}, has an id of Wikidata.",
            where="--entities",
            advice="Give ids such as Q42, or a file that maps yours to them with --mapping.",
        )
    triples = [path.name for path in dump.files if bare_name(path.name).endswith((".nt", ".ttl", ".nq"))]
    if triples:
        raise UsageError(
            f"{triples[0]} is an RDF dump, and this command reads JSON.",
            advice="Import it with: hynt data import DUMP --format rdf --out GRAPH.",
        )


def checked_property(name: str) -> str:
    """The id of a property; anything else spoils the line."""
    if not (name.startswith("P") and name[1:].isascii() and name[1:].isdecimal()):
        raise RecordProblem("bad-json", f"{name[:40]!r} is not a Wikidata property.", "Get the dump again.")
    return name


def _text(texts: Any) -> str:
    """What an entity's labels or descriptions say in the language that they were decoded in."""
    if texts is None or isinstance(texts, list):
        return ""
    found = texts.chosen or getattr(texts, "shared", None)
    return "" if found is None else str(found.value)


def _label(labels: Any) -> str:
    label = _text(labels)
    try:
        return check_name(label, "label") if label else ""
    except RecordProblem:
        return ""


def _property_names(identity: str, label: str, description: str) -> list[Named]:
    """A property, and the two relations that it would become if its values were coordinates."""
    names = [Named("relation", identity, label, description=description)]
    names.extend(
        Named("relation", identity + ending, label + words, description=description)
        for ending, words in _LABEL_ENDINGS
        if label
    )
    return names
