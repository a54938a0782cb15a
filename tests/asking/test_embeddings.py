"""Vectors in a file that any Parquet reader opens, and the entities most alike."""

from __future__ import annotations

import numpy as np
import polars
import pytest

from hynt.asking.embeddings import write_embeddings
from hynt.errors import DataError, UsageError


def test_vectors_come_with_id_name_and_type(predictor, tmp_path):
    out = tmp_path / "vectors.parquet"
    assert write_embeddings(predictor.loaded, out) == 16
    table = polars.read_parquet(out)
    assert table.columns == ["id", "name", "type", "vector"]
    assert table["id"].to_list() == list(predictor.graph.vocabulary.entities)
    assert table.row(by_predicate=polars.col("id") == "t0", named=True)["name"] == "Springfield"
    assert np.array_equal(np.array(table["vector"].to_list(), dtype=np.float32), predictor.embeddings())
    assert np.array_equal(predictor.embeddings(), predictor.loaded.model.entity[:-1].detach().numpy())
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.parquet"]


def test_a_place_that_cannot_be_written_leaves_nothing(predictor, tmp_path):
    with pytest.raises(DataError, match="the file cannot be written"):
        write_embeddings(predictor.loaded, tmp_path / "nowhere" / "vectors.parquet")
    assert list(tmp_path.iterdir()) == []


def test_similar_is_the_cosine(predictor):
    found = predictor.similar("Person 3", top=5)
    vectors = predictor.embeddings().astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    at = predictor.graph.vocabulary.entity_ids["p3"]
    cosine = vectors @ vectors[at]
    order = [index for index in np.argsort(-cosine).tolist() if index != at][:5]
    assert [other.id for other in found] == [predictor.graph.vocabulary.entities[index] for index in order]
    assert [other.similarity for other in found] == pytest.approx(cosine[order].tolist(), abs=1e-5)
    assert [other.rank for other in found] == [1, 2, 3, 4, 5]


def test_an_unknown_entity_is_told(predictor):
    with pytest.raises(UsageError, match="no entity called 'Nobody'"):
        predictor.similar("Nobody")
