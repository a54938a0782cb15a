"""A hint for a graph without any number whose values look like numbers: they were read as names, which few mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hynt.cli.output import note_to_person
from hynt.formats.csv_columns import NUMBER, SHARE, as_given

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

SHOWN = 5


def hint_at_numbers(graph: KnowledgeGraph) -> None:
    """Says on standard error, in one note, which relations seem to hold numbers that nobody marked."""
    names = relations_like_numbers(graph)
    if not names:
        return
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    note_to_person(
        f"this graph holds no numbers, but values of {listed} look like numbers. They are taken for names of entities, "
        f"so nothing is learnt of how large they are. If they are numbers, import the graph again and mark them: "
        f"--numeric {as_given(names[:SHOWN])} for a table; other formats have types (docs/start/own-data.md)."
    )


def relations_like_numbers(graph: KnowledgeGraph) -> list[str]:
    """Relations whose values are written like numbers and are never the head of a fact, where no relation is numeric.

    It is a guess, so nothing but a hint may follow from it: a house number is no number either.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    vocabulary = graph.vocabulary
    if vocabulary.relation_is_number.any() or not vocabulary.entity_count:
        return []
    written = pa.array(vocabulary.entities, type=pa.string())
    like = np.array(pc.match_substring_regex(written, f"^{NUMBER}$").to_pylist(), dtype=np.bool_)
    for table in graph.splits.values():
        like[table.head] = False
    seen, fits = np.zeros(vocabulary.relation_count), np.zeros(vocabulary.relation_count)
    for table in graph.splits.values():
        for relation, value in (
            (table.relation, table.tail_entity),
            (table.qualifier_relation, table.qualifier_entity),
        ):
            seen += np.bincount(relation, minlength=vocabulary.relation_count)
            fits += np.bincount(relation, weights=like[value], minlength=vocabulary.relation_count)
    return [vocabulary.relations[place].name for place in np.flatnonzero((seen > 0) & (fits >= SHARE * seen))]
