"""A hint for a graph without any number whose values look like numbers: they were read as names, which few mean."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hynt.cli.output import visible

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

SHOWN = 5
NUMBER = r"^\s*[-+]?\d+([.,]\d+)*([eE][-+]?\d+)?\s*$"
SHARE = 0.9
"""Of a relation's values: some may be missing or unknown, in words."""


def hint_at_numbers(graph: KnowledgeGraph) -> None:
    """Says on standard error, in one note, which relations seem to hold numbers that nobody marked."""
    names = relations_like_numbers(graph)
    if not names:
        return
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    marked = visible(",".join(f'"{name}"' if "," in name else name for name in names[:SHOWN]))
    print(
        f"note: this graph holds no numbers, but values of {visible(listed)} look like numbers. They are taken for "
        f"names of entities, so nothing is learnt of how large they are. If they are numbers, import the graph again "
        f"and mark them: --numeric {marked!r} for a table; other formats have types (docs/own-data.md).",
        file=sys.stderr,
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
    like = np.array(pc.match_substring_regex(written, NUMBER).to_pylist(), dtype=np.bool_)
    for table in graph.splits.values():
        like[table.head] = False
    seen, fits = np.zeros(vocabulary.relation_count), np.zeros(vocabulary.relation_count)
    for table in graph.splits.values():
        for relation, value in (
            (table.relation, table.tail_entity), (table.qualifier_relation, table.qualifier_entity)
        ):  # fmt: skip
            seen += np.bincount(relation, minlength=vocabulary.relation_count)
            fits += np.bincount(relation, weights=like[value], minlength=vocabulary.relation_count)
    return [vocabulary.relations[place].name for place in np.flatnonzero((seen > 0) & (fits >= SHARE * seen))]
