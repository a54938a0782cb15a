"""A hint for a graph without any number whose values look like numbers: they were read as names, which few mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hynt.cli.output import note_to_person

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


def hint_at_numbers(graph: KnowledgeGraph) -> None:
    """Says on standard error, in one note, which relations seem to hold numbers that nobody marked."""
    from hynt.formats.csv_columns import hint_at_numbers as hint_of

    hint = hint_of(graph)
    if hint is not None:
        note_to_person(hint)
