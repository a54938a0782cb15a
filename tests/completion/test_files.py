"""Files of questions: JSON lines and Parquet say the same; what cannot be read is told with its place."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from hynt.completion.question_files import open_questions
from hynt.errors import UsageError
from hynt.graph.columns import FULL_SCHEMA
from hynt.graph.fact import Number
from tests.completion.question_rows import as_parquet

LINES = [
    {"head": "Person 2", "relation": "born in", "tail": "?"},
    {"head": "?", "relation": "height", "tail": {"number": 170, "unit": "cm"}},
    {"head": "p3", "relation": "spouse", "tail": "p10", "qualifiers": [["date", {"date": "1993"}], ["place", "?"]]},
    {"head": "p3", "relation": "?", "tail": 1.75},
]


def jsonl(path, lines=LINES):
    path.write_text("".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines))
    return path


def told(batches):
    return [batch.questions.parts(row) for batch in batches for row in range(len(batch.numbers))]


def test_json_lines_and_parquet_say_the_same(tmp_path):
    (batch,) = open_questions(jsonl(tmp_path / "q.jsonl")).batches(100)
    as_parquet(batch, tmp_path / "q.parquet")
    (same,) = open_questions(tmp_path / "q.parquet").batches(100)
    assert told([same]) == told([batch])
    assert told([batch])[1] == ("?", "height", Number(170.0, "170", "cm"), [])
    assert batch.numbers.tolist() == same.numbers.tolist() == [1, 2, 3, 4]


def test_the_plain_shape_with_few_columns(tmp_path):
    parquet.write_table(
        pa.table({"head": ["?", "p1"], "relation": ["height", "?"], "tail": [1.7, 1.8], "extra": [1, 2]}),
        tmp_path / "numbers.parquet",
    )
    parquet.write_table(
        pa.table({"head": pa.array(["p1", None]).dictionary_encode(), "relation": ["P19", "P19"], "tail": ["?", "t1"]}),
        tmp_path / "entities.parquet",
    )
    assert told(open_questions(tmp_path / "numbers.parquet").batches(5)) == [
        ("?", "height", Number(1.7, "1.7", ""), []),
        ("p1", "?", Number(1.8, "1.8", ""), []),
    ]
    assert told(open_questions(tmp_path / "entities.parquet").batches(5)) == [
        ("p1", "P19", "?", []),
        (None, "P19", "t1", []),
    ]


def test_columns_as_other_tools_write_them(tmp_path):
    """Large strings and lists, categories, structs with few fields, nulls for lists, integers beyond 2⁵³."""
    pair = pa.struct([("relation", pa.large_string()), ("entity", pa.large_string())])
    table = pa.table(
        {
            "head": pa.array(["p1", "p2", "p3"], pa.large_string()),
            "relation": pa.array(["P26", "P26", "P19"]).dictionary_encode(),
            "tail": pa.array(["p7", "?", "?"], pa.large_string()),
            "qualifiers": pa.array([[{"relation": "place", "entity": "?"}], None, []], pa.large_list(pair)),
        }
    )
    parquet.write_table(table, tmp_path / "large.parquet")
    assert told(open_questions(tmp_path / "large.parquet").batches(9)) == [
        ("p1", "P26", "p7", [("place", "?")]),
        ("p2", "P26", "?", []),
        ("p3", "P19", "?", []),
    ]
    integers = pa.table({"head": ["?"], "relation": ["height"], "tail": pa.array([2**53 + 1], pa.int64())})
    parquet.write_table(integers, tmp_path / "integers.parquet")
    ((_, _, tail, _),) = told(open_questions(tmp_path / "integers.parquet").batches(9))
    assert tail.value == float(2**53 + 1)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
@pytest.mark.parametrize("size,skip", [(1, 0), (3, 0), (3, 4), (4, 7), (100, 12), (100, 13)])
def test_batches_are_all_questions_in_order(tmp_path, kind, size, skip):
    count = 13
    lines = [{"head": f"e{number}", "relation": "r", "tail": "?"} for number in range(1, count + 1)]
    path = tmp_path / f"q.{kind}"
    if kind == "parquet":
        columns = {name: [line[name] for line in lines] for name in ("head", "relation", "tail")}
        parquet.write_table(pa.table(columns), path, row_group_size=5)
    else:
        text = "\n".join(json.dumps(line) for line in lines).replace("\n", "\n\n", 1).encode()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    file = open_questions(path)
    batches = list(file.batches(size, skip))
    assert [parts[0] for parts in told(batches)] == [f"e{number}" for number in range(skip + 1, count + 1)]
    assert [number for batch in batches for number in batch.numbers.tolist()] == list(range(skip + 1, count + 1))
    assert all(len(batch) == size for batch in batches[:-1])
    assert file.done() == 1.0


def test_bad_lines_are_kept_in_their_places(tmp_path):
    lines = [LINES[0], "nonsense\n", LINES[1], '{"head": "p1"}\n', '{"head": "p1", "relation": "r", "tail": [1]}\n']
    path = jsonl(tmp_path / "q.jsonl", lines)
    (batch,) = open_questions(path).batches(100)
    assert batch.numbers.tolist() == [1, 3]
    assert [(bad.number, bad.line) for bad in batch.bad] == [(2, 2), (4, 4), (5, 5)]
    assert [bad.problem.what for bad in batch.bad] == [
        "no valid JSON at character 1: Expecting value.",
        "the key 'relation' is missing.",
        "the tail is a list.",
    ]
    few = list(open_questions(path).batches(2, 1))
    assert [(one.numbers.tolist(), [bad.number for bad in one.bad]) for one in few] == [([3], [2]), ([], [4, 5])]


def test_an_entity_and_a_number_is_too_much(tmp_path):
    row = {"head": "?", "relation": "height", "tail_entity": "p1", "tail_number": 1.0}
    parquet.write_table(pa.Table.from_pylist([row], schema=FULL_SCHEMA), tmp_path / "q.parquet")
    (batch,) = open_questions(tmp_path / "q.parquet").batches(1)
    with pytest.raises(UsageError, match="the tail has an entity and a number"):
        batch.questions.parts(0)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    parquet.write_table(pa.table({"head": ["a"], "tail": ["?"]}), tmp_path / "short.parquet")
    (tmp_path / "q.xlsx").write_text("a,b,c\n")
    jsonl(tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"head": "a"}\n' * 99)[:-12])
    for name, word in [
        ("absent.jsonl", "the file of questions does not exist"),
        (".", "the file of questions is a folder"),
        ("q.xlsx", "the name does not say what the file holds"),
        ("broken.parquet", "is not a readable Parquet file"),
        ("short.parquet", "the column relation is missing"),
        ("cut.jsonl.gz", "the gzip data ends too early"),
    ]:
        with pytest.raises(UsageError, match=word) as problem:
            list(open_questions(tmp_path / name).batches(1))
        assert problem.value.exit_code == 2
        assert problem.value.advice
