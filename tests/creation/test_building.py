"""From a dump to a graph, whole: every awkward case, every count, every packing."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest
import zstandard

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions, memory_bytes
from hynt.errors import DataError, UsageError
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.fact import Fact, Number, Qualifier
from hynt.graph.outlier_rules import NumberLimits, OutlierRules
from hynt.graph.storage import load_graph
from hynt.graph.units.conversion import display_of
from tests.creation import sample_dump
from tests.creation.builds import ALONE, balanced, facts_of, ids, keys_of, make
from tests.creation.slow_reference import graph_of
from tests.creation.sources.wikidata_lines import (
    compact,
    dump,
    entity,
    item_value,
    quantity_value,
    snak,
    statement,
    string_value,
)


def test_the_sample_with_every_awkward_case(tmp_path):
    graph, told = make(tmp_path, dump(sample_dump.lines()))
    facts = facts_of(graph)
    students = next(fact for fact in facts if fact.relation == "P2196")
    assert students == Fact(
        "Q49122",
        "P2196",
        Number(1990.0, "+1990"),
        (Qualifier("P585", Number(2020.0, "+2020-00-00T00:00:00Z", "date")), Qualifier("P276", "Q49111")),
    )
    heights = [fact.tail for fact in facts if fact.relation == "P2048"]
    assert sorted(heights) == [Number(12.0, "+12", "m"), Number(50.0, "+5000", "m")]
    (born,) = [fact.tail.value for fact in facts if fact.relation == "P569"]
    assert -100 < born < -99 + 0.6
    assert {relation.name: relation.label for relation in graph.relations}["P2196"] == "students count"
    assert {relation.name: relation.label for relation in graph.relations}["P625-latitude"] == (
        "coordinate location (latitude)"
    )
    assert {relation.name: relation.description for relation in graph.relations}["P2196"] == "how many study there"
    labels = {held.name: held.label for held in graph.entities}
    assert labels["Q13371"] == "Universität Harvard \U0001f393"
    assert labels["Q49111"] == ""
    assert told["lines"] == {
        "read": 11,
        "kept": 5,
        "dropped": {"deleted-entity": 1, "frame": 2, "other-entity-type": 1, "property": 2},
    }
    assert told["facts"]["dropped"] == {
        "bad-date": 1,
        "bad-number": 1,
        "deprecated": 1,
        "duplicate": 1,
        "no-value": 1,
        "not-in-set": 2,
        "other-unit": 1,
        "text": 2,
        "unknown-datatype": 1,
        "unknown-unit": 1,
        "unknown-value": 1,
    }
    assert told["qualifiers"]["dropped"] == {
        "fact-dropped": 2,
        "no-value": 1,
        "not-in-set": 1,
        "repeated": 1,
        "text": 1,
        "unknown-value": 1,
    }
    assert all(balanced(told[name]) for name in ("lines", "facts", "qualifiers"))
    assert told["noted"] == {"bounds-left-out": 1, "coarser-than-a-year": 3, "not-on-earth": 1, "without-label": 1}
    assert told["units"]["not_convertible"] == ["Q999999999"]
    assert [(loss["given_unit"], loss["verdict"]) for loss in told["units"]["losses"]] == [
        ("Q11570", "other-unit"),
        ("Q999999999", "unknown-unit"),
    ]
    assert told["statistics"]["facts"] == len(facts)


@pytest.mark.parametrize(
    "pack, name",
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "crlf.json"),
        (lambda data: data.replace(b",\n", b"\n"), "lines.jsonl"),
        (lambda data: b"\xef\xbb\xbf" + data, "mark.json"),
        (lambda data: data.removesuffix(b"\n]\n"), "no-end.json"),
        (lambda data: data.replace(b"\n", b"\n\n"), "blank.json"),
        (gzip.compress, "dump.json.gz"),
        (bz2.compress, "dump.json.bz2"),
        (zstandard.compress, "dump.json.zst"),
    ],
)
def test_the_same_graph_from_every_packing(pack, name, tmp_path):
    data = dump(sample_dump.lines())
    plain, _ = make(tmp_path, data)
    packed, _ = make(tmp_path, pack(data), name)
    assert facts_of(plain) == facts_of(packed)


def test_a_folder_of_parts_and_answers_of_the_api(tmp_path):
    lines = sample_dump.lines()
    whole, _ = make(tmp_path, dump(lines))
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "part-2.json").write_bytes(dump(lines[:3]))
    (parts / "part-10.json.gz").write_bytes(gzip.compress(dump(lines[3:5])))
    answer = {"entities": {held["id"]: held for held in map(json.loads, lines[5:])}, "success": 1}
    (parts / "part-11.json").write_bytes(json.dumps(answer, indent=2).encode())
    result = create_graph("wikidata", parts, tmp_path / "parted", CreationOptions(everything=True, engine=ALONE))
    assert keys_of(facts_of(load_graph(tmp_path / "parted"))) == keys_of(facts_of(whole))
    assert result.manifest.importing["files"] == ["part-2.json", "part-10.json.gz", "part-11.json"]


def test_given_entities_and_what_lies_outside(tmp_path):
    data = dump(sample_dump.lines())
    graph, told = make(tmp_path, data, entities=ids(tmp_path, "# both Harvards", "Q49122", "Q13371", "Q404"))
    assert {held.name for held in graph.entities} == {"Q49122", "Q13371"}
    assert told["lines"]["dropped"]["not-selected"] == 3
    assert told["selection"] == {"asked": 3, "unmapped": 0, "types": [], "classes": 0, "named": 2}
    expected, _ = graph_of(data, {"Q49122", "Q13371", "Q404"})
    assert keys_of(facts_of(graph)) == keys_of(expected)


def test_mapped_entities(tmp_path):
    first, second = tmp_path / "first.tsv", tmp_path / "second.tsv"
    first.write_text("/m/1\tdb:Harvard\n/m/2\tdb:Law\n", encoding="utf-8")
    second.write_text("db:Harvard\tQ13371\n", encoding="utf-8")
    graph, told = make(
        tmp_path, dump(sample_dump.lines()), entities=ids(tmp_path, "/m/1", "/m/2"), mappings=(first, second)
    )
    assert {held.name for held in graph.entities} == {"Q13371"}
    assert told["selection"]["unmapped"] == 1


def test_entities_of_a_type(tmp_path):
    lines = [
        entity("Q1", [statement("P31", item_value("Q5")), statement("P22", item_value("Q2"))]),
        entity("Q2", [statement("P31", item_value("Q5")), statement("P22", item_value("Q3"))]),
        entity("Q3", [statement("P31", item_value("Q6"))]),
        entity("Q5", [statement("P31", item_value("Q7"))]),
    ]
    graph, told = make(tmp_path, dump(lines), types=("Q5",))
    assert facts_of(graph) == [Fact("Q1", "P22", "Q2")]
    assert told["facts"]["dropped"] == {"not-in-set": 3}


def test_redirects_lead_to_the_entity_itself(tmp_path):
    redirects = tmp_path / "redirects.tsv"
    redirects.write_text("Q9\tQ8\nQ8\tQ2\n", encoding="utf-8")
    lines = [entity("Q1", [statement("P22", item_value("Q9")), statement("P22", item_value("Q2"))]), entity("Q2", [])]
    graph, told = make(tmp_path, dump(lines), entities=ids(tmp_path, "Q1", "Q9"), redirects=redirects)
    assert facts_of(graph) == [Fact("Q1", "P22", "Q2")]
    assert told["facts"]["dropped"] == {"duplicate": 1}


def test_text_can_be_kept(tmp_path):
    graph, _ = make(tmp_path, dump([entity("Q1", [statement("P1", string_value("a b"))])]), text="keep")
    assert facts_of(graph) == [Fact("Q1", "P1", '"a b"')]


@pytest.mark.parametrize(
    "rule, relations",
    [("drop", {"P1": "m"}), ("split", {"P1": "m", "P1 (kg)": "kg", "P1 (no unit)": ""}), ("keep", {"P1": ""})],
)
def test_numbers_in_another_unit_than_most_of_their_relation(rule, relations, tmp_path):
    numbers = [("+1", "Q11573"), ("+2", "Q11573"), ("+3", "Q11570"), ("+4", "1")]
    lines = [entity(f"Q{n}", [statement("P1", quantity_value(*held))]) for n, held in enumerate(numbers, start=1)]
    graph, _ = make(tmp_path, dump(lines), other_units=rule)
    assert {relation.name: relation.unit for relation in graph.relations} == relations


def test_numbers_are_shown_in_the_unit_that_most_were_given_in(tmp_path):
    """Areas of countries are kept in m² and read in km², as on Wikidata."""
    areas = [("+377972", "Q712226"), ("+5", "Q712226"), ("+8", "Q25343")]
    said = [statement("P2046", quantity_value(*held)) for held in areas]
    said += [statement("P2076", quantity_value("+20", "Q25267")), statement("P1", quantity_value("+7", "1"))]
    lines = [entity(f"Q{n}", [one]) for n, one in enumerate(said, start=1)]
    graph, _ = make(tmp_path, dump(lines))
    shown = {one.name: (str(one.unit), display_of(one.unit)) for one in graph.relations}
    assert shown == {"P2046": ("m2", "km2"), "P2076": ("K", "°C"), "P1": ("", "")}
    assert graph["Q1"].texts() == ["the Q1 · P2046 · 377,972 km²"]
    assert graph["Q3"].texts() == ["the Q3 · P2046 · 8 × 10⁻⁶ km²"]
    graph, _ = make(tmp_path, dump(lines), units="keep")
    assert {display_of(one.unit) for one in graph.relations} == {""}


def test_unknown_units_can_be_kept_and_units_left_alone(tmp_path):
    lines = dump(
        [
            entity("Q1", [statement("P1", quantity_value("+3", "Q999999999"))]),
            entity("Q2", [statement("P2", quantity_value("+150", "Q174728"))]),
        ]
    )
    graph, _ = make(tmp_path, lines, unknown_units="keep")
    assert sorted(fact.tail for fact in facts_of(graph)) == [Number(1.5, "+150", "m"), Number(3.0, "+3", "Q999999999")]
    graph, _ = make(tmp_path, lines, units="keep")
    assert [fact.tail for fact in facts_of(graph)] == [Number(150.0, "+150", "cm")]


@pytest.mark.parametrize("rule, lengths", [("shorten", [1, 2, 2]), ("drop", [1, 2])])
def test_facts_with_many_qualifiers(rule, lengths, tmp_path):
    statements = [
        statement(f"P{n}", item_value("Q1"), qualifiers=[snak("P9", quantity_value(f"+{k}")) for k in range(n)])
        for n in (1, 2, 3)
    ]
    graph, told = make(tmp_path, dump([entity("Q1", statements)]), max_qualifiers=2, long_facts=rule)
    assert sorted(len(fact.qualifiers) for fact in facts_of(graph)) == lengths
    assert balanced(told["facts"])
    assert balanced(told["qualifiers"])
    assert told["qualifiers"]["kept"] == sum(lengths)


def test_leaks_and_outliers_go_with_their_evidence(tmp_path):
    lines = [
        entity(f"Q{n}", [statement("P40", item_value(f"Q{n + 100}")), statement("P1", quantity_value(f"+{n}"))])
        for n in range(1, 31)
    ]
    lines += [entity(f"Q{n + 100}", [statement("P22", item_value(f"Q{n}"))]) for n in range(1, 31)]
    policy = AssemblyPolicy(remove_leakage=True, outlier_rules=OutlierRules({"P1": NumberLimits(maximum=28)}))
    graph, told = make(tmp_path, dump(lines), assembly=policy)
    assert told["facts"]["dropped"] == {"leakage": 30, "outlier": 2}
    (leak,) = told["leakage"]["relations"]
    assert (leak["kind"], leak["shared"], leak["pairs"]) == ("inverse", 30, 30)
    assert told["outliers"]["rules"] == [{"rule": "P1: at most 28", "removed_facts": 2}]
    assert {relation.name for relation in graph.relations} == {"P1", leak["kept"]}


def test_bad_lines_are_counted_and_shown(tmp_path):
    good = compact(entity("Q1", [statement("P31", item_value("Q1"))]))
    data = b"[\n" + good + b',\n{"type":"item","id":"Q2","claims":\xff}\n' + good.replace(b"Q1", b"Q3")[:-40]
    graph, told = make(tmp_path, data)
    assert told["lines"]["dropped"] == {"frame": 1, "rejected-bad-json": 1, "rejected-cut-off": 1}
    rejects = [json.loads(line) for line in (tmp_path / "graph.rejects.jsonl").read_text().splitlines()]
    assert [(held["reason"], data[held["offset"] :].startswith(b"{")) for held in rejects] == [
        ("bad-json", True),
        ("cut-off", True),
    ]
    assert rejects[0]["line"] == '{"type":"item","id":"Q2","claims":\\xff}'
    assert facts_of(graph) == [Fact("Q1", "P31", "Q1")]


def test_too_many_bad_lines_stop_the_build(tmp_path):
    data = b"\n".join(b'{"type":"item","id":"Q%d"' % n for n in range(1, 20)) + b"\n"
    with pytest.raises(DataError) as caught:
        make(tmp_path, data)
    rejects = tmp_path / "graph.rejects.jsonl"
    assert str(caught.value) == (
        "dump.json, byte 0: 19 of 19 lines cannot be read. The first: Input data was truncated. "
        f"Look at {rejects}. Check that the dump is whole and of this kind, or allow more with --max-bad-lines SHARE."
    )
    assert not (tmp_path / "graph").exists()
    assert len(rejects.read_text(encoding="utf-8").splitlines()) == 19
    with pytest.raises(DataError, match="there are no facts"):
        make(tmp_path, data, max_bad_lines=1.0)


def test_long_lines(tmp_path):
    """30 MB are a line like any other; what is beyond the limit is counted and not held."""
    long = compact(entity("Q1", [statement("P31", item_value("Q1"))], label="x" * (30 << 20)))
    graph, told = make(tmp_path, dump([long, entity("Q2", [statement("P31", item_value("Q1"))])]))
    assert len(facts_of(graph)) == 2
    graph, told = make(
        tmp_path, dump([long, entity("Q2", [statement("P31", item_value("Q2"))])]), longest_line=20 << 20
    )
    assert told["lines"]["dropped"]["rejected-line-too-long"] == 1
    assert facts_of(graph) == [Fact("Q2", "P31", "Q2")]


def test_a_file_in_ranges_is_the_file(tmp_path, monkeypatch):
    from hynt.creation import building, tasks

    data = dump([entity(f"Q{n}", [statement("P31", item_value(f"Q{n % 7 + 1}"))]) for n in range(1, 200)])
    whole, _ = make(tmp_path, data)
    monkeypatch.setattr(
        building, "plan_tasks", lambda files, kind: tasks.plan_tasks(files, kind, range_bytes=len(data) // 7)
    )
    ranges, told = make(tmp_path, data)
    assert facts_of(whole) == facts_of(ranges)
    assert told["lines"]["read"] == 201


@pytest.mark.parametrize(
    "options, words",
    [
        ({"everything": False}, "a graph needs one choice of entities, and none was said. Give one of --entities FILE"),
        ({"everything": True, "types": ("Q5",)}, "not --instance-of and --all together"),
        ({"everything": True, "mappings": (Path("x"),)}, "--mapping maps the ids of --entities FILE."),
    ],
)
def test_wrong_use(options, words, tmp_path):
    (tmp_path / "dump.json").write_bytes(b"[\n]\n")
    with pytest.raises(UsageError) as caught:
        create_graph("wikidata", tmp_path / "dump.json", tmp_path / "graph", CreationOptions(**options))
    assert words in str(caught.value)


def test_a_graph_that_is_there_is_not_replaced(tmp_path):
    (tmp_path / "graph").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        create_graph("wikidata", tmp_path / "dump.json", tmp_path / "graph", CreationOptions(everything=True))


def test_a_folder_without_a_dump(tmp_path):
    with pytest.raises(DataError) as caught:
        create_graph("wikidata", tmp_path, tmp_path / "graph", CreationOptions(everything=True))
    assert "no files of a wikidata dump in this folder: looked for *.json or *.jsonl or *.ndjson" in str(caught.value)
    (tmp_path / "a.json").write_bytes(b"[]")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"[]"))
    with pytest.raises(DataError, match=r"a\.json and a\.json\.gz look like the same part twice"):
        create_graph("wikidata", tmp_path, tmp_path / "graph", CreationOptions(everything=True))


def test_sizes_of_memory():
    assert [memory_bytes(text) for text in ("512MB", "1GB", "1.5 GiB", "2g")] == [512 << 20, 1 << 30, 3 << 29, 2 << 30]
    for text in ("much", "1", "GB", "1e3GB", "-1GB", "١GB"):
        with pytest.raises(UsageError, match="is not a size of memory"):
            memory_bytes(text)
