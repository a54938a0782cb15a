"""`hynt data stats`."""

from __future__ import annotations

import json


def test_counts_as_json(hynt, graph, tmp_path):
    found = hynt("data", "stats", graph, "--json", "--save", tmp_path / "stats.json").json
    assert found["licence"] == "CC0-1.0"
    assert found["counts"]["facts"] == 6
    assert found["counts"]["facts_with_qualifiers"] == 2
    assert (found["counts"]["entity_qualifiers"], found["counts"]["number_qualifiers"]) == (2, 1)
    assert sum(split["facts"] for split in found["splits"].values()) == 6
    expectancy = next(numbers for numbers in found["numbers"] if numbers["relation"] == "P2250")
    assert (expectancy["label"], expectancy["unit"], expectancy["frequency"]) == ("life expectancy", "year", 2)
    assert (expectancy["minimum"], expectancy["maximum"]) == (82.1, 88.2)
    assert found["outliers"] is None
    assert json.loads((tmp_path / "stats.json").read_text(encoding="utf-8")) == found


def test_the_tables_are_readable(hynt, graph):
    done = hynt("data", "stats", graph, "--outliers")
    assert (done.code, done.err) == (0, "")
    assert "facts: all / with / without qualifiers" in done.out
    assert "1952-03-11" in done.out
    assert "life expectancy" in done.out
    assert "0 numbers lie outside the robust range of their relation.\n" in done.out


def test_four_digits_have_a_comma_unless_they_may_be_a_year(hynt, tmp_path):
    (tmp_path / "facts.csv").write_text(
        "head,relation,tail,unit\nEverest,height,8849,m\nEverest,first climbed,1953,\n", encoding="utf-8"
    )
    options = ("--numeric", "height,first climbed", "--out", tmp_path / "peaks")
    assert hynt("data", "import", tmp_path / "facts.csv", *options).code == 0
    told = hynt("data", "stats", tmp_path / "peaks").out
    assert "8,849" in told
    assert "1953" in told


def test_one_outlier_is_told_as_one(hynt, tmp_path):
    rows = [
        json.dumps({"head": f"E{n}", "relation": "size", "tail": 5000 if n == 7 else 10 + n % 5}) for n in range(60)
    ]
    (tmp_path / "facts.jsonl").write_text("\n".join(rows), encoding="utf-8")
    hynt("data", "import", tmp_path / "facts.jsonl", "--format", "jsonl", "--out", tmp_path / "graph")
    done = hynt("data", "stats", tmp_path / "graph", "--outliers")
    assert "1 number lies outside the robust range of its relation. The furthest out:" in done.out
    assert "E7 · size · 5000" in done.out


def test_outliers_of_the_built_in_graph(hynt):
    found = hynt("data", "stats", "world", "--outliers", "--limit", "3", "--json").json
    assert len(found["outliers"]["suspicious"]) == 3
    assert found["outliers"]["found"] >= 3
    first = found["outliers"]["suspicious"][0]
    assert first["distance"] >= found["outliers"]["suspicious"][1]["distance"]
    assert first["fact"]["text"].count(" · ") == 2


def test_a_graph_that_is_not_there(hynt, tmp_path):
    done = hynt("data", "stats", tmp_path / "nowhere", "--json")
    assert done.code == 2
    assert "there is no graph at" in done.json["error"]["what"]
    assert "world" in done.json["error"]["advice"]


def test_a_changed_byte_is_named(hynt, graph):
    path = graph / "train.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = hynt("data", "stats", graph)
    assert done.code == 1
    assert "train.parquet" in done.err
    assert "the file was changed" in done.err
