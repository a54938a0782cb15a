"""YAGO3 as tab-separated files: facts, literal facts, date facts, and meta facts that say when and where a fact holds.

    <id_1>   <Ulm>    <isLocatedIn>   <Germany>
    <id_2>   <Ulm>    <hasArea>       "118.69"^^<km2>                118.69
    <id_3>   <id_1>   <occursSince>   "1810-##-##"^^xsd:date         1810.0000

A line is id, subject, predicate, object and, for literals, YAGO's own rendering of the number, which is not used: the
literal says more.
"""

from __future__ import annotations

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

_FACT_ID = b"<id_"
_LANGUAGES = {
    "ar": "ara",
    "de": "deu",
    "en": "eng",
    "es": "spa",
    "fa": "fas",
    "fr": "fra",
    "it": "ita",
    "nl": "nld",
    "pl": "pol",
    "ro": "ron",
}
_PREFERRED_NAME = "skos:prefLabel"
_OTHER_NAMES = frozenset({"rdfs:label", "<redirectedFrom>", "<hasGloss>"})
_CLASSES = frozenset({"rdf:type", "rdfs:subClassOf"})
_PROVENANCE = frozenset({"<extractionSource>", "<extractionTechnique>"})


class YagoDump(DumpSource):
    """A folder of YAGO3's themes."""

    name = "yago"
    suffixes = (".tsv",)

    def prepare(self, dump: Scan, selection: Selection, settings: ParseSettings, /) -> tuple[Selection, ParseSettings]:
        """Where types are asked for, find who has them: `rdf:type` stands in other files than the facts.

        Ids may be given with their angle brackets or without.
        """
        if selection.entities is not None:
            return replace(selection, entities=frozenset(name.strip("<>") for name in selection.entities)), settings
        if not selection.types:
            return selection, settings
        wanted = {f"<{name.strip('<>')}>" for name in selection.types}
        found: set[str] = set()
        for line in dump.lines_with(b"\trdf:type\t"):
            cells = line.decode("utf-8", "replace").rstrip("\r").split("\t")
            if len(cells) >= 4 and cells[2] == "rdf:type" and cells[3] in wanted:
                found.add(cells[1].strip("<>"))
        if not found:
            raise DataError(
                f"nothing in this folder is of the type {' or '.join(sorted(wanted))}.",
                where="--instance-of",
                advice="Put yagoTypes.tsv or yagoTransitiveType.tsv into the folder, and check the type's name.",
            )
        return Selection(frozenset(found), selection.types), settings

    def selector(self, selection: Selection, settings: ParseSettings) -> Selector:  # noqa: ARG002
        wanted = (
            None if selection.entities is None else frozenset(b"<%s>" % name.encode() for name in selection.entities)
        )

        def select(block: bytes, offset: int) -> Selected:
            lines: list[tuple[int, bytes]] = []
            foreign = blank = 0
            for line in block.split(b"\n"):
                cells = line.split(b"\t", 2)
                if (
                    len(cells) == 3
                    and wanted is not None
                    and cells[1] not in wanted
                    and not cells[1].startswith(_FACT_ID)
                ):
                    foreign += 1
                elif line and not line.isspace():
                    lines.append((offset, line))
                else:
                    blank += 1
                offset += len(line) + 1
            return selected(lines, {"not-selected": foreign, "blank": blank})

        return select

    def parser(self, selection: Selection, settings: ParseSettings) -> Parser:  # noqa: ARG002
        language = _LANGUAGES.get(settings.language, settings.language)

        def parse(line: bytes) -> Parsed:
            cells = line_text(line.removesuffix(b"\r")).split("\t")
            if not 4 <= len(cells) <= 5:
                raise RecordProblem(
                    "bad-line",
                    f"the line has {len(cells)} cells.",
                    "A line of YAGO3 is id, subject, predicate, object.",
                )
            identity, subject, predicate, value = cells[:4]
            if predicate in _PROVENANCE or subject.startswith("<yagoTheme_"):
                return nothing("provenance")
            if predicate in _CLASSES:
                return nothing("class")
            if predicate == _PREFERRED_NAME or predicate in _OTHER_NAMES:
                return _name(subject, predicate, value, language)
            head, relation = bare(subject), bare(predicate)
            held = one_value(
                head, relation, lambda: _value(value, settings.keep_text), of_node=subject.startswith("<id_")
            )
            if identity:  # the name that meta facts know this one by
                held.facts[:] = [fact._replace(node=bare(identity)) for fact in held.facts]
            return held

        return parse


def bare(token: str) -> str:
    """An id without its angle brackets."""
    text = token[1:-1] if token.startswith("<") and token.endswith(">") else token
    return check_name(text, "id")


def _value(token: str, keep_text: bool) -> ParsedValue:
    if not token.startswith('"'):
        return ParsedValue("entity", bare(token))
    return literal_value(token, keep_text, types_are_units=True)  # YAGO's own datatypes are its units


def _name(subject: str, predicate: str, value: str, language: str) -> Parsed:
    if predicate != _PREFERRED_NAME or not value.startswith('"'):
        return nothing("name")
    literal = read_literal(value)
    if literal.language not in ("", language):
        return nothing("name")
    return entity_name(bare(subject), literal)
