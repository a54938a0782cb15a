"""A run updated from files: of any format, refused by their lines, with names for people."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import hynt
from hynt.cli.application import run as invoke
from hynt.errors import DataError, UsageError
from hynt.runs.journal import Journal


def test_facts_come_from_any_format_in_the_units_and_names_of_the_graph(tmp_path, folder):
    rows = [
        {"head": "Zoe", "relation": "knows", "tail": "PERSON 1"},
        {"head": "Zoe", "relation": "height", "tail": {"number": 171}, "qualifiers": [["year", {"number": 2001}]]},
        {"head": "Zoe", "relation": "distance", "tail": {"number": 2, "unit": "km"}},
    ]
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    later = hynt.load(folder, "cpu").update(tmp_path / "more.jsonl")
    facts = {fact.relation: fact for fact in later.graph["Zoe"]}
    assert facts["knows"].tail == "person 1"
    assert (facts["distance"].tail.value, facts["distance"].tail.unit) == (2000.0, "m")
    assert later.versions()[0].source == "more.jsonl"
    (tmp_path / "one.tsv").write_text("Zoe\tknows\tperson 2\n")
    assert later.update(tmp_path / "one.tsv").version == 2
    (tmp_path / "more.jsonl").write_text('{"head": 3}\n')
    with pytest.raises(DataError, match=r"more\.jsonl:1"):
        later.update(tmp_path / "more.jsonl")


BESIDE = [  # what a file holds, and the refusal of its last fact, which is in its line 4
    ("head,relation,tail\n\nZoe,knows,person 1\nZoe,height,tall\n", ", height: 'height' holds numbers"),
    ("head,relation,tail\n\nZoe,knows,person 1\nperson 0,born in,town 0\n", ": the graph holds this already"),
    ("head,relation,tail\n\nZoe,knows,person 1\nZoe,knows,person 1\n", ": the graph holds this already"),
]


@pytest.mark.parametrize(("content", "told"), BESIDE)
def test_a_refused_fact_of_a_file_is_told_by_its_line(folder, run, tmp_path, content, told):
    path = tmp_path / "more.csv"
    path.write_text(content)
    with pytest.raises((DataError, UsageError)) as refusal:
        run.update(path)
    assert str(refusal.value).startswith(f"{path}:4{told}")
    assert not Journal(folder).versions()
    path.write_text("head,relation,tail\nperson 0,born in,town 0\nperson 0,born in,town 77\n")
    with pytest.raises(DataError, match=re.escape(f"{path}:3: the graph does not hold this")):
        run.update(remove=path)


def test_what_stands_beside_the_facts_of_a_folder_says_their_units_and_kinds(folder, run, tmp_path):
    run = run.update([("person 0", "distance", hynt.number(3, "m"))])
    given, relations = tmp_path / "given", tmp_path / "given" / "relations.jsonl"
    given.mkdir()
    (given / "train.jsonl").write_text('{"head": "Zoe", "relation": "distance", "tail": 200}\n')
    relations.write_text('{"id": "distance", "kind": "number", "unit": "kg"}\n')
    with pytest.raises(DataError, match=r"train\.jsonl:1, distance: kg \(mass\) cannot become m \(length\)"):
        run.update(given)
    relations.write_text('{"id": "distance", "kind": "entity"}\n')
    with pytest.raises(DataError, match=r"given: 'distance' carries entities there, and numbers in the graph"):
        run.update(given)
    relations.write_text('{"id": "distance", "kind": "number", "unit": "cm"}\n')
    assert run.update(given).graph["Zoe"].texts() == ["Zoe · distance · 2 m"]
    hynt.export_graph(folder, tmp_path / "all", "hynt")  # numbers without units, which relations.jsonl has
    assert hynt.load(folder, "cpu").update(tmp_path / "all", skip_known=True).version == 2


def test_another_name_or_type_of_what_the_graph_has_is_told(run, tmp_path, folder):
    (tmp_path / "train.jsonl").write_text('{"head": "Zoe", "relation": "knows", "tail": "person 1"}\n')
    (tmp_path / "entities.jsonl").write_text('{"id": "person 1", "type": "dog"}\n{"id": "Zoe", "type": "person"}\n')
    notes = []
    later = hynt.load(folder, "cpu", notes.append).update(tmp_path)
    assert notes == ["the graph keeps its own names and types; given otherwise: 'person 1'."]
    assert {one.name: one.type for one in later.graph.entities if one.name in ("Zoe", "person 1")} == {
        "Zoe": "person",
        "person 1": "",
    }


def test_a_what_if_is_checked_as_an_update_is(folder, run, tmp_path):
    path = tmp_path / "more.csv"
    path.write_text("head,relation,tail\nZoe,knows,person 1\nZoe,height,171\n")
    assert run.with_facts(path).graph["Zoe"].texts() == ["Zoe · knows · person 1", "Zoe · height · 171"]
    path.write_text("head,relation,tail\nZoe,height,1e300\n")
    with pytest.raises(DataError, match=re.escape(f"{path}:2: the run cannot take 1e+300 for 'height'")):
        run.with_facts(path)
    assert not Journal(folder).versions()


def test_a_record_that_lacks_a_part_is_no_other_format(run, tmp_path):
    path = tmp_path / "more.jsonl"
    path.write_text('{"head": "Zoe", "relation": "knows"}\n')
    with pytest.raises(DataError, match=re.escape(f"{path}:1")):
        run.update(path)


def test_names_for_people_come_along_and_stay(folder, run, tmp_path):
    edge = {"source": "Q1", "type": "knows", "target": "person 1"}
    people = {"nodes": [{"id": "Q1", "properties": {"name": "Zoe of Ulm"}}, {"id": "person 1"}], "edges": [edge]}
    (tmp_path / "more.json").write_text(json.dumps(people))
    later = run.update(tmp_path / "more.json")
    other = hynt.graph_from_facts([("Q2", "P1", "Q1"), ("person 1", "P1", "Q2")])
    named = [one._replace(label=f"called {one.name}", type="person") for one in other.entities]
    relations = tuple(one._replace(label="met") for one in other.relations)
    replace(other, vocabulary=replace(other.vocabulary, relations=relations), entities=tuple(named)).save(
        tmp_path / "graph"
    )
    last = later.update(tmp_path / "graph")
    for opened in (last, hynt.load(folder, "cpu")):
        labels = {one.name: (one.label, one.type) for one in opened.graph.entities}
        assert labels["Q1"] == ("Zoe of Ulm", "")
        assert labels["Q2"] == ("called Q2", "person")
        assert labels["person 1"] == ("", "")  # what was known keeps its name
        assert opened.graph.relations[opened.graph.vocabulary.relation_ids["P1"]].label == "met"
    assert last.predict("Zoe of Ulm", "met", "?").question.startswith("Zoe of Ulm")
    assert last.update(remove_entities=["called Q2"]).graph["Zoe of Ulm"]


def test_options_that_only_an_import_has_are_told_as_such(run, tmp_path, capsys):
    (tmp_path / "odd.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(UsageError, match="These are options of hynt data import: import it so, and give the graph's f"):
        run.update(tmp_path / "odd.csv")
    (tmp_path / "more.csv").write_text("head,relation,tail\nZoe,cats,7\nMo,cats,12\nMo,knows,person 1\n")
    assert invoke(["update", str(run.path), str(tmp_path / "more.csv")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "note: values of cats are written like numbers and were read as names." in told
    assert "hynt data import" in told
    (tmp_path / "more.csv").write_text("head,relation,tail\nZoe,height,171\nIda,knows,person 1\n")
    assert invoke(["update", str(run.path), str(tmp_path / "more.csv")]) == 0
    assert "note" not in capsys.readouterr().out


def test_an_update_takes_decisions_from_the_page(run, tmp_path):
    from hynt.formats.jsonl import write_fact

    gone, other = next(iter(run.graph["person 1"])), next(iter(run.graph["person 2"]))
    new = write_fact(other._replace(head="person 3", tail="person 4", relation="knows", qualifiers=()))
    lines = [f'{{"decision": "remove", "fact": {write_fact(gone)}}}']
    lines.append(f'{{"decision": "replace", "fact": {write_fact(other)}, "with": {new}}}')
    (tmp_path / "decisions.jsonl").write_text("\n".join(lines))
    later = run.update(corrections=tmp_path / "decisions.jsonl", skip_known=True)
    record = later.versions()[-1]
    assert (record.removed, record.source) == (2, "decisions.jsonl")
    assert gone not in list(later.graph["person 1"])
    assert any(fact.tail == "person 4" and fact.relation == "knows" for fact in later.graph["person 3"])


def test_a_file_says_names_and_places_beside_decisions_too(run, tmp_path):
    from hynt.formats.jsonl import write_fact

    other = next(iter(run.graph["person 2"]))
    new = write_fact(other._replace(head="Ida", tail="person 4", relation="knows", qualifiers=()))
    decisions, facts = tmp_path / "decisions.jsonl", tmp_path / "given" / "train.jsonl"
    decisions.write_text(f'\n{{"decision": "replace", "fact": {write_fact(other)}, "with": {new}}}\n')
    facts.parent.mkdir()
    (facts.parent / "entities.jsonl").write_text('{"id": "Q1", "label": "Zoe of Ulm"}\n')
    facts.write_text('\n{"head": "Q1", "relation": "height", "tail": "tall"}\n')
    with pytest.raises(DataError, match=re.escape(f"{facts}:2, height: 'height' holds numbers")):
        run.update(facts.parent, corrections=decisions)
    line = '{"head": "Q1", "relation": "knows", "tail": "person 1"}\n'
    facts.write_text(line + new + "\n")
    with pytest.raises(DataError, match=re.escape(f"{decisions}:2: the graph holds this already")):
        run.update(facts.parent, corrections=decisions)
    facts.write_text(line)
    later = run.update(facts.parent, corrections=decisions, skip_known=True)
    assert later.graph["Zoe of Ulm"].texts() == ["Zoe of Ulm · knows · person 1"]
    with pytest.raises(DataError, match=re.escape(f"{decisions}:2: the graph does not hold this")):
        later.update([("Ida", "knows", "person 1")], corrections=decisions, skip_known=True)


KNOWN = [{"head": "person 0", "relation": "born in", "tail": "town 0"}] * 2
REFUSED = [
    {"head": "Zoe", "relation": "height", "tail": "tall"},
    {"head": "Zoe", "relation": "height", "tail": {"number": 1e300}},
    {"head": "Zoe", "relation": "knows", "tail": {"number": 3}},
    {"head": "Zoe", "relation": "shoe size", "tail": "large"},
    {"head": "Zoe", "relation": "knows", "tail": "?"},
]


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("refused", REFUSED, ids=lambda row: f"{row['relation']} {row['tail']}")
def test_a_refusal_beside_skipped_facts_names_the_line(run, tmp_path, refused):
    new = {"head": "Zoe", "relation": "shoe size", "tail": {"number": 39}}
    path = lines(tmp_path / "more.jsonl", [*KNOWN, new, new, refused])
    with pytest.raises(DataError) as problem:
        run.update(path, skip_known=True)
    assert problem.value.where.startswith(f"{path}:5")


def test_names_that_differ_only_in_letter_case_are_told_with_their_lines(folder, tmp_path):
    told: list[str] = []
    rows = [{"head": name, "relation": "knows", "tail": "person 1"} for name in ("Zoe", "Ann", "zoe")]
    path = lines(tmp_path / "more.jsonl", [*KNOWN, *rows])
    hynt.load(folder, "cpu", told.append).update(path, skip_known=True)
    assert told == [
        f"2 of the new entities differ only in letter case, such as 'Zoe' ({path}:3) and 'zoe' ({path}:5). "
        "If they mean the same, merge them: hynt update RUN --merge A B."
    ]
