"""DuckDB and Spark run the same text and make the same graph, to the byte."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hynt.creation.building import create_graph
from hynt.creation.engines import steps
from hynt.creation.options import CreationOptions, EngineOptions
from hynt.errors import DataError
from tests.conftest import require
from tests.creation import sample_dump
from tests.creation.builds import ids
from tests.creation.sources.test_freebase import TRIPLES, WANTED
from tests.creation.sources.test_yago import THEMES
from tests.creation.sources.wikidata_lines import dump, entity, item_value, quantity_value, snak, statement, time_value

SPARK = EngineOptions("spark", master="local[2]")
DUCKDB = EngineOptions("duckdb", workers=1)


@pytest.fixture(scope="module", autouse=True)
def java():
    """Spark needs Java 17 or newer."""
    require("Java 17", _java_version() >= 17, "apt install openjdk-17-jre-headless")
    require("pyspark", _has_pyspark(), "pip install 'hynt[spark]'")


def _java_version():
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return 0
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found[1]) if found else 0


def _has_pyspark():
    return importlib.util.find_spec("pyspark") is not None


def contents(folder):
    return {found.name: found.read_bytes() for found in folder.iterdir()}


def both(source, path, folder, **options):
    """The files of a graph from each engine."""
    made = []
    for engine in (DUCKDB, SPARK):
        out = folder / engine.name / "graph"
        create_graph(source, path, out, CreationOptions(engine=engine, **options))
        made.append(contents(out))
    return made


def wikidata_parts(folder):
    """A folder of parts: the sample of awkward cases, packed, and a plain file."""
    parts = folder / "parts"
    parts.mkdir()
    (parts / "part-1.json.gz").write_bytes(gzip.compress(dump(sample_dump.lines())))
    (parts / "part-2.json").write_bytes(
        dump(
            [
                entity(
                    f"Q{n}",
                    [
                        statement(
                            "P31",
                            item_value(f"Q{n % 30 + 1}"),
                            qualifiers=[snak("P585", time_value(f"+{1900 + n}-01-01T00:00:00Z"))] * 2,
                        ),
                        statement("P2067", quantity_value(f"+{n}.7", "Q100995")),
                    ],
                )
                for n in range(1, 300)
            ]
            + [entity("Q300", [statement("P2067", quantity_value("+1e308", "Q191118"))])]  # too many kilograms
            + [b'{"type":"item","id":"Q9"broken']
        )
    )
    return parts


@pytest.mark.slow
def test_the_same_graph_from_wikidata(tmp_path):
    one, other = both(
        "wikidata", wikidata_parts(tmp_path), tmp_path, everything=True, max_qualifiers=3, other_units="split"
    )
    assert one == other
    assert {"manifest.json", "train.parquet"} <= set(one)
    assert json.loads(one["manifest.json"])["importing"]["facts"]["dropped"]["too-large"] == 1


@pytest.mark.slow
def test_the_same_graph_from_yago_and_freebase(tmp_path):
    themes = tmp_path / "yago3"
    themes.mkdir()
    for name, text in THEMES.items():
        (themes / name).write_text(text, encoding="utf-8")
    one, other = both("yago", themes, tmp_path / "from-yago", everything=True)
    assert one == other
    path = tmp_path / "freebase.nt"
    path.write_text("\n".join(TRIPLES) + "\n", encoding="utf-8")
    one, other = both("freebase", path, tmp_path / "from-freebase", entities=ids(tmp_path, *WANTED))
    assert one == other


@pytest.mark.slow
def test_spark_goes_on_where_duckdb_stopped_and_tells_what_failed(tmp_path):
    parts = wikidata_parts(tmp_path)
    options = {"everything": True, "name": "graph", "work": tmp_path / "work", "keep_work": True}
    create_graph("wikidata", parts, tmp_path / "one", CreationOptions(engine=DUCKDB, **options))
    before = {found.name: found.stat().st_mtime_ns for found in (tmp_path / "work" / "parts").iterdir()}
    create_graph("wikidata", parts, tmp_path / "two", CreationOptions(engine=SPARK, **options))
    assert before == {found.name: found.stat().st_mtime_ns for found in (tmp_path / "work" / "parts").iterdir()}
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    packed = parts / "part-1.json.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"a worker failed: .*the compressed data ends too early"):
        create_graph("wikidata", parts, tmp_path / "three", CreationOptions(engine=SPARK, everything=True))
    assert not (tmp_path / "three").exists()


def test_the_text_is_plain_sql():
    """One text: nothing in it is for one engine only, and no step is named twice."""
    names = [step.name for file in ("entity_set.sql", "recipe.sql") for step in steps(file)]
    assert len(names) == len(set(names))
    for file in ("entity_set.sql", "recipe.sql", "sources/yago.sql", "sources/freebase.sql"):
        for step in steps(file):
            assert step.query.lstrip("-").strip()
            assert ";" not in step.query.split("SELECT", 1)[1]
