"""`hynt data list`."""

from __future__ import annotations

import json

from hynt.formats.registry import FORMATS


def test_graphs_and_formats_are_listed(hynt):
    found = hynt("data", "list", "--json").json
    (world,) = found["graphs"]
    assert world["name"] == "world"
    assert world["facts"] == sum(world["splits"].values()) > 10_000
    assert [known["name"] for known in found["formats"]] == list(FORMATS)
    known = {known["name"]: known for known in found["formats"]}
    assert (known["nary-json"]["reads"], known["nary-json"]["writes"]) == (True, False)
    assert known["rdf"]["extra"] == "rdf"
    assert "string-literals" in known["rdf"]["options"]


def test_the_list_is_readable(hynt):
    done = hynt("data", "list")
    assert (done.code, done.err) == (0, "")
    assert "world" in done.out
    assert "our own JSON lines" in done.out


def test_save_writes_the_same_object(hynt, tmp_path):
    done = hynt("data", "list", "--save", tmp_path / "list.json")
    assert done.code == 0
    assert "world" in done.out
    assert json.loads((tmp_path / "list.json").read_text(encoding="utf-8")) == hynt("data", "list", "--json").json
    assert [path.name for path in tmp_path.iterdir()] == ["list.json"]


def test_a_bad_place_to_save_is_refused_first(hynt, tmp_path):
    done = hynt("data", "list", "--save", tmp_path / "nowhere" / "list.json")
    assert done.code == 2
    assert done.out == ""
    assert "there is no folder" in done.err
    done = hynt("data", "list", "--save", tmp_path, "--json")
    assert (done.code, done.json["error"]["where"]) == (2, "--save")
