"""From what a person writes to a question: names, ids, positions, and every refusal in words."""

from __future__ import annotations

import datetime
import time
from random import Random

import numpy as np
import pytest

from hynt.asking.question import ask, ask_each, pair_from_text
from hynt.errors import UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import Number
from hynt.graph.fact_table import ENTITY_KIND, NUMBER_KIND, RELATION_KIND
from hynt.graph.lookup import NameLookup
from hynt.graph.units.dates import decimal_year


def refused(graph, *parts, **named) -> UsageError:
    with pytest.raises(UsageError) as problem:
        ask(graph, *parts, **named)
    return problem.value


def test_a_number_beside_a_hidden_relation_is_told_in_words(towns):
    assert ask(towns, "p0", "?", Number(1.5, "1.5", "m")).text == "Person 0 · ? · 1.5 m"
    assert ask(towns, "p0", "?", "150 cm").text == "Person 0 · ? · 150 cm"


def test_each_component_can_be_the_hole(towns):
    wedding = [("date", "1995-06"), ("place", "Shelbyville")]
    asked = {
        "head": ask(towns, "?", "spouse", "p7", wedding),
        "relation": ask(towns, "p0", "?", "p7", wedding),
        "tail": ask(towns, "p0", "spouse", "?", wedding),
        "relation of qualifier 2": ask(towns, "p0", "spouse", "p7", [wedding[0], ("?", "Shelbyville")]),
        "value of qualifier 1": ask(towns, "p0", "spouse", "p7", [("date", "?"), wedding[1]]),
        "value of qualifier 2": ask(towns, "p0", "spouse", "p7", [wedding[0], ("place", "?")]),
    }
    for place, question in asked.items():
        assert question.place == place
        assert len(question.table) == 1
        assert question.tried is None
    kinds = [question.kind for question in asked.values()]
    assert kinds == [ENTITY_KIND, RELATION_KIND, ENTITY_KIND, RELATION_KIND, NUMBER_KIND, ENTITY_KIND]
    assert asked["head"].text == "? · spouse · Person 7 (date 1995-06; place Shelbyville)"
    assert asked["value of qualifier 1"].text == "Person 0 · spouse · Person 7 (date ?; place Shelbyville)"
    assert asked["tail"].table.qualifier_number[0] == decimal_year(1995, 6)


def test_names_ids_and_other_cases_are_the_same_question(towns):
    first = ask(towns, "p3", "P19", "?")
    for head, relation in (("Person 3", "born in"), ("person 3", "Born In"), ("p3", "born in")):
        assert ask(towns, head, relation, "?").table == first.table


def test_a_shared_name_is_settled_by_its_place(towns):
    ids = towns.vocabulary.entity_ids
    assert ask(towns, "?", "born in", "Springfield").table.tail_entity[0] == ids["t0"]
    assert ask(towns, "?", "employer", "Springfield").table.tail_entity[0] == ids["f0"]
    assert ask(towns, "p0", "spouse", "?", [("place", "Springfield")]).table.qualifier_entity[0] == ids["t0"]


def test_a_shared_name_that_its_place_does_not_settle_is_refused_with_ids(towns):
    problem = refused(towns, "p0", "?", "Springfield")
    assert problem.sentences == (
        "2 entities seen as a tail are called 'Springfield'. Give the id of one: t0 (tail, value), f0 (tail)."
    )
    assert problem.where == "tail"


def test_a_number_beside_a_hidden_relation_is_tried_under_each(towns):
    length = ask(towns, "p0", "?", "170 cm")
    assert [towns.relations[one].name for one in length.tried] == ["height"]
    assert length.table.tail_number[0] == pytest.approx(1.7)
    bare = ask(towns, "p0", "spouse", "p7", [("?", "1995")])
    assert [towns.relations[one].name for one in bare.tried] == ["height", "date"]
    assert bare.table.qualifier_number.tolist() == [1995.0, 1995.0]
    day = ask(towns, "p0", "?", "1995-06-30")
    assert [towns.relations[one].name for one in day.tried] == ["date"]
    assert day.text == "Person 0 · ? · 1995-06-30"


def test_qualifiers_stay_with_their_row_when_several_relations_are_tried(towns):
    asked = ask(towns, "p0", "spouse", "p7", [("place", "t1"), ("?", 1995)])
    ids = towns.vocabulary.relation_ids
    assert asked.table.qualifier_relation.tolist() == [ids["place"], ids["height"], ids["place"], ids["date"]]
    assert asked.table.offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "parts,word",
    [
        ((), "the question is empty."),
        ((None, "", None), "the question is empty."),
        (("p0", "born in"), "the question has no tail."),
        (("p0", "  ", "?"), "the question has no relation."),
        (("p0", "born in", "t0"), "the question has no blank."),
        (("?", "born in", "?"), "the question has 2 blanks: head and tail."),
        (("p0", "born in", "t0", [("?", "?")]), "2 blanks: relation of qualifier 1 and value of qualifier 1."),
        (("p0", "born in", "?", [("place", "")]), "the question has no value of qualifier 1."),
        (("p0", "born in", "?", "place=t1"), "is not a list of qualifiers"),
        (("p0", "born in", "?", [("place",)]), "is not a qualifier"),
        (("p0", 5, "?"), "the relation is 5, which is not text."),
        ((5, "born in", "?"), "the head is 5, and an entity is wanted there."),
        (("p0", "?", "80 kg"), "no relation of this graph holds numbers such as '80 kg'"),
        (("?", "height", "tall"), "'height' holds numbers, and 'tall' is not a number."),
    ],
)
def test_what_cannot_be_asked_is_told(towns, parts, word):
    problem = refused(towns, *parts)
    assert word in problem.what
    assert problem.advice


def test_an_unknown_name_comes_with_the_five_nearest(towns):
    problem = refused(towns, "Persn 12", "born in", "?")
    assert problem.what == "the graph has no entity called 'Persn 12'."
    assert problem.where == "head"
    assert "The nearest are 'Person 12'" in problem.advice
    assert problem.advice.count("'") == 2 * 5 + 1  # five names, and the one in "entity's"
    assert "'born in'" in refused(towns, "p0", "born im", "?").advice


def test_a_name_is_found_among_fifty_thousand_in_no_time():
    labels = {f"Q{index}": f"Settlement number {index * 7919 % 1_000_003}" for index in range(50_000)}
    graph = graph_from_facts({"train": [(name, "near", "Q0") for name in labels]}, labels=labels)
    names = NameLookup(graph)
    for question in (("?", "near", "Settlement number 7919"), ("?", "near", "Setlement number 7919")):
        spent = []
        for _ in range(3):
            start = time.process_time()
            if question[2].startswith("Settle"):
                assert ask(graph, *question, names=names).kind == ENTITY_KIND
            else:
                with pytest.raises(UsageError, match="Settlement number 7919"):
                    ask(graph, *question, names=names)
            spent.append(time.process_time() - start)
        assert min(spent) < 0.05  # of processor time, once the names are indexed


PARTS = [
    *("p1", "Person 2", "PERSON 3", "t0", "Springfield", "Nobody", "1995", " ", None, 5, True, 1.7, "170 cm", "3 kg"),
    *(Number(170.0, "170", "cm"), Number(float("inf"), "inf"), "1995-06-01", datetime.date(1995, 6, 1), [1]),
]
RELATIONS = ["P19", "BORN IN", "height", "spouse", "date", "place", "weight", None, 7]


def drawn_question(random):
    """Any values for the parts of a fact, one of which is the blank, or two where chance has it so."""
    count = random.choice([0, 0, 1, 2])
    pairs = [part for _ in range(count) for part in (random.choice(RELATIONS), random.choice(PARTS))]
    parts = [random.choice(PARTS[:6]), random.choice(RELATIONS), random.choice(PARTS), *pairs]
    for _ in range(random.choice([1, 1, 1, 1, 0, 2])):
        parts[random.randrange(len(parts))] = "?"
    return (*parts[:3], [tuple(parts[at : at + 2]) for at in range(3, len(parts), 2)])


def test_questions_asked_together_are_what_each_is_alone(towns):
    """Whatever a program gives: the same tables, the same words, and the same refusals."""
    random, names = Random(3), NameLookup(towns)
    questions = [drawn_question(random) for _ in range(600)]
    together = ask_each(towns, questions, names)
    resolved = 0
    for question, found in zip(questions, together, strict=True):
        (alone,) = ask_each(towns, [question], names)
        if isinstance(alone, UsageError):
            assert str(found) == str(alone)
            continue
        resolved += 1
        assert found.table == alone.table
        for name in ("position", "kind", "relation", "text"):
            assert getattr(found, name) == getattr(alone, name)
        assert (found.tried is None) == (alone.tried is None)
        assert found.tried is None or found.tried.tolist() == alone.tried.tolist()
    assert resolved > 50


def test_a_qualifier_is_cut_where_a_relation_ends():
    graph = graph_from_facts({"train": [("a", "r", "b", [("x=y", "c"), ("when", 3)])]})
    names = NameLookup(graph)
    assert pair_from_text("when=3", names) == ("when", "3")
    assert pair_from_text("x=y=c", names) == ("x=y", "c")
    assert pair_from_text("?=a=b", names) == ("?", "a=b")
    assert pair_from_text("when=?", names) == ("when", "?")
    with pytest.raises(UsageError, match="'when' is not a qualifier"):
        pair_from_text("when", names)


def test_the_filler_of_a_hidden_number_suits_a_log_scale(towns):
    assert ask(towns, "p0", "height", "?").table.tail_number.tolist() == [1.0]
    assert np.log(ask(towns, "p0", "height", "?").table.tail_number)[0] == 0.0
