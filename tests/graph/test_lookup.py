"""Names to ids: exact, by name, in any case; shared names by position; unknown ones with the nearest."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import Meant, UsageError
from hynt.graph.assembly import Assembler
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.fact import fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import _SCANS, LabelIndex, NameLookup, nearest_names
from hynt.graph.vocabulary import Entity

ENTITIES = [
    Entity("Q148", "China", "country"),
    Entity("Q29520", "China", "region"),
    Entity("Q17", "Japan", "country"),
    Entity("Q1490", "Tokyo", "city"),
    Entity("Q183", "Germany"),
]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    facts = [fact("Q148", "P36", "Q1490"), fact("Q17", "P36", "Q1490", [("P17", "Q29520")]), fact("Q183", "P1082", 83)]
    with Assembler(details={entity.name: entity for entity in ENTITIES}) as assembler:
        assembler.encoder.declare_relation(RelationDeclaration("P36", "entity", label="capital"))
        assembler.encoder.declare_relation(RelationDeclaration("P1082", "number", label="population"))
        for one in facts:
            assembler.add(one, "train")
        return assembler.finish().to_graph()


@pytest.mark.parametrize("name", ["Q17", "Japan", "japan", "JAPAN", " Q17", "japan\u00a0"])
def test_an_entity_is_found_by_id_name_or_any_case(graph, name):
    assert graph.vocabulary.entities[NameLookup(graph).entity(name)] == "Q17"


@pytest.mark.parametrize("name", ["P36", "capital", "Capital", "capital "])
def test_a_relation_is_found_by_id_name_or_any_case(graph, name):
    assert graph.relations[NameLookup(graph).relation(name)].name == "P36"


def test_a_shared_name_is_settled_by_the_position(graph):
    lookup = NameLookup(graph)
    assert graph.vocabulary.entities[lookup.entity("China", "head")] == "Q148"
    assert graph.vocabulary.entities[lookup.entity("china", "value")] == "Q29520"
    assert graph.vocabulary.entities[lookup.entity("China", "value", lookup.relation("P17"))] == "Q29520"


@pytest.mark.parametrize("position", [None, "tail"])
def test_a_shared_name_that_stays_open_is_refused_with_the_ids(graph, position):
    with pytest.raises(UsageError) as refused:
        NameLookup(graph).entity("China", position)
    assert str(refused.value) == (
        "2 entities are called 'China'. Give the id of one: Q148 (country, head), Q29520 (region, value)."
    )
    assert refused.value.namesakes == (
        Meant("Q148", "China", "country", ("head",)),
        Meant("Q29520", "China", "region", ("value",)),
    )
    assert refused.value.nearest == ()


def test_an_unknown_name_is_refused_with_the_nearest(graph):
    with pytest.raises(UsageError) as refused:
        NameLookup(graph).entity("Germny")
    assert str(refused.value).startswith(
        "the graph has no entity called 'Germny'. Give an entity's id or name. The nearest are 'Germany'"
    )
    assert refused.value.nearest[0].name == "Germany"
    assert refused.value.namesakes == ()
    with pytest.raises(UsageError, match=r"no relation called 'captal'.*'capital'") as refused:
        NameLookup(graph).relation("captal")
    assert refused.value.nearest[0] == Meant("P36", "capital")
    with pytest.raises(UsageError, match=r"no relation called 'P36b'\. .* The nearest are 'P36'"):
        NameLookup(graph).relation("P36b")
    with pytest.raises(UsageError, match="no entity called ''"):
        NameLookup(graph).entity("")


def test_positions_of_an_entity(graph):
    lookup = NameLookup(graph)
    assert lookup.positions_of(lookup.entity("Q17")) == ("head",)
    assert lookup.positions_of(lookup.entity("Tokyo")) == ("tail",)


def test_nearest_names_are_quick_and_right():
    letters = random.Random(4)
    names = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz ", k=letters.randint(4, 24))) for _ in range(50_000)]
    names[31_415] = "Harvard Law School"
    nearest_names("warm", names)
    start = time.process_time()
    assert nearest_names("havard law scool", names)[0] == "Harvard Law School"
    assert time.process_time() - start < 0.25  # a fifth of it on an idle machine
    assert len(nearest_names("x" * 10_000, names)) <= 5
    assert nearest_names("anything", []) == []


def test_a_longer_or_shorter_form_of_a_name_is_near():
    names = ["Confederate States of America", "United States", "United Airlines", "Bank of America", "Adams, Douglas"]
    assert nearest_names("United States of America", names)[0] == "United States"
    assert nearest_names("United", names)[:2] == ["United States", "United Airlines"]


@given(st.lists(st.sampled_from(["Rome", "rome", "ROME", "Oslo", "Łódź", "łódź", "a b"]), min_size=1, max_size=12))
def test_scanning_and_dictionaries_find_the_same(names):
    for wanted in ("Rome", "rOME", "oslo", "ŁÓDŹ", "a b", "nobody"):
        found = LabelIndex(names)
        answers = [found.carrying(wanted) for _ in range(_SCANS + 2)]
        assert all(answer == answers[0] for answer in answers)
