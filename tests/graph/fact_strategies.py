"""Random facts for property tests: few names, so that facts meet, and every kind of value."""

from __future__ import annotations

from hypothesis import strategies as st

from hynt.graph.fact import Fact, Qualifier, number

ENTITY_RELATIONS = ("capital", "member of", "role")
NUMBER_RELATIONS = ("population", "point in time")

entities = st.sampled_from([f"place/{index}" for index in range(8)] + ["日本", "a b", "“quoted”"])
numbers = st.one_of(
    st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 1e300])
).map(number)
pairs = st.one_of(
    st.tuples(st.sampled_from(ENTITY_RELATIONS), entities), st.tuples(st.sampled_from(NUMBER_RELATIONS), numbers)
)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    relation, tail = draw(pairs)
    return Fact(draw(entities), relation, tail, tuple(Qualifier(*pair) for pair in draw(st.lists(pairs, max_size=4))))
