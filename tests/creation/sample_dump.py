"""A small dump with every awkward case that real ones have, and what a graph should make of it."""

from __future__ import annotations

from tests.creation.sources.wikidata_lines import (
    compact,
    coordinate_value,
    entity,
    item_value,
    monolingual_value,
    property_entity,
    quantity_value,
    snak,
    statement,
    string_value,
    time_value,
)

HARVARD_LAW, HARVARD, CAMBRIDGE, CAESAR, MOON, GHOST = "Q49122", "Q13371", "Q49111", "Q1048", "Q405", "Q777"
METRE, CENTIMETRE, KILOGRAM, EURO, UNHEARD_OF = "Q11573", "Q174728", "Q11570", "Q4916", "Q999999999"


def lines() -> list[bytes]:
    """The entities, one per line, as the dump has them between its brackets."""
    return [
        compact(property_entity("P2196", "students count", "quantity", "how many study there")),
        compact(property_entity("P625", "coordinate location", "globe-coordinate")),
        compact(
            entity(
                HARVARD_LAW,
                [
                    statement("P31", item_value("Q1")),
                    # a quantity with bounds, the unit 1, and two qualifiers of which one stands there twice
                    statement(
                        "P2196",
                        quantity_value("+1990", bounds=("+1980", "+2000")),
                        qualifiers=[
                            snak("P585", time_value("+2020-00-00T00:00:00Z", 9)),
                            snak("P585", time_value("+2020-00-00T00:00:00Z", 9)),
                            snak("P459", None, "novalue"),
                            snak("P1480", None, "somevalue"),
                            snak("P1810", string_value("students")),
                            snak("P276", item_value(CAMBRIDGE)),
                            snak("P276", item_value(GHOST)),
                        ],
                    ),
                    statement("P361", item_value(HARVARD)),
                    statement(
                        "P361",
                        item_value("Q13371000"),
                        rank="deprecated",
                        qualifiers=[snak("P585", time_value("+1999-01-01T00:00:00Z"))],
                    ),
                    statement("P571", time_value("+1817-00-00T00:00:00Z", 9)),
                    statement("P856", string_value("https://hls.harvard.edu")),
                    statement("P1448", monolingual_value("Harvard Law School", "en")),
                    statement("P112", None, kind="somevalue"),
                    statement(
                        "P138", None, kind="novalue", qualifiers=[snak("P580", time_value("+1900-01-01T00:00:00Z"))]
                    ),
                ],
                label="Harvard Law School",
            )
        ),
        compact(
            entity(
                HARVARD,
                [
                    statement(
                        "P625",
                        coordinate_value(42.374444444444, -71.116944444444),
                        qualifiers=[snak("P518", item_value(CAMBRIDGE))],
                    ),
                    statement("P2048", quantity_value("+5000", CENTIMETRE)),
                    statement("P2048", quantity_value("+12", METRE)),
                    statement("P2048", quantity_value("+3", UNHEARD_OF)),
                    statement("P2048", quantity_value("+80", KILOGRAM)),
                    statement("P571", time_value("+1636-09-08T00:00:00Z", 11, julian=True)),
                    statement("P571", time_value("+1636-09-00T00:00:00Z", 10), rank="preferred"),
                    statement("P571", time_value("+1650-00-00T00:00:00Z", 8)),
                    statement("P571", time_value("+1701-00-00T00:00:00Z", 7)),
                    statement("P571", time_value("+1000-00-00T00:00:00Z", 6)),
                    statement("P571", time_value("+1900-02-30T00:00:00Z", 11)),
                    statement("P131", item_value(CAMBRIDGE)),
                    statement("P131", item_value(CAMBRIDGE)),  # the same fact twice
                    statement("P2139", quantity_value("+5000000000", EURO)),
                ],
                label="Universität Harvard \U0001f393",
            )
        ),
        compact(entity(CAMBRIDGE, [], label=None)),  # no labels and no claims: both come as []
        compact(
            entity(
                CAESAR,
                [
                    statement("P569", time_value("-0100-07-12T00:00:00Z", 11, julian=True)),
                    statement("P570", time_value("-0044-03-15T00:00:00Z", 11, julian=True)),
                    statement("P570", time_value("-0044-00-00T00:00:00Z", 9)),
                    statement("P2048", quantity_value("not a number", METRE)),
                    statement("P9999", {"value": {"new": 1}, "type": "a-type-of-tomorrow"}),
                    statement("P361", item_value(GHOST)),
                ],
                label="Julius Caesar",
            )
        ),
        compact(entity(MOON, [statement("P625", coordinate_value(0.5, 10.25, "Q405"))], label="Moon")),
        b'{"type":"lexeme","id":"L1","lemmas":{"en":{"language":"en","value":"mother"}},"claims":{}}',
        b'{"id":"Q888","missing":""}',  # the API's word for a deleted entity
    ]
