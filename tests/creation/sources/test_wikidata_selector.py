"""Which lines of Wikidata's dump are looked at, and which answers of the API are read."""

from __future__ import annotations

from collections import Counter

from hynt.creation.options import Selection
from hynt.creation.sources.source import ParseSettings
from hynt.creation.sources.wikidata import WikidataDump
from tests.creation import sample_dump
from tests.creation.sources.test_wikidata_parser import parse
from tests.creation.sources.wikidata_lines import compact, entity, item_value, statement


def test_selector_skips_by_the_first_bytes():
    kind = WikidataDump()
    block = b"[\n" + b",\n".join(sample_dump.lines()) + b"\n\n]"
    selected = kind.selector(Selection(frozenset({"Q405"})), ParseSettings())(block, 1000)
    texts = [line for _, line in selected.lines]
    assert sum(line.startswith(b'{"type":"item"') for line in texts) == 1
    assert all(block[offset - 1000 :].startswith(line) for offset, line in selected.lines)
    assert selected.counts == Counter({("lines", "not-selected"): 4, ("lines", "frame"): 2, ("lines", "blank"): 1})
    # what does not start as an item (a property, a lexeme, another order of keys) is left to the parser
    assert len(texts) == 5


def test_selector_by_type_never_loses_an_entity_of_it():
    kind, selection = WikidataDump(), Selection(types=frozenset({"Q5"}))
    old = entity(
        "Q2", [statement("P31", {"value": {"entity-type": "item", "numeric-id": 5}, "type": "wikibase-entityid"})]
    )
    block = b"\n".join(
        [
            compact(entity("Q1", [statement("P31", item_value("Q5"))])),
            compact(old),
            compact(entity("Q3", [statement("P31", item_value("Q55"))])),
        ]
    )
    selected = kind.selector(selection, ParseSettings())(block, 0)
    assert [parse(line, selection).names[0].identity for _, line in selected.lines] == ["Q1", "Q2"]


def test_answers_of_the_api():
    kind = WikidataDump()
    first, second = entity("Q1", []), entity("Q2", [statement("P31", item_value("Q5"))])
    for data in (
        compact({"entities": {"Q1": first, "Q2": second}, "success": 1}),
        b'{\n  "entities" : {\n "Q1" : ' + compact(first) + b' ,\n "Q2":\n' + compact(second) + b"\n}\n}\n",
    ):
        assert kind.is_document(data[:100])
        lines = kind.document_lines(data)
        assert [parse(line).names[0].identity for _, line in lines] == ["Q1", "Q2"]
        assert all(data[offset:].startswith(line) for offset, line in lines)
    assert not kind.is_document(compact(first))
    assert not kind.is_document(b"[\n")
