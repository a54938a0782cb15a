"""A run follows its graph: facts come and go in versions, all of which can be opened again."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import hynt
from hynt.asking import examples
from hynt.cli.application import run as invoke
from hynt.errors import DataError, UsageError
from hynt.front.run import load
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs import journal, place
from hynt.runs.journal import UPDATES, GraphChange, Journal
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

NEW = [("Zoe", "knows", "person 1"), ("Zoe", "height", 171, [("year", 2001)]), ("Zoe", "owns", "Rex")]


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / UPDATES).glob("*.jsonl")}


def keys(graph):
    return sorted(fact.key() for fact in graph.facts())


def test_what_is_added_counts_at_once_and_every_version_can_be_opened(folder, run):
    later = run.update(NEW, source="the registry")
    assert (run.version, later.version, run.versions()) == (0, 1, [])
    assert later.predict("Zoe", "born in", "?").candidates == len(run.graph.entities) + 2
    (version,) = later.versions()
    assert (version.added, version.new_entities, version.source, version.facts) == (
        3,
        2,
        "the registry",
        len(run.graph) + 3,
    )
    last = later.update(remove=NEW[:1], remove_entities=["person 7"], merge=[("person 3", "person 4")])
    assert last.versions()[-1].source == "person 3 is person 4, without person 7"
    assert "person 7" not in last.graph
    assert "person 3" not in last.graph
    assert len(list(last.graph["person 4"])) > len(list(later.graph["person 4"]))
    for version, graph in enumerate((run.graph, later.graph, last.graph)):
        opened = hynt.load(folder, "cpu", version=version)
        assert opened.graph == graph
        assert len(opened.versions()) == version
    newest = hynt.load(folder, "cpu")
    assert newest.graph == last.graph == hynt.read_graph(folder)
    assert str(newest.predict("Zoe", "born in", "?")) == str(last.predict("Zoe", "born in", "?"))
    with pytest.raises(UsageError, match="there is no version 7 of this run"):
        hynt.load(folder, "cpu", version=7)


def test_commands_about_graphs_show_what_updates_brought(folder, run, capsys):
    assert invoke(["data", "show", str(folder), "person 1"]) == 0
    assert "Zoe" not in capsys.readouterr().out
    run.update(NEW)
    assert invoke(["data", "show", str(folder), "Zoe"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Zoe"
    assert invoke(["data", "stats", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["facts"] == len(run.graph) + 3


def test_a_graph_as_it_was_is_shown_counted_and_written(folder, run, tmp_path, capsys):
    run.update(NEW)
    assert hynt.read_graph(folder, version=0) == run.graph
    assert invoke(["data", "show", str(folder), "Zoe", "--as-of", "0"]) == 2
    assert "the graph has no entity called 'Zoe'" in capsys.readouterr().err
    assert invoke(["data", "stats", str(folder), "--as-of", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["facts"] == len(run.graph)
    assert (
        invoke(["data", "export", str(folder), "--as-of", "1", "--out", str(tmp_path / "one"), "-f", "tsv", "--json"])
        == 0
    )
    assert sum(json.loads(capsys.readouterr().out)["facts"].values()) == len(run.graph) + 3
    assert invoke(["data", "show", str(folder), "Zoe", "--as-of", "2"]) == 2
    assert "error: there is no version 2 of this run.\n  where: --as-of\n" in capsys.readouterr().err
    assert invoke(["data", "show", "world", "Japan", "--as-of", "0"]) == 2
    assert "error: a graph has no versions.\n  where: --as-of\n" in capsys.readouterr().err


def test_vectors_are_those_of_the_version_or_graph_that_is_named(folder, run, tmp_path, capsys):
    later = run.update(NEW)
    for target, options, entities in (
        (tmp_path / "now.parquet", (), len(later.graph.entities)),
        (tmp_path / "before.parquet", ("--as-of", "0"), len(run.graph.entities)),
        (tmp_path / "there.parquet", ("--as-of", "0", "--graph", str(folder)), len(later.graph.entities)),
    ):
        assert invoke(["embeddings", str(folder), "--out", str(target), *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["entities"] == entities
    assert invoke(["similar", str(folder), "Zoe", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["similar"]) == 10
    assert invoke(["similar", str(folder), "Zoe", "--as-of", "0"]) == 2
    assert "the graph has no entity called 'Zoe'" in capsys.readouterr().err


def test_where_a_graph_is_wanted_a_run_gives_its_own_with_all_updates(folder, run, tmp_path, capsys):
    later = run.update(NEW)
    assert run.on(folder).graph == later.graph
    assert invoke(["data", "split", str(folder), "--out", str(tmp_path / "parts")]) == 0
    capsys.readouterr()
    arguments = ["train", str(folder), "--from", str(folder), "--out", str(tmp_path / "later"), "--epochs", "1"]
    assert invoke([*arguments, "--device", "cpu"]) == 0
    assert hynt.load(tmp_path / "later", "cpu").graph == later.graph


def test_what_is_told_of_a_run_says_its_version(folder, run):
    later = run.update(NEW)
    assert later.described()["version"] == hynt.load(folder, "cpu").described()["version"] == 1
    assert "version" not in hynt.load(folder, "cpu", version=0).described()  # the graph that it was trained on


def test_an_update_gives_the_answers_that_asking_of_the_new_graph_gives(run):
    later = run.update(NEW)
    same = run.with_facts(NEW)
    assert list(later.predict("Zoe", "born in", "?")) == list(same.predict("Zoe", "born in", "?"))
    back = later.update(remove_entities=["Zoe", "Rex"])
    assert keys(back.graph) == keys(run.graph)
    question = ("person 1", "born in", "?")
    assert [one.id for one in back.predict(question)] == [one.id for one in run.predict(question)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"facts": [("Zoe", "height", "tall")]}, "fact 1, height: 'height' holds numbers, and 'tall' is not a number"),
        (
            {"facts": [NEW[0], ("Zoe", "born in", 7)]},
            "fact 2: the relation 'born in' carries entities, and 7 is a number",
        ),
        ({"facts": [("Zoe", "size", hynt.number(1, "shoes"))]}, "fact 1: unknown unit 'shoes'"),
        ({"facts": [("Zoe", "height", hynt.number(1, "shoes"))]}, "fact 1, height: unknown unit 'shoes'"),
        ({"facts": [("Zoe", "height", hynt.number(1, "kg"))]}, "fact 1, height: 'height' has no unit, but 'kg'"),
        (
            {"facts": [("Zoe", "size", 3), ("Ann", "size", "large")]},
            "fact 2: the relation 'size' has an entity here: (Ann, size, large); but a number before: (Zoe, size, 3). "
            "Give one of the two another name.",
        ),
        ({"facts": [("Zoe", "knows", "Ann", [("year", "soon")])]}, "fact 1, year: 'year' holds numbers"),
        ({"facts": [("person 0", "born in", "town 0")]}, "fact 1: the graph holds this already"),
        ({"facts": [NEW[0], ("Zoe", "born in", "?")]}, "fact 2: this is a question: it has ? in it"),
        ({"facts": [("Zoe", "knows", "Ann", [("year", "?")])]}, "fact 1: this is a question: it has ? in it"),
        ({"facts": [NEW[0], NEW[0]]}, "fact 2: the graph holds this already"),
        (
            {"facts": [NEW[0], ("Ann", "height", 1e300)]},
            "fact 2: the run cannot take 1e+300 for 'height': it learned from numbers too far from it.",
        ),
        ({"remove": NEW[:1]}, "fact 1: the graph does not hold this: (Zoe, knows, person 1)"),
        (
            {"facts": [NEW[0], ("Zoe", "foot", hynt.number(27, "cm")), ("Zoe", "foot", hynt.number(270, "mm"))]},
            "fact 3: the graph holds this already: (Zoe, foot, 0.27 m). ",
        ),
        ({"remove_entities": ["nobody"]}, "the graph has no entity called 'nobody'"),
        ({"merge": [("person 1", "person 1")]}, "merge: an entity cannot be merged with itself"),
        ({}, "nothing was given to change"),
        ({"facts": "nowhere.jsonl"}, "there is no file 'nowhere.jsonl'"),
    ],
)
def test_what_does_not_fit_is_one_clear_error_and_changes_nothing(folder, run, given, told):
    run.update(NEW[2:])
    before = files(folder)
    with pytest.raises((DataError, UsageError)) as refusal:
        run.update(**given)
    assert str(refusal.value).startswith(told)
    assert files(folder) == before
    assert hynt.load(folder, "cpu").version == 1


def test_spaces_at_the_ends_of_a_name_make_no_other_name(run):
    given = [("person 1 ", " knows", " person 9"), (" Zoe", "knows ", "person 1"), ("Zoe ", "knows", "Rex ")]
    later = run.update([*given, ("Zoe", " owns ", "Rex", [(" year ", " 2001 ")])])
    assert (later.versions()[0].new_entities, len(later.graph.relations)) == (2, len(run.graph.relations) + 1)
    assert later.graph["Rex"].texts() == ["Zoe · knows · Rex", "Zoe · owns · Rex (year 2001)"]
    assert later.update(remove=[("Zoe", "knows", " Rex")], remove_entities=["person 7 "]).version == 2
    with pytest.raises(DataError, match="fact 1: the head is empty"):
        run.update([("  ", "knows", "person 1")])


def test_one_entity_and_one_pair_need_no_list(run):
    later = run.update(remove_entities="person 7", merge=("person 3", "person 4"))
    assert not {"person 7", "person 3"} & {one.name for one in later.graph.entities}
    assert (later.version, later.versions()[-1].gone_entities) == (1, 2)


def test_known_facts_may_be_passed_over_and_a_key_counts_once(folder, run):
    later = run.update([*NEW, ("person 0", "born in", "town 0"), NEW[0]], skip_known=True, key="monday")
    assert later.versions()[0].added == 3
    assert run.update(NEW, skip_known=True).version == 1
    assert run.update([("Ann", "knows", "Zoe")], key="monday").version == 1
    assert run.update([("Ann", "knows", "Zoe")], key="tuesday").version == 2


def test_many_small_updates_are_read_as_one(folder, run, monkeypatch):
    for number in range(4):
        run = run.update([(f"new {number}", "knows", "person 1")])
    run = run.update(remove=[("new 0", "knows", "person 1")]).update([("new 0", "knows", "person 2")])
    expected, made = run.graph, []
    real = journal.with_facts
    monkeypatch.setattr(
        journal, "with_facts", lambda graph, facts, *more: made.append(len(facts)) or real(graph, facts)
    )
    again = hynt.load(folder, "cpu")
    assert again.graph == expected
    assert made == [4, 1]


def test_a_run_that_learned_vectors_is_refused(tmp_path):
    from tests.training.small_graph import small_graph

    made = hynt.train(small_graph(), "transea", epochs=1, out=tmp_path / "run", device="cpu")
    with pytest.raises(UsageError, match="a run of 'transea' cannot follow its graph"):
        made.update(NEW)


def test_answers_say_how_much_has_changed(run):
    later = run.update(NEW)

    def told(share: float) -> list[str]:
        asked = later.asked_of(later.graph, replace(later.loaded, changed=share)).predict("Zoe", "born in", "?")
        return [note for note in asked.notes if "have changed since probabilities were fitted" in note]

    assert told(0.012)[0].startswith("1.2% of the facts")
    assert told(0.009) == [], "it would stand on every answer of a run that is kept up to date"
    assert not any("changed since" in note for note in run.predict("person 1", "born in", "?").notes)


def test_a_graph_that_has_more_than_doubled_has_no_share_of_changed_facts(run):
    later = run.update([(f"new {index}", "knows", "person 1") for index in range(len(run.graph) + 1)])
    (told,) = [note for note in later.predict("person 1", "born in", "?").notes if "have changed" in note]
    assert told.startswith("more facts than there were have changed since probabilities were fitted; training on")


def test_an_updated_run_begins_with_the_questions_of_the_run_before(folder, run, monkeypatch):
    first = examples.held_out_examples(load(folder, "cpu"))
    assert first
    valid = run.graph.split("valid")
    gone = next(iter(valid.take(np.array([first[0].row])).facts(run.graph.vocabulary)))
    run.update(NEW, remove=[gone])
    monkeypatch.setattr(examples, "_found", lambda *_: pytest.fail("they were found anew"))
    later = load(folder, "cpu")
    found = examples.held_out_examples(later)
    assert [one.position for one in found] == [one.position for one in first if one.row != first[0].row]
    for one, before in zip(found, [one for one in first if one.row != first[0].row], strict=True):
        facts = later.graph.split("valid").take(np.array([one.row])).facts(later.graph.vocabulary)
        assert list(facts) == list(valid.take(np.array([before.row])).facts(run.graph.vocabulary))


def test_entities_with_the_same_facts_are_said_to_be_alike(run):
    twins = [("Mo", "knows", "person 1"), ("Jo", "knows", "person 1")]
    graph = KnowledgeGraph(run.graph.vocabulary, {"train": run.graph.split("train")}, run.graph.entities)
    told = (
        run.on(graph).with_facts(twins).predict("?", "knows", "person 1", candidates=[["Mo", "Jo", "person 5"]]).notes
    )
    assert any("cannot tell Jo and Mo apart" in note or "cannot tell Mo and Jo apart" in note for note in told)
    more = run.on(graph).with_facts([*twins, ("Mo", "born in", "town 1")])  # as the note advises
    told = more.predict("?", "knows", "person 1", candidates=[["Mo", "Jo", "person 5"]]).notes
    assert not any("cannot tell" in note for note in told)


def test_all_that_cannot_be_told_apart_are_named(run):
    def told(*ids: str) -> str:
        graph = run.with_facts([(one, "knows", "person 1") for one in ids]).graph
        entities = tuple(one._replace(label="Ann") if one.name in ("a1", "a2") else one for one in graph.entities)
        asked = run.on(replace(graph, entities=entities))
        notes = asked.predict("?", "knows", "person 1", candidates=[list(ids)], top=9).notes
        (words,) = [words for note in notes for words in re.findall("cannot tell (.*) apart by their facts", note)]
        return words

    assert sorted(re.split(", | and ", told("Mo", "Jo", "Lu"))) == ["Jo", "Lu", "Mo"]
    assert sorted(told("a1", "a2").split(" and ")) == ["Ann (a1)", "Ann (a2)"]
    assert re.fullmatch(r"\w\w, \w\w, \w\w and 3 more", told("Mo", "Jo", "Lu", "Bo", "Al", "Vi"))


def test_verbs_about_training_work_on_the_graph_of_training(run):
    later = run.update(NEW)
    assert later.evaluate(references=False).to_dict()["link"] == run.evaluate(references=False).to_dict()["link"]
    assert later.calibrate().calibrated == run.calibrate().calibrated


@pytest.mark.parametrize("verb", ["evaluate", "calibrate", "predict"])
def test_the_graph_of_an_updated_run_is_read_once(folder, run, monkeypatch, verb):
    run.update(NEW)
    read, real = [], place.graph_of_run
    monkeypatch.setattr(place, "graph_of_run", lambda *given: read.append(given) or real(*given))
    given = ("Zoe", "born in", "?") if verb == "predict" else ("valid",)
    getattr(hynt.Run(folder, "cpu"), verb)(*given)
    assert len(read) == 1


def test_changes_survive_being_written():
    number = hynt.number(0.1 + 0.2, "m")
    change = GraphChange(
        (("a", "b"),), ("c\n",), (Fact("d", "r", "e"),), (Fact("f", "r", number, (hynt.Qualifier("q", "\u2028"),)),)
    )
    assert GraphChange.from_lines(change.lines()) == change


def test_the_command_line(folder, tmp_path, capsys):
    (tmp_path / "more.jsonl").write_text('{"head": "Zoe", "relation": "knows", "tail": "person 1"}\n')
    (tmp_path / "gone.jsonl").write_text('{"head": "person 1", "relation": "born in", "tail": "town 1"}\n')
    assert invoke(["update", str(folder), str(tmp_path / "more.jsonl")]) == 0
    assert "Version 1: 1 fact added, 0 removed; 1 new entity" in capsys.readouterr().out
    assert invoke(["update", str(folder), "--merge", "Zoe", "person 2", "--source", "by hand"]) == 0
    capsys.readouterr()
    assert invoke(["update", str(folder), "--log", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["source"] for one in told["versions"]] == ["more.jsonl", "by hand"]
    question = ["--head", "Zoe", "--relation", "born in", "--tail", "?", "--device", "cpu", "--as-of"]
    assert invoke(["predict", str(folder), *question, "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 1
    assert invoke(["predict", str(folder), *question, "2"]) == 2
    assert "no entity called 'Zoe'" in capsys.readouterr().err
    assert invoke(["predict", str(folder), *question, "7"]) == 2
    assert "there is no version 7 of this run.\n  where: --as-of\n" in capsys.readouterr().err
    assert invoke(["update", str(folder), "--remove", str(tmp_path / "gone.jsonl"), "--remove-entity", "person 7"]) == 0
    assert Journal(folder).versions()[-1].source == "gone.jsonl, without person 7"


def test_what_a_version_changed_is_told_in_words(folder, run, capsys):
    later = run.update([*NEW, ("Zoe", "arm", hynt.number(70, "cm"))])
    assert later.changes(1) == [f"+ {text}" for text in later.graph["Zoe"].texts()]
    assert "+ Zoe · height · 171 (year 2001)" in later.changes(1)
    later.update(remove=NEW[2:], remove_entities="person 7", merge=("person 3", "person 4"))
    told = ["person 3 is person 4", "without person 7", "- Zoe · owns · Rex"]
    assert run.changes(2) == told
    assert invoke(["update", str(folder), "--changes", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == told
    assert invoke(["update", str(folder), "--changes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": str(folder), "version": 2, "changes": told}
    for version in ("0", "3"):
        assert invoke(["update", str(folder), "--changes", version]) == 2
        assert "where: --changes" in capsys.readouterr().err
    assert invoke(["update", str(folder), "more.jsonl", "--changes", "1"]) == 2
    assert "error: a log changes nothing.\n  where: --changes\n" in capsys.readouterr().err


def test_an_update_that_is_refused_leaves_no_copy(folder, tmp_path, capsys):
    (tmp_path / "bad.jsonl").write_text('{"head": "Zoe", "relation": "height", "tail": "tall"}\n')
    (tmp_path / "more.jsonl").write_text('{"head": "Zoe", "relation": "knows", "tail": "person 1"}\n')
    words = ["update", str(folder), "--out", str(tmp_path / "copy")]
    assert invoke([*words, str(tmp_path / "bad.jsonl")]) == 1
    assert not (tmp_path / "copy").exists()
    assert invoke([*words, str(tmp_path / "more.jsonl")]) == 0
    capsys.readouterr()
    assert Journal(tmp_path / "copy").latest() == 1
    assert invoke([*words, str(tmp_path / "more.jsonl")]) == 2  # somebody's copy stays
    assert Journal(tmp_path / "copy").latest() == 1


def test_what_may_have_been_overlooked_is_told_in_python_too(folder, tmp_path):
    told: list[str] = []
    given = [(f"person {i}", "shoe size", str(36 + i)) for i in range(9)]
    run = hynt.load(folder, "cpu", told.append)
    later = run.update(given, out=tmp_path / "copy")
    (hint,) = [line for line in told if "shoe size" in line]
    assert "--numeric" in hint
    assert (later.path, later.version, run.version, Journal(folder).latest()) == (tmp_path / "copy", 1, 0, 0)
    with pytest.raises(DataError, match="holds this already"):
        run.update([("person 0", "born in", "town 0")], out=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_new_names_that_differ_only_in_letter_case_are_told(folder, tmp_path):
    """They become two entities; a name of the graph in another case is the graph's own."""
    told: list[str] = []
    run = hynt.load(folder, "cpu", told.append)
    later = run.update([("Zoe", "knows", "zoe"), ("Zoe", "Person 1", "PERSON 1")], out=tmp_path / "copy")
    assert {"Zoe", "zoe"} <= set(later.graph.vocabulary.entities)
    assert "PERSON 1" not in later.graph.vocabulary.entities
    (hint,) = [line for line in told if "letter case" in line]
    assert "'Zoe' (fact 1) and 'zoe' (fact 1)" in hint
    assert "--merge" in hint
    told.clear()
    later.update([("ZOE 2", "works at", "Acme"), ("Ann", "Works at", "person 2")])
    (hint,) = [line for line in told if "letter case" in line]
    assert "2 of the new relations" in hint
    assert "relations" in hint


def test_stored_answers_say_what_was_added_and_from_where(folder, run):
    later = run.update([("Zoe", "knows", "person 1"), ("Ann", "knows", "person 1")], source="the registry")
    (stored,) = later.predict("Zoe", "knows", "?").stored
    assert (stored.text, stored.added) == ("person 1", "the registry")
    assert "in the graph, added (the registry): person 1" in str(later.predict("Zoe", "knows", "?"))
    assert [one.added for one in later.predict("person 1", "knows", "?").stored] == [""]
    joined = later.update(merge=[("Zoe", "person 2")], remove=[("Ann", "knows", "person 1")])
    came = {one.text: one.added for one in joined.predict("person 2", "knows", "?").stored}
    assert came == {"person 3": "", "person 1": "the registry"}
    again = joined.update([("Ann", "knows", "person 1")])
    assert [one.added for one in again.predict("Ann", "knows", "?").stored] == ["an update"]
    assert hynt.load(folder, "cpu", version=0).predict("person 2", "knows", "?").stored[0].added == ""


def test_a_number_that_has_no_logarithm_is_refused_where_the_run_reads_logarithms(tmp_path):
    """One of them in the graph would end every answer of the run."""
    cpu = torch.device("cpu")
    settings = tiny_settings(
        "hynt-inductive",
        model={"dimension": 16, "layers": 1, "heads": 2, "feedforward": 32, "bins": 21},
        schedule={"epochs": 1, "epoch_steps": 1},
        log_relations=["height"],
    )
    run = hynt.load(train(start(small_graph(), settings, tmp_path / "run", cpu), cpu).path, "cpu")
    with pytest.raises(DataError, match="fact 2: the run cannot take 0 for 'height': it reads their logarithms"):
        run.update([NEW[0], ("Ann", "height", 0)])
    assert run.update([("Ann", "height", 1)]).predict("Ann", "height", "?").kind == "number"
