"""`hynt data show`: an entity by id or name, its facts in words, and a picture."""

from __future__ import annotations

import pytest

from tests.cli.conftest import leftovers


@pytest.mark.parametrize("name", ["Q17", "Japan", "japan"])
def test_facts_in_words(hynt, graph, name):
    done = hynt("data", "show", graph, name)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "Japan (Q17)"
    assert "  Japan · life expectancy · 88.2 years (point in time 2024; sex female)\n" in done.out
    assert "as the tail of:\n  Tokyo · country · Japan\n" in done.out


def test_units_and_dates(hynt, graph):
    done = hynt("data", "show", graph, "Douglas Adams")
    assert "  Douglas Adams · mass · 176.4 lb\n" in done.out  # as the source has it
    assert "  Douglas Adams · mass · 80.0137 kg\n" in hynt("data", "show", graph, "Douglas Adams", "--si").out
    assert "80.0137" not in hynt("data", "show", graph, "Douglas Adams").out
    assert "  Douglas Adams · date of birth · 1952-03-11\n" in done.out


def test_facts_as_json(hynt, graph):
    found = hynt("data", "show", graph, "female", "--json").json
    assert found["entity"] == {"id": "Q6581072", "label": "female", "type": ""}
    assert found["counts"] == {"head": 0, "tail": 0, "value": 1}
    (fact,) = found["facts"]
    assert fact["position"] == "value"
    assert fact["tail"] == {"number": 88.2, "literal": "88.2", "unit": "year", "text": "88.2 years"}
    assert fact["qualifiers"][0]["value"]["text"] == "2024"
    assert fact["qualifiers"][1] == {
        "relation": {"id": "P21", "label": "sex"},
        "value": {"id": "Q6581072", "label": "female"},
    }


def test_limit_takes_many_relations_and_says_what_is_left_out(hynt, graph):
    found = hynt("data", "show", graph, "Japan", "--limit", "3", "--json").json
    assert (found["left_out"], len(found["facts"])) == (1, 3)
    assert {(fact["position"], fact["relation"]["id"]) for fact in found["facts"]} == {
        ("head", "P36"),
        ("head", "P2250"),
        ("tail", "P17"),
    }
    assert "… and 1 more facts: --limit 4 shows all." in hynt("data", "show", graph, "Japan", "--limit", "3").out


def test_position_narrows_the_facts(hynt, graph):
    found = hynt("data", "show", graph, "Japan", "--position", "tail", "--json").json
    assert [fact["position"] for fact in found["facts"]] == ["tail"]
    assert "No facts there." in hynt("data", "show", graph, "Japan", "--position", "value").out


def test_an_unknown_name_is_refused_with_the_nearest(hynt, graph):
    done = hynt("data", "show", graph, "Jpan")
    assert done.code == 2
    assert "the graph has no entity called 'Jpan'" in done.err
    assert "'Japan'" in done.err


def test_a_shared_name_is_refused_or_settled_by_the_position(hynt, source, tmp_path):
    (tmp_path / "names.tsv").write_text("Q17\tJapan\nQ6581072\tJapan\n", encoding="utf-8")
    command = ("data", "import", source, "-f", "jsonl", "-o", tmp_path / "g", "--entity-labels", tmp_path / "names.tsv")
    assert hynt(*command).code == 0
    done = hynt("data", "show", tmp_path / "g", "Japan")
    assert done.code == 2
    assert "2 entities are called 'Japan'." in done.err
    assert "Give the id of one: Q17 (head, tail), Q6581072 (value)." in done.err
    found = hynt("data", "show", tmp_path / "g", "Japan", "--position", "value", "--json").json
    assert found["entity"]["id"] == "Q6581072"


@pytest.mark.parametrize("suffix, start", [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_a_picture_by_its_suffix(hynt, graph, tmp_path, suffix, start):
    path = tmp_path / f"japan{suffix}"
    done = hynt("data", "show", graph, "Japan", "--out", path)
    assert (done.code, done.err) == (0, "")
    assert f"Picture in {path}" in done.out
    assert path.read_bytes().startswith(start)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "name, message", [("japan.gif", "Let it end in .png, .svg, .pdf"), ("no/japan.png", "no folder")]
)
def test_a_picture_that_cannot_be_drawn_is_refused_first(hynt, graph, tmp_path, name, message):
    done = hynt("data", "show", graph, "Japan", "--out", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_missing_extra_is_said(hynt, graph, tmp_path, monkeypatch):
    monkeypatch.setattr("hynt.reporting.scales.find_spec", lambda name: None)
    done = hynt("data", "show", graph, "Japan", "--picture", tmp_path / "japan.png")
    assert done.code == 2
    assert "pip install 'hynt[plot]'" in done.err


def test_a_relation_is_told_of_where_no_entity_has_the_name(hynt):
    done = hynt("data", "show", "world", "life expectancy")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "life expectancy\nyears a newborn can expect to live\nHolds numbers in years: 1,124 facts of 162 heads.\n"
        "From 27.79 years to 89.5 years; half of them lie below 71.53 years.\n"
        "Usual qualifiers: point in time (100%), sex (29%).\n"
    )
    found = hynt("data", "show", "world", "sex", "--json").json
    assert found["relation"]["description"] == "qualifier: the sex counted"
    assert found["numbers"] is None
    assert [one["name"] for one in found["commonest_tails"]] == ["female", "male"]  # it only qualifies
    assert "\nCommonest values: female (50%), male (50%).\n" in hynt("data", "show", "world", "sex").out
    assert {"id": "life expectancy", "name": "life expectancy"} in found["qualifies"]
    numbers = hynt("data", "stats", "world", "--json").json["numbers"]
    assert {one["relation"]: one["description"] for one in numbers}["population"] == "people who live in the country"
    refused = hynt("data", "show", "world", "sex", "--position", "head")
    assert refused.code == 2
    assert "'sex' is a relation, and --position is about the facts of an entity." in refused.err
    assert "The nearest relation is 'population'." in hynt("data", "show", "world", "populaton").err


def test_python_shows_the_same(hynt, graph):
    import hynt as hynt_in_python

    loaded = hynt_in_python.read_graph(graph)
    shown = hynt("data", "show", graph, "Japan", "--limit", "3", "--json").json
    assert {"graph": str(graph), **loaded.facts_of("Japan", limit=3).to_dict(), "picture": None} == shown
    tails = hynt("data", "show", graph, "Japan", "--position", "tail", "--json").json
    assert loaded.facts_of("Japan", position="tail").to_dict()["facts"] == tails["facts"]
    with pytest.raises(hynt_in_python.UsageError, match=r"there is no position 'tial'. Did you mean tail\?"):
        loaded.facts_of("Japan", position="tial")
    for name in ("life expectancy", "capital", "sex"):
        used = loaded.relation_in_use(name)
        assert {"graph": str(graph), **used.to_dict()} == hynt("data", "show", graph, name, "--json").json
        assert repr(used).startswith(f"<relation {name}: ")
        assert repr(used).splitlines()[1:] == used["examples"]


def test_python_finds_the_same_outliers(hynt):
    import hynt as hynt_in_python

    found = hynt_in_python.read_graph("world").outliers(limit=3)
    assert found.to_dict() == hynt("data", "stats", "world", "--outliers", "--limit", "3", "--json").json["outliers"]
    assert len(found.suspicious) == 3
