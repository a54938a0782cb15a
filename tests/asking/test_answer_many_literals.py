"""Numbers in questions are spelt as training spells them, many at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.runs.scoring import _Spellings


def test_the_first_spelling_under_the_same_relation_is_taken():
    facts = [
        ("a", "height", number(2.0, "", "+2.0")),
        ("b", "height", number(2.0, "", "2")),
        ("c", "width", number(2.0, "", "two"), [("height", number(-1.5, "", "-1.50"))]),
        ("d", "width", number(0.0, "", "nil")),
    ]
    graph = graph_from_facts({"train": facts}, name="spelt")
    ids = graph.vocabulary.relation_ids
    relation = np.array([ids[name] for name in ("height", "width", "height", "height", "width", "width")], np.int32)
    value = np.array([2.0, 2.0, -1.5, 7.0, -0.0, 2.0])
    written = pa.array(["2.00", "2.00", "-1.5", "7", "0", None], pa.string())
    found = _Spellings.of(graph.split("train")).spelt(relation, value, written)
    assert found.to_pylist() == ["+2.0", "two", "-1.50", "7", "nil", None]


def test_many_numbers_find_their_spelling():
    generator = np.random.default_rng(0)
    values = generator.integers(0, 400, 300) / 8
    facts = [
        (f"e{index}", f"r{index % 3}", number(value, "", f"~{value}")) for index, value in enumerate(values.tolist())
    ]
    graph = graph_from_facts({"train": facts}, name="many")
    table = graph.split("train")
    found = _Spellings.of(table).spelt(table.relation, table.tail_number, pa.array(["?"] * len(table), pa.string()))
    assert found.to_pylist() == [f"~{value}" for value in table.tail_number.tolist()]
