"""Whatever happened to a dump, a build ends with a graph or with a clear error, and never with half of one."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions
from hynt.errors import HyntError
from hynt.graph.storage import load_graph
from tests.creation import sample_dump
from tests.creation.builds import ALONE, make
from tests.creation.sources.test_freebase import TRIPLES
from tests.creation.sources.test_yago import THEMES
from tests.creation.sources.wikidata_lines import dump
from tests.heard_progress import HeardProgress

DUMPS = {
    "wikidata": (dump(sample_dump.lines()), "dump.json"),
    "yago": ("".join(THEMES.values()).encode(), "dump.tsv"),
    "freebase": ("\n".join(TRIPLES).encode(), "dump.nt"),
}
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=30)), min_size=1, max_size=4)


def check_damaged(folder, source, damage, packed):
    data, name = DUMPS[source]
    held = bytearray(gzip.compress(data) if packed else data)
    for where, gone, put in damage:
        place = int(where * len(held))
        held[place : place + gone] = put
    path = folder / name
    path.write_bytes(held)
    options = CreationOptions(everything=True, engine=ALONE, max_bad_lines=1.0, text="keep")
    try:
        result = create_graph(source, path, folder / "graph", options)
    except HyntError as error:
        assert str(error)
        assert not (folder / "graph").exists()
        return
    assert (
        sum(len(table) for table in load_graph(folder / "graph").splits.values())
        == (result.manifest.importing["facts"]["kept"])
    )


@settings(max_examples=25)
@given(st.sampled_from(sorted(DUMPS)), DAMAGE, st.booleans())
def test_damaged_dumps(tmp_path_factory, source, damage, packed):
    check_damaged(tmp_path_factory.mktemp("damaged"), source, damage, packed)


@pytest.mark.slow
@settings(max_examples=600)
@given(st.sampled_from(sorted(DUMPS)), DAMAGE, st.booleans())
def test_many_damaged_dumps(tmp_path_factory, source, damage, packed):
    check_damaged(tmp_path_factory.mktemp("damaged"), source, damage, packed)


def test_progress_counts_bytes_to_the_end(tmp_path):
    path = tmp_path / "dump.json.gz"
    path.write_bytes(gzip.compress(DUMPS["wikidata"][0]))
    heard = HeardProgress()
    options = CreationOptions(everything=True, engine=ALONE)
    create_graph("wikidata", path, tmp_path / "graph", options, progress=heard)
    reading = [update.share for update in heard.updates if update.stage == "reading"]
    assert reading[-1] == 1.0
    assert reading == sorted(reading)
    steps = [update.stage for update in heard.updates]
    assert (
        steps.index("reading")
        < steps.index("querying: judged")
        < steps.index("collecting facts")
        < steps.index("writing")
    )


def test_little_memory_is_enough(tmp_path):
    from dataclasses import replace

    lines = [
        line
        for n in range(40)
        for line in (held.replace(b"Q49122", b"Q%d" % (10**6 + n)) for held in sample_dump.lines())
    ]
    graph, _ = make(tmp_path, dump(lines), engine=replace(ALONE, memory_bytes=64 << 20))
    assert len(graph.entities) > 40
