"""What the assembler drops it counts; what it keeps is what it was given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.graph import columns, encoding
from hynt.graph.assembly import Assembler, AssemblyPolicy
from hynt.graph.columns import ChunkStore
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.fact import Fact, Number, Qualifier, fact, number
from tests.graph.fact_strategies import facts
from tests.graph.small_graphs import assembled


@given(st.lists(facts(), min_size=1, max_size=30))
def test_facts_come_back_as_they_were(made):
    graph = assembled({"train": made})
    first: dict[object, Fact] = {}
    for one in made:
        first.setdefault(one.key(), one)
    assert list(graph.facts()) == list(first.values())
    assert graph.manifest.importing["duplicates"] == len(made) - len(first)


def test_ids_are_dense_and_in_order_of_meeting():
    graph = assembled({"train": [fact("b", "r", "a"), fact("a", "s", 1), fact("c", "r", "b")]})
    assert graph.vocabulary.entities == ("b", "a", "c")
    assert [(relation.name, relation.kind) for relation in graph.relations] == [("r", "entity"), ("s", "number")]
    assert graph.splits["train"].head.tolist() == [0, 1, 2]


def test_duplicates_up_to_qualifier_order_are_dropped_within_a_split_only():
    one = fact("a", "r", "b", [("x", 1), ("y", "c")])
    other = fact("a", "r", "b", [("y", "c"), ("x", 1)])
    graph = assembled({"train": [one, other], "test": [other]})
    assert {name: len(table) for name, table in graph.splits.items()} == {"train": 1, "test": 1}
    assert graph.manifest.importing["duplicates"] == 1
    assert graph.manifest.importing["across_splits"]["train_and_test"] == 1


def test_facts_in_two_splits_can_be_dropped_from_the_later_one():
    shared, other = fact("a", "r", "b"), fact("b", "r", "a")
    policy = AssemblyPolicy(across_splits="drop")
    graph = assembled({"train": [shared], "valid": [shared, other], "test": [shared, other]}, policy)
    assert {name: list(graph.facts(name)) for name in graph.splits} == {"train": [shared], "valid": [other]}
    assert graph.manifest.importing["across_splits"]["dropped"] == 3


def test_facts_in_two_splits_can_be_refused():
    shared = fact("a", "r", "b")
    with pytest.raises(DataError, match="in two splits at once: 1 fact "):
        assembled({"train": [shared], "valid": [shared]}, AssemblyPolicy(across_splits="error"))


def test_a_mixed_relation_is_refused_with_an_example_of_each():
    with pytest.raises(RecordProblem) as problem:
        assembled([fact("a", "size", 3), fact("b", "size", "large", [("x", "y")])])
    assert problem.value.reason == "mixed-relation"
    assert problem.value.what == (
        "the relation 'size' has an entity here: (b, size, large) {x: y}; but a number before: (a, size, 3)."
    )
    assert "--mixed-relations split" in problem.value.advice


@pytest.mark.parametrize("numbers_first", [True, False])
def test_a_mixed_relation_can_be_split(numbers_first):
    made = [fact("a", "size", 3), fact("b", "size", "large", [("size", 4)]), fact("c", "size", 5)]
    graph = assembled({"train": made if numbers_first else [made[1], made[0], made[2]]}, mixed="split")
    kinds = {relation.name: relation.kind for relation in graph.relations}
    assert kinds == {"size": "entity", "size (number)": "number"}
    by_head = {one.head: one for one in graph.facts()}
    assert by_head["a"].relation == by_head["c"].relation == "size (number)"
    assert by_head["b"] == Fact("b", "size", "large", (Qualifier("size (number)", number(4)),))


def test_a_refused_fact_leaves_nothing_behind():
    with Assembler() as assembler:
        assembler.add(fact("a", "r", "b"))
        with pytest.raises(RecordProblem):
            assembler.add(fact("new", "new relation", "newer", [("r", 3)]))
        graph = assembler.finish().to_graph()
    assert graph.vocabulary.entities == ("a", "b")
    assert [relation.name for relation in graph.relations] == ["r"]


def test_a_refused_fact_decides_no_kind():
    with Assembler() as assembler:
        with pytest.raises(RecordProblem, match="unknown unit"):
            assembler.add(Fact("a", "size", Number(3.0, "3", "kgg")))
        assembler.add(fact("b", "size", "large"))
        graph = assembler.finish().to_graph()
    assert [(relation.name, relation.kind) for relation in graph.relations] == [("size", "entity")]


def test_numbers_become_si_and_keep_their_literal():
    graph = assembled([Fact("Keane", "weight", Number(176.4, "176.4", "lb"))])
    (one,) = graph.facts()
    assert one.tail == Number(pytest.approx(80.0136, abs=1e-4), "176.4", "kg")
    assert graph.relations[0].unit == "kg"


def test_units_can_be_kept():
    graph = assembled([Fact("Keane", "weight", Number(176.4, "176.4", "lb"))], convert_units=False)
    assert next(iter(graph.facts())).tail == Number(176.4, "176.4", "lb")


def test_an_unknown_unit_is_refused_by_name():
    with pytest.raises(RecordProblem, match="'weight' has a number in 'stonez'") as problem:
        assembled([Fact("Keane", "weight", Number(1.0, "1", "stonez"))])
    assert problem.value.reason == "unknown-unit"


def test_mixed_units_are_noted_or_refused():
    made = [Fact("a", "worth", Number(1.0, "1", "dollar")), Fact("b", "worth", Number(2.0, "2", "euro"))]
    notes = []
    graph = assembled(made, convert_units=False, note=lambda *note: notes.append(note))
    assert len(graph) == 2
    advice = "Its numbers are kept without a unit. Write all in one, or give each unit a relation of its own."
    assert notes == [("mixed-units", "the relation 'worth' mixes units: 2 has euro, others dollar.", advice)]
    assert graph.relations[0].unit == ""
    with pytest.raises(RecordProblem, match="mixes units"):
        assembled(made, convert_units=False, strict=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(value):
    with pytest.raises(RecordProblem, match="is not a finite number"):
        assembled([Fact("a", "r", Number(value, str(value)))])


def test_declared_units_apply_to_bare_numbers():
    with Assembler() as assembler:
        assembler.encoder.declare_relation(RelationDeclaration("weight", "number", "g", "log", "body weight"))
        assembler.add(fact("Keane", "weight", 80_000))
        graph = assembler.finish().to_graph()
    assert graph.relations[0]._asdict() == {
        "name": "weight",
        "kind": "number",
        "unit": "kg",
        "scale": "log",
        "label": "body weight",
        "description": "",
    }
    assert next(iter(graph.facts())).tail == Number(80.0, "80000", "kg")


def test_a_declared_kind_is_held():
    with Assembler() as assembler:
        assembler.encoder.declare_relation(RelationDeclaration("weight", "number"))
        with pytest.raises(RecordProblem, match="declared to carry numbers"):
            assembler.add(fact("Keane", "weight", "heavy"))


def test_no_facts_is_an_error():
    with pytest.raises(DataError, match="there are no facts"):
        assembled([])


def test_files_with_and_without_a_split_do_not_mix():
    with Assembler() as assembler:
        assembler.add(fact("a", "r", "b"), "train")
        assembler.add(fact("b", "r", "a"))
        with pytest.raises(UsageError, match="some files belong to a split and others do not"):
            assembler.finish()


def test_leaking_relations_are_removed_with_their_evidence():
    pairs = [(f"a{index}", f"b{index}") for index in range(30)]
    made = [fact(a, "parent of", b) for a, b in pairs] + [fact(b, "child of", a) for a, b in pairs[:-1]]
    made += [fact(a, "knows", b) for a, b in pairs[:15]]
    graph = assembled({"train": made}, AssemblyPolicy(remove_leakage=True, leakage_threshold=0.9))
    leakage = graph.manifest.importing["leakage"]
    assert leakage["removed_facts"] == 29
    assert leakage["relations"] == [
        {
            "removed": "child of",
            "kept": "parent of",
            "kind": "inverse",
            "shared": 29,
            "pairs": 29,
            "kept_pairs": 30,
            "overlap": 0.9667,
        }
    ]
    assert [relation.name for relation in graph.relations] == ["parent of", "knows"]


def test_what_does_not_fit_in_memory_goes_to_disk_and_comes_back(monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_FACTS", 7)
    spills = []
    monkeypatch.setattr(columns._Spill, "__init__", _recorded(columns._Spill.__init__, spills))
    made = [fact(f"e{index % 9}", "r", index, [("q", f"e{index % 5}")] * (index % 3)) for index in range(100)]
    in_memory = assembled({"train": made})
    assert not spills
    with Assembler() as assembler:
        assembler.store = assembler.encoder._store = ChunkStore(facts_in_memory=20)
        for one in made:
            assembler.add(one, "train")
        on_disk = assembler.finish().to_graph()
    assert on_disk == in_memory
    assert len(spills) == 1
    assert not spills[0]._path.exists()


def _recorded(original, calls):
    def initialise(self, *arguments):
        calls.append(self)
        original(self, *arguments)

    return initialise
