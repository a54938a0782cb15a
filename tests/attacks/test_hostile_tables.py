"""Parquet of a few kilobytes that means gigabytes: as a source of facts, as questions, and in a graph."""

from __future__ import annotations

import mmap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hynt.errors import DataError
from hynt.graph.storage import load_graph, save_graph
from hynt.limits import bounded_memory
from tests.attacks.forging import sign_graph
from tests.training.small_graph import small_graph


def repeated(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text]))


def long_cell(path):
    columns = {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["c", "x" * 200_000_000]}
    pq.write_table(pa.table(columns), path, compression="zstd")


def many_rows(path):
    column = repeated("a", 8_000_000)
    table = pa.table({"head": column, "relation": column, "tail": column})
    pq.write_table(table, path, compression="zstd", store_schema=False)


def one_text_repeated(path):
    column = repeated("x" * 1_000_000, 100_000)
    table = pa.table({"head": column, "relation": column, "tail": column})
    pq.write_table(table, path, compression="zstd", store_schema=False)


def one_text_referred_to(path):
    """Arrow hands it over as it is kept: a text, and numbers that refer to it."""
    column = repeated("x" * 70_000, 900_000)
    table = pa.table({"head": column, "relation": column, "tail": column})
    pq.write_table(table, path, compression="zstd")


BOMBS = {bomb.__name__: bomb for bomb in (long_cell, many_rows, one_text_repeated, one_text_referred_to)}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    for name, make in BOMBS.items():
        make(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("name", BOMBS)
def test_a_source_is_taken_for_a_bomb(hynt, bombs, tmp_path, name):
    path = bombs / f"{name}.parquet"
    assert path.stat().st_size < 400_000
    outcome = hynt.fair("data", "import", path, "--format", "parquet", "--out", tmp_path / "graph")
    assert outcome.code == 1
    assert "taken for a bomb" in outcome.said
    assert str(path) in outcome.said


@pytest.mark.parametrize("name", BOMBS)
def test_so_is_a_table_of_a_graph(hynt, bombs, tmp_path, name):
    save_graph(small_graph(), tmp_path / "graph")
    (tmp_path / "graph" / "train.parquet").write_bytes((bombs / f"{name}.parquet").read_bytes())
    sign_graph(tmp_path / "graph")
    outcome = hynt.fair("data", "stats", tmp_path / "graph")
    assert outcome.code == 1
    assert "taken for a bomb" in outcome.said or "is not one that hynt wrote" in outcome.said


@pytest.mark.parametrize("referred_to", [False, True])
def test_so_is_a_graphs_table_whose_columns_fit(hynt, tmp_path, referred_to):
    save_graph(small_graph(), tmp_path / "graph")
    columns = {name: repeated("x" * 1_000_000, 100_000) for name in ("entity", "label", "type")}
    path = tmp_path / "graph" / "entities.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=referred_to)
    sign_graph(tmp_path / "graph")
    outcome = hynt.fair("data", "stats", tmp_path / "graph")
    assert outcome.code == 1
    assert "taken for a bomb" in outcome.said


def test_so_are_qualifiers_that_refer_to_one_text(hynt, tmp_path):
    text = repeated("x" * 70_000, 100_000)
    number, nothing = pa.nulls(100_000, pa.float64()), pa.nulls(100_000, pa.string())
    pairs = pa.StructArray.from_arrays([text, text, number, nothing], ["relation", "entity", "number", "literal"])
    lists = pa.ListArray.from_arrays(list(range(0, 100_001, 100)), pairs)
    columns = {"head": ["a"] * 1000, "relation": ["r"] * 1000, "tail": ["b"] * 1000, "qualifiers": lists}
    pq.write_table(pa.table(columns), tmp_path / "source.parquet", compression="zstd")
    outcome = hynt.fair("data", "check", tmp_path / "source.parquet", "--format", "parquet")
    assert outcome.code == 1
    assert "taken for a bomb" in outcome.said


@pytest.mark.parametrize("pairs", [1, 10])
def test_very_many_relations_of_one_pair_are_not_compared_each_with_each(hynt, tmp_path, pairs):
    lines = (f"a\tr{relation}\tb{pair}\n" for relation in range(60_000 // pairs) for pair in range(pairs))
    (tmp_path / "source.tsv").write_text("".join(lines))
    outcome = hynt.fair("data", "check", tmp_path / "source.tsv", "--format", "tsv")
    assert outcome.code == 0
    assert "duplicate of" not in outcome.printed


def test_long_rows_come_few_at_a_time(tmp_path):
    """An honest file with long texts is read, in parts that fit in memory."""
    from hynt.graph.columns import bounded_batches

    path = tmp_path / "long.parquet"
    texts = pa.array([f"{index:04}" + "x" * 2**20 for index in range(100)])
    pq.write_table(pa.table({"head": texts}), path, compression="none", use_dictionary=False)
    with pq.ParquetFile(path) as file:
        parts = [len(part) for part in bounded_batches(file, 1000, ["head"], path.stat().st_size, str(path))]
    assert sum(parts) == 100
    assert max(parts) <= 64


def test_memory_is_given_back():
    own = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # memory that no allocator has kept
    with bounded_memory(2**26), pytest.raises(OSError, match="Cannot allocate memory"):
        mmap.mmap(-1, 2**29, own)
    with mmap.mmap(-1, 2**29, own) as room:
        assert len(room) == 2**29


def test_a_graph_that_was_saved_is_never_a_bomb(tmp_path):
    save_graph(small_graph(), tmp_path / "graph")
    assert load_graph(tmp_path / "graph") == small_graph()
    (tmp_path / "graph" / "train.parquet").write_bytes(b"PAR1")
    sign_graph(tmp_path / "graph")
    with pytest.raises(DataError, match="is not one that hynt wrote"):
        load_graph(tmp_path / "graph")
