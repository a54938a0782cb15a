"""Random Freebase dumps: mediators become the facts that a slow and obvious reference makes of them."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hynt.errors import DataError
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.fact import Fact, Number, Qualifier
from tests.creation.builds import balanced, facts_of, ids, keys_of
from tests.creation.sources.test_freebase import YEAR, build, triple

TOPICS = [f"m.t{n}" for n in range(5)]
INSIDE = TOPICS[:3]
NODES = [f"m.n{n}" for n in range(4)]
LINKS = ["x.y.first", "x.y.second"]
PROPERTIES = {"a.b.who": TOPICS, "a.b.what": TOPICS, "a.b.size": ['"1"', '"2"'], "a.b.year": [f'"1999"^^{YEAR}']}
SCHEMA = [
    triple("a.b", "freebase.type_hints.mediator", '"true"'),
    triple("a.b.size", "type.property.expected_type", "type.int"),
]

TRIPLES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TOPICS), st.sampled_from(LINKS), st.sampled_from(NODES + TOPICS)),
        st.sampled_from(sorted(PROPERTIES)).flatmap(
            lambda name: st.tuples(st.sampled_from(NODES), st.just(name), st.sampled_from(PROPERTIES[name]))
        ),
    ),
    unique=True,
    max_size=25,
)


def value_of(token):
    if not token.startswith('"'):
        return token
    unit = "date" if "^^" in token else ""
    return Number(float(token.split('"')[1]), token, unit)


def mediated(triples):
    """The facts, link by link."""
    held = defaultdict(list)
    for subject, predicate, value in triples:
        if predicate in PROPERTIES:
            held[subject].append((predicate, value_of(value)))
    facts, links = [], defaultdict(list)
    for head, relation, value in triples:
        if relation not in LINKS or head not in INSIDE:
            continue
        if value in NODES and held[value]:
            links[relation].append((head, value))
        elif value in INSIDE:
            facts.append(Fact(head, relation, value))

    def usable(value, head):
        return isinstance(value, Number) or (value in INSIDE and value != head)

    for link, pairs in links.items():
        coverage, kinds = Counter(), defaultdict(list)
        for head, node in pairs:
            found = {name for name, value in held[node] if usable(value, head)}
            coverage.update(found)
            for name, value in held[node]:
                if name in found:
                    kinds[name].append(value)
        if not coverage:
            continue
        primary = min(
            coverage,
            key=lambda name: (
                isinstance(kinds[name][0], Number) and kinds[name][0].unit == "date",
                -coverage[name],
                isinstance(kinds[name][0], Number),
                name,
            ),
        )
        for head, node in pairs:
            for name, value in held[node]:
                if name == primary and usable(value, head):
                    others = {
                        Qualifier(other, held_value)
                        for other, held_value in held[node]
                        if other != primary and usable(held_value, head)
                    }
                    facts.append(Fact(head, f"{link},{primary}", value, tuple(others)))
    return list({fact.key(): fact for fact in facts}.values())


@settings(max_examples=30)
@given(TRIPLES)
def test_the_same_as_a_slow_reference(tmp_path_factory, triples):
    folder = tmp_path_factory.mktemp("random")
    path = folder / "dump.nt"
    path.write_text("\n".join([*SCHEMA, *(triple(*held) for held in triples)]) + "\n", encoding="utf-8")
    expected = mediated(triples)
    options = {"entities": ids(folder, *INSIDE), "assembly": AssemblyPolicy()}
    if not expected:
        with pytest.raises(DataError, match="there are no facts"):
            build(path, **options)
        return
    graph, told = build(path, **options)
    assert keys_of(facts_of(graph)) == keys_of(expected)
    for name in ("lines", "facts", "qualifiers"):
        assert balanced(told[name])
