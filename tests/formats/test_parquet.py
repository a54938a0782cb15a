"""Parquet tables of facts: both shapes, saved graphs, bad rows and bad files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.formats.from_python import graph_from_facts
from hynt.formats.importing import ImportOptions, check_source, read_graph
from hynt.formats.parquet import BATCH_ROWS, write_graph
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.storage import save_graph
from tests.formats.graphs import facts, names, read_file

FACTS = [
    Fact("Harvard", "students", Number(1990.0, "1990"), (Qualifier("in", Number(2020.0, "2020", "date")),)),
    Fact("Harvard", "country", "US", (Qualifier("in", Number(1817.5, "1817.5", "date")), Qualifier("source", "web"))),
    Fact("Harvard", "weight", Number(80.0, "80", "kg")),
]


def table_of(rows):
    """The full shape, as another tool would write it."""

    def value(tail):
        if isinstance(tail, Number):
            return {"entity": None, "number": tail.value, "literal": tail.literal, "unit": tail.unit or None}
        return {"entity": tail, "number": None, "literal": None, "unit": None}

    made = [
        {
            "head": fact.head,
            "relation": fact.relation,
            **{f"tail_{name}": part for name, part in value(fact.tail).items()},
            "qualifiers": [{"relation": relation, **value(tail)} for relation, tail in fact.qualifiers],
        }
        for fact in rows
    ]
    text = pa.string()
    fields = [("entity", text), ("number", pa.float64()), ("literal", text), ("unit", text)]
    tail = [(f"tail_{name}", kind) for name, kind in fields]
    qualifiers = pa.list_(pa.struct([("relation", text), *fields]))
    schema = pa.schema([("head", text), ("relation", text), *tail, ("qualifiers", qualifiers)])
    return pa.Table.from_pylist(made, schema=schema)


def read(table, folder):
    path = folder / "facts.parquet"
    pq.write_table(table, path)
    return read_file(path, "parquet")


def test_the_full_shape(tmp_path):
    found, report = read(table_of(FACTS), tmp_path)
    assert found == FACTS
    assert report.bytes_read == (tmp_path / "facts.parquet").stat().st_size
    assert report.line == 3


def test_the_plain_shape_has_tails_of_the_columns_type(tmp_path):
    assert read(pa.table({"head": ["a"], "relation": ["r"], "tail": ["5"]}), tmp_path)[0] == [Fact("a", "r", "5")]
    numbers = pa.table({"head": ["a", "b"], "relation": ["r", "r"], "tail": [5, 6], "unit": ["kg", None]})
    assert read(numbers, tmp_path)[0] == [Fact("a", "r", Number(5.0, "5", "kg")), Fact("b", "r", Number(6.0, "6"))]


def test_large_strings_dictionaries_and_missing_optional_columns_are_read(tmp_path):
    table = pa.table(
        {
            "head": pa.array(["a", "a"], pa.large_string()),
            "relation": pa.array(["r", "r"]).dictionary_encode(),
            "tail_number": pa.array([1.5, 2.5], pa.float32()),
            "qualifiers": pa.array([None, [{"relation": "q", "entity": "x"}]]),
        }
    )
    assert read(table, tmp_path)[0] == [
        Fact("a", "r", Number(1.5, "1.5")),
        Fact("a", "r", Number(2.5, "2.5"), (Qualifier("q", "x"),)),
    ]


@pytest.mark.parametrize(
    "change, reason, what",
    [
        ({"head": ""}, "empty-name", "the head is empty."),
        ({"head": None}, "empty-name", "the head is empty."),
        ({"relation": None}, "empty-name", "the relation is empty."),
        ({"head": "a\x00"}, "control-character", "the head holds the control character U+0000."),
        ({"tail_entity": None}, "no-value", "the tail has neither an entity nor a number."),
        ({"tail_number": 5.0}, "two-values", "the tail has an entity and a number."),
        ({"tail_entity": None, "tail_number": float("nan")}, "bad-number", "'nan' is not a finite number."),
        ({"tail_entity": None, "tail_number": float("inf")}, "bad-number", "'inf' is not a finite number."),
        ({"qualifiers": [None]}, "no-value", "a qualifier is null."),
        ({"qualifiers": [{"relation": "q"}]}, "no-value", "the qualifier 'q' has neither an entity nor a number."),
        ({"qualifiers": [{"entity": "x"}]}, "empty-name", "the qualifier relation is empty."),
    ],
)
def test_bad_rows_are_rejected_with_their_number(tmp_path, change, reason, what):
    good = table_of([Fact("a", "r", "b")])
    bad = pa.Table.from_pylist([good.to_pylist()[0] | change], schema=good.schema)
    found, report = read(pa.concat_tables([good, bad, good]), tmp_path)
    assert len(found) == 2
    assert [problem[:3] for problem in report.problems] == [(f"{tmp_path}/facts.parquet:2", reason, what)]


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"x": ["a"]}, "facts have the columns head, relation and tail, and these are x."),
        ({"hed": ["a"], "relation": ["r"], "tail": ["b"]}, "the column head is missing. Did you mean hed?"),
        ({"head": ["a"], "relation": ["r"]}, "the columns tail_entity and tail_number are both missing, and so"),
        ({"head": [1], "relation": ["r"], "tail": ["b"]}, "the column head has the type int64. It holds strings."),
        (
            {"head": ["a"], "relation": ["r"], "tail": [True]},
            "the column tail has the type bool. It holds strings (entities) or numbers.",
        ),
        ({"head": ["a"], "relation": ["r"], "tail_number": ["5"]}, "the column tail_number has the type string."),
        ({"head": ["a"], "relation": ["r"], "tail": ["b"], "qualifiers": ["q"]}, "the column qualifiers has the type"),
        (
            {"head": ["a"], "relation": ["r"], "tail": ["b"], "qualifiers": [[{"relation": "q", "number": "5"}]]},
            "It holds a list of structs with relation, entity, number and, where wanted, literal and unit.",
        ),
    ],
)
def test_missing_columns_and_wrong_types_are_named(tmp_path, columns, message):
    with pytest.raises(DataError) as problem:
        read(pa.table(columns), tmp_path)
    assert f"{tmp_path}/facts.parquet: " in str(problem.value)
    assert message in str(problem.value)


@pytest.mark.parametrize("change", ["empty", "text", "truncated", "flipped"])
def test_a_damaged_file_is_an_error(tmp_path, change):
    path = tmp_path / "facts.parquet"
    pq.write_table(table_of(FACTS * 500), path)
    data = bytearray(path.read_bytes())
    if change == "flipped":
        data[-200:-100] = bytes(100)
    path.write_bytes({"empty": b"", "text": b"head,relation\n", "truncated": data[:-50], "flipped": data}[change])
    with pytest.raises(DataError) as problem:
        read_file(path, "parquet")
    assert str(problem.value).startswith(f"{path}: is not a readable Parquet file: ")
    assert str(problem.value).endswith("It is incomplete, damaged or of another kind: write or get it again.")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read: no such file or directory"):
        read_file(tmp_path / "facts.parquet", "parquet")


@given(st.lists(facts, max_size=5))
def test_what_another_tool_writes_in_the_full_shape_is_read(tmp_path_factory, written):
    found, _ = read(table_of(written), tmp_path_factory.mktemp("parquet"))
    assert found == written


def test_an_exported_graph_is_imported_again_with_units(tmp_path):
    graph = graph_from_facts(FACTS)
    files = write_graph(graph, tmp_path / "out")
    assert {file.name for file in files} >= {"train.parquet", "entities.jsonl", "relations.jsonl"}
    found, _ = read_file(tmp_path / "out" / "train.parquet", "parquet")
    assert {fact.key() for fact in found} == {fact.key() for fact in graph.facts("train")}
    assert {fact.tail.unit for fact in found if fact.relation == "weight"} <= {"kg"}
    assert read_graph(tmp_path / "out", "parquet") == graph


def test_a_saved_graph_is_read_with_the_units_of_its_relations(tmp_path):
    graph = graph_from_facts({"train": FACTS})
    save_graph(graph, tmp_path / "saved")
    found, _ = read_file(tmp_path / "saved" / "train.parquet", "parquet")
    assert found == FACTS
    again = read_graph(tmp_path / "saved", "parquet")
    assert list(again.facts()) == list(graph.facts())


entity_facts = st.tuples(names, names, names).map(lambda parts: Fact(*parts))


@settings(max_examples=25)  # each example writes files down to the disk
@given(written=st.lists(entity_facts, min_size=1, max_size=8, unique=True))
def test_export_and_import_keep_any_name(tmp_path_factory, written):
    graph = graph_from_facts({"train": written})
    folder = tmp_path_factory.mktemp("parquet") / "out"
    write_graph(graph, folder)
    assert read_graph(folder, "parquet", ImportOptions()) == graph


def test_many_rows_go_through_batches(tmp_path):
    count = 2 * BATCH_ROWS + 5
    graph = graph_from_facts({"train": (("e", "r", index, [("q", f"v{index % 7}")]) for index in range(count))})
    write_graph(graph, tmp_path / "out")
    found, report = read_file(tmp_path / "out" / "train.parquet", "parquet")
    assert found == list(graph.facts())
    assert report.line == count


def test_nothing_is_left_behind_when_the_target_exists(tmp_path):
    graph = graph_from_facts({"train": FACTS})
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="already exists"):
        write_graph(graph, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_columns_that_are_not_read_are_told_with_what_reads_them(tmp_path):
    facts = {"head": ["A"], "relation": ["knows"], "tail": ["B"], "unit": [""], "year": [2001], "place": ["x"]}
    pq.write_table(pa.table(facts), tmp_path / "facts.parquet")
    report, _ = check_source(tmp_path / "facts.parquet", "")
    (hint,) = report.hints
    assert hint.startswith("of facts.parquet the columns year, place were not read.")
    assert hint.endswith('hynt.graph_from_table(pandas.read_parquet("facts.parquet"))')
    pq.write_table(pa.table({"club": ["A"], "seats": [1]}), tmp_path / "clubs.parquet")
    with pytest.raises(DataError, match="and these are club, seats") as problem:
        check_source(tmp_path / "clubs.parquet", "")
    assert 'graph_from_table(pandas.read_parquet("clubs.parquet"), head=COLUMN, wide=True)' in problem.value.advice
