"""Random dumps give the same graph, and the same counts, as a slow and obvious reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.fact import Fact, Qualifier
from tests.creation.builds import balanced, facts_of, ids, keys_of, make
from tests.creation.slow_reference import graph_of
from tests.creation.sources.wikidata_lines import (
    coordinate_value,
    dump,
    entity,
    item_value,
    quantity_value,
    snak,
    statement,
    string_value,
    time_value,
)

VALUES = st.one_of(
    st.integers(1, 12).map(lambda n: item_value(f"Q{n}")),
    st.builds(
        quantity_value,
        st.sampled_from(["+1", "-2.5", "+1000000", "0", "x"]),
        st.sampled_from(["1", "Q11573", "Q174728", "Q828224", "Q11570", "Q999999999"]),
    ),
    st.builds(
        time_value,
        st.sampled_from(["+2000-01-01T00:00:00Z", "-0500-00-00T00:00:00Z", "+1900-02-30T00:00:00Z"]),
        st.sampled_from([6, 9, 11]),
        julian=st.booleans(),
    ),
    st.builds(coordinate_value, st.sampled_from([0.5, -90.0, 45]), st.sampled_from([0.25, 180.0])),
    st.just(string_value("text")),
)
QUALIFIERS = st.lists(
    st.builds(snak, st.sampled_from(["P11", "P12"]), VALUES) | st.just(snak("P11", None, "novalue")), max_size=4
)
STATEMENTS = st.lists(
    st.builds(
        statement,
        st.sampled_from(["P1", "P2", "P3"]),
        VALUES,
        rank=st.sampled_from(["normal", "preferred", "deprecated"]),
        qualifiers=QUALIFIERS,
    ),
    max_size=4,
)


@settings(max_examples=40)
@given(st.lists(STATEMENTS, min_size=1, max_size=6), st.booleans(), st.none() | st.integers(0, 2))
def test_the_same_as_a_slow_reference(tmp_path_factory, statements, everything, limit):
    folder = tmp_path_factory.mktemp("random")
    data = dump([entity(f"Q{n}", held) for n, held in enumerate(statements, start=1)])
    wanted = None if everything else {"Q1", "Q3", "Q11"}
    expected, dropped = graph_of(data, wanted, max_qualifiers=limit)
    options = {"max_qualifiers": limit, "assembly": AssemblyPolicy()}
    if not everything:
        options["entities"] = ids(folder, *wanted)
    if not expected:
        with pytest.raises(DataError, match="there are no facts"):
            make(folder, data, **options)
        return
    # A relation may hold entities and numbers here, and its numbers are then filed under a name of their own.
    graph, told = make(folder, data, **options)
    assert keys_of(_plain(facts_of(graph))) == keys_of(expected)
    assert told["facts"]["dropped"].get("duplicate", 0) == dropped["duplicate"]
    assert sum(told["facts"]["dropped"].values()) == sum(dropped.values())
    assert all(balanced(told[name]) for name in ("lines", "facts", "qualifiers"))


def _plain(facts):
    def name(text):
        return text.removesuffix(" (number)")

    return [
        Fact(
            fact.head,
            name(fact.relation),
            fact.tail,
            tuple(Qualifier(name(held), value) for held, value in fact.qualifiers),
        )
        for fact in facts
    ]
