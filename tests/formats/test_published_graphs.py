"""The published graphs, where they are beside the checkout: counts, oddities, and the authors' own normalisation."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError
from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, check_source, read_graph


@pytest.fixture(scope="module")
def raw_yago(shared_data):
    return read_graph(shared_data / "HN-YG" / "raw", "hynt")


@pytest.mark.parametrize(
    "folder, format_name, counts, entities, relations, numeric",
    [
        ("HN-YG/raw", "hynt", (61_105, 7_639, 7_639), 12_439, 57, 26),
        ("HN-YG/normalized", "hynt", (61_105, 7_639, 7_639), 12_439, 57, 26),
        ("HN-WK-resplit", "hynt", (47_955, 5_704, 5_705), 10_655, 339, None),
        ("WD50K", "stare", (166_435, 23_913, 46_159), 47_155, 531, 0),
        ("WikiPeople-", "hynt", (287_899, 37_574, 37_567), 34_825, 178, 0),
    ],
)
def test_counts_are_the_published_ones(shared_data, folder, format_name, counts, entities, relations, numeric):
    graph = read_graph(shared_data / folder, format_name)
    importing = graph.manifest.importing
    assert importing["rejected"] == {}
    assert tuple(len(graph.splits[split]) for split in ("train", "valid", "test")) == counts
    assert (graph.vocabulary.entity_count, graph.vocabulary.relation_count) == (entities, relations)
    if numeric is not None:
        assert int(graph.vocabulary.relation_is_number.sum()) == numeric


def test_the_impossible_date_is_kept_as_published_and_noted(raw_yago):
    assert raw_yago.manifest.importing["noted"]["impossible-date"] == 1
    (judaism,) = [
        fact for fact in raw_yago.facts("train") if fact.head == "YAGO_Judaism" and fact.relation == "wasCreatedOnDate"
    ]
    assert judaism.tail.value == pytest.approx(2016 + 376 / 366, abs=1e-9)


def test_strict_refuses_what_is_odd(shared_data):
    options = ImportOptions(reading=ReadOptions(strict=True))
    with pytest.raises(DataError, match="impossible-date"):
        read_graph(shared_data / "HN-YG" / "raw", "hynt", options)
    report, _ = check_source(shared_data / "HN-YG" / "raw", "hynt", options)
    assert report.read == report.kept + sum(report.rejected.values())


def test_scaling_on_all_splits_gives_the_released_files(shared_data, raw_yago):
    released = read_graph(shared_data / "HN-YG" / "normalized", "hynt")
    vocabulary = raw_yago.vocabulary
    scaling = NumberScaling.fit(list(raw_yago.splits.values()), vocabulary)
    compared = 0
    for split, table in raw_yago.splits.items():
        other = released.splits[split]
        for relation, value, published in (
            (table.relation, table.tail_number, other.tail_number),
            (table.qualifier_relation, table.qualifier_number, other.qualifier_number),
        ):
            numeric = vocabulary.relation_is_number[relation]
            difference = np.abs(scaling.scale(relation[numeric], value[numeric]) - published[numeric])
            assert difference.max() < 1e-6
            compared += int(numeric.sum())
    assert compared == 31_382 + 11_546
