"""Folds: every fact is held out once, and no fold's model has to do without an entity or a relation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hynt.auditing.folds import deal, fold_parts, name_label
from hynt.errors import UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import concatenate


def whole(facts):
    graph = graph_from_facts({"train": facts})
    return graph, concatenate(list(graph.splits.values()))


def dealt(graph, table, count=3, together=(), seed=0, in_training=None, is_judged=None):
    everything = np.ones(len(table), dtype=np.bool_)
    return deal(
        table,
        graph.vocabulary,
        everything if in_training is None else in_training,
        everything if is_judged is None else is_judged,
        count,
        together,
        seed,
    )


def names_of(table, vocabulary, rows):
    """The entities and relations of some facts, the slow way."""
    found = set()
    for fact in table.take(np.flatnonzero(rows)).facts(vocabulary):
        values = [fact.head, fact.tail, *(pair.value for pair in fact.qualifiers)]
        found |= {value for value in values if isinstance(value, str)}
        found |= {("relation", fact.relation), *(("relation", pair.relation) for pair in fact.qualifiers)}
    return found


FACTS = st.lists(
    st.tuples(
        st.integers(0, 7).map("h{}".format),
        st.sampled_from("rst"),
        st.integers(0, 9).map("e{}".format),
        st.lists(st.tuples(st.sampled_from("qw"), st.integers(0, 5).map("v{}".format)), max_size=2),
    ),
    min_size=2,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(FACTS, st.integers(2, 5), st.sampled_from([(), ("head", "relation")]), st.integers(0, 3))
def test_every_name_stays_in_every_training_part(facts, count, together, seed):
    graph, table = whole(facts)
    folds = dealt(graph, table, count, together, seed)
    everything = np.ones(len(table), dtype=np.bool_)
    names = names_of(table, graph.vocabulary, everything)
    for fold in range(count):
        training = folds.training(everything, fold)
        assert names_of(table, graph.vocabulary, training) == names
        judged = folds.is_judged & (folds.fold == fold)
        assert not (judged & training).any()
    # What is not judged is not held out either, and holds a name that had to stay.
    assert (folds.is_judged == folds.is_held).all()
    entities, relations = graph.vocabulary.entities, [relation.name for relation in graph.relations]
    for row in np.flatnonzero(~folds.is_judged):
        kept = name_label(int(folds.missing[row]), entities, relations)
        group = np.ones(len(table), np.bool_)
        for part in together:
            column = getattr(table, part)
            group &= column == column[row]
        assert kept in {
            name if isinstance(name, str) else name[1]
            for name in names_of(table, graph.vocabulary, group if together else np.arange(len(table)) == row)
        }


@settings(max_examples=30, deadline=None)
@given(FACTS, st.integers(0, 3))
def test_a_series_stays_together(facts, seed):
    graph, table = whole(facts)
    folds = dealt(graph, table, 3, ("head", "relation"), seed)
    for head, relation in set(zip(table.head.tolist(), table.relation.tolist(), strict=True)):
        rows = (table.head == head) & (table.relation == relation)
        assert len(set(folds.fold[rows].tolist())) == 1
        assert len(set(folds.is_judged[rows].tolist())) == 1


def test_names_in_one_place_are_kept_in_training_and_said():
    facts = [(f"a{i % 4}", "r", f"b{i % 3}") for i in range(12)] + [("a0", "r", "nowhere else")]
    graph, table = whole(facts)
    folds = dealt(graph, table)
    (row,) = np.flatnonzero(~folds.is_judged)
    assert graph.vocabulary.entities[table.tail_entity[row]] == "nowhere else"
    assert name_label(int(folds.missing[row]), graph.vocabulary.entities, ["r"]) == "nowhere else"
    assert all(folds.training(np.ones(len(table), np.bool_), fold)[row] for fold in range(3))


def test_relations_are_kept_as_well():
    facts = [(f"a{i % 4}", "r", f"b{i % 3}") for i in range(12)] + [("a0", "only here", "b0")]
    graph, table = whole(facts)
    folds = dealt(graph, table)
    (row,) = np.flatnonzero(~folds.is_judged)
    relations = [relation.name for relation in graph.relations]
    assert name_label(int(folds.missing[row]), graph.vocabulary.entities, relations) == "only here"


def test_folds_are_even_and_follow_the_seed():
    graph, table = whole([(f"a{i % 40}", "r", f"b{i % 37}", [("q", float(i))]) for i in range(2000)])
    first, again, other = (dealt(graph, table, 5, seed=seed).fold for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).mean() > 0.5
    assert np.bincount(first).min() > 330


def test_a_fact_that_stands_in_another_split_too_is_hidden_there():
    facts = [(f"a{i % 4}", "r", f"b{i % 3}") for i in range(12)]
    graph = graph_from_facts({"train": facts, "test": facts[:3]})
    table = concatenate(list(graph.splits.values()))
    trained, judged = np.arange(len(table)) < 12, np.arange(len(table)) >= 12
    folds = dealt(graph, table, 3, in_training=trained, is_judged=judged)
    assert folds.needs_fold[12:].all()
    for row in range(12, 15):
        assert folds.is_held[row - 12]
        assert folds.fold[row] == folds.fold[row - 12]


def test_facts_of_other_splits_need_names_that_training_has_met():
    train = [(f"a{i % 4}", "r", f"b{i % 3}") for i in range(12)]
    graph = graph_from_facts({"train": train, "test": [("a0", "r", "a1"), ("a1", "r", "stranger")]})
    table = concatenate(list(graph.splits.values()))
    trained = np.arange(len(table)) < 12
    folds = dealt(graph, table, 3, in_training=trained, is_judged=~trained)
    assert folds.is_judged.tolist() == [False] * 12 + [True, False]
    assert not folds.needs_fold[12]
    assert not folds.is_held.any()
    assert graph.vocabulary.entities[int(folds.missing[13])] == "stranger"


@pytest.mark.parametrize(
    ("text", "parts"), [("fact", ()), ("head,relation", ("head", "relation")), ("relation, head", ("head", "relation"))]
)
def test_fold_by(text, parts):
    assert fold_parts(text) == parts


@pytest.mark.parametrize("text", ["", "heads", "head,head", "fact,head"])
def test_fold_by_refuses(text):
    with pytest.raises(UsageError, match="head,relation keeps a time series together") as caught:
        fold_parts(text)
    assert caught.value.where == "--fold-by"


def test_one_fold_is_refused():
    graph, table = whole([("a", "r", "b"), ("a", "r", "c")])
    with pytest.raises(UsageError, match="Make at least 2"):
        dealt(graph, table, 1)
