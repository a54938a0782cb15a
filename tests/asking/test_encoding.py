"""Whole columns of written questions become what `ask` makes of each of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from hynt.asking.columns import AskedFacts
from hynt.asking.encoding import QuestionEncoder
from hynt.asking.question import ask
from hynt.asking.refusals import within_reach
from hynt.asking.written import WrittenParts
from hynt.completion.question_files import open_questions
from hynt.errors import UsageError
from hynt.graph.lookup import NameLookup

entities = some.sampled_from(
    ["p1", "Person 2", "PERSON 3", "t0", "Springfield", "springfield", "Nobody", "?", "Shelbyville", "1995", " "]
)
relations = some.sampled_from(["P19", "born in", "BORN IN", "height", "spouse", "P26", "date", "place", "?", "weight"])
numbers = some.sampled_from(
    [
        1.7,
        170,
        {"number": 170, "unit": "cm"},
        {"number": 1.7, "unit": "m"},
        {"number": 3, "unit": "kg"},
        {"date": "1995-06"},
        {"number": 1995.5, "unit": "date"},
        "1.8 m",
        "1995-06-01",
    ]
)
values = some.one_of(entities, numbers)
pairs = some.lists(some.tuples(relations, values).map(list), max_size=3)
drawn = some.fixed_dictionaries({"head": entities, "relation": relations, "tail": values, "qualifiers": pairs})


def _texts(problems):
    return {row: str(problem) for row, problem in problems.items()}


def written(lines, path):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return list(open_questions(path).batches(10_000))


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(some.lists(drawn, min_size=1, max_size=8), some.booleans())
def test_columns_mean_what_ask_means(towns, tmp_path, lines, explain):
    names = NameLookup(towns)
    (batch,) = written(lines, tmp_path / "questions.jsonl")
    batch = batch.questions
    found = QuestionEncoder(towns, names).encode(batch, explain=explain)
    expected, refused = [], {}
    for row in range(len(batch)):
        try:
            expected.append((row, ask(towns, *batch.parts(row), names)))
        except UsageError as problem:
            refused[row] = problem
    order = np.argsort(found.row, kind="stable")
    assert found.row[order].tolist() == [row for row, _ in expected]
    assert sorted(found.refused) == sorted(refused)
    if explain:
        assert _texts(found.refused) == _texts(refused)
    if expected:
        taken, alone = found.asked.take(order.astype(np.int64)), AskedFacts.joined([one for _, one in expected])
        assert taken.table == alone.table
        for name in ("rows", "position", "kind", "relation", "is_tried"):
            assert np.array_equal(getattr(taken, name), getattr(alone, name)), name


def test_every_set_of_blanks_is_counted(towns, tmp_path):
    """Of all 128 sets of components that a fact with two qualifiers can hide, those with one blank are questions."""
    parts = ["p1", "P26", "p2", "place", "t1", "date", {"date": "1995"}]
    lines = []
    for blanks in range(1 << len(parts)):
        one = ["?" if blanks >> place & 1 else part for place, part in enumerate(parts)]
        lines.append({"head": one[0], "relation": one[1], "tail": one[2], "qualifiers": [one[3:5], one[5:7]]})
    (batch,) = written(lines, tmp_path / "questions.jsonl")
    batch = batch.questions
    found = QuestionEncoder(towns, NameLookup(towns)).encode(batch, explain=False)
    assert sorted(found.row.tolist()) == [1 << place for place in range(len(parts))]
    assert len(found.refused) == 128 - len(parts)
    assert {problem.what[:19] for problem in found.refused.values()} == {
        "the question has no",
        *(f"the question has {count} " for count in range(2, 8)),
    }


def test_most_questions_are_resolved_together(towns, tmp_path, monkeypatch):
    """Ids, labels of one entity alone, and numbers in the graph's units need no look at each question."""
    lines = [
        {"head": "Person 2", "relation": "born in", "tail": "?"},
        {"head": "?", "relation": "height", "tail": {"number": 1.7, "unit": "m"}},
        {"head": "p3", "relation": "?", "tail": "Shelbyville"},
        {"head": "p3", "relation": "?", "tail": 1.75},
        {
            "head": "p3",
            "relation": "P26",
            "tail": "p10",
            "qualifiers": [["place", "t1"], ["?", {"number": 3, "unit": "m"}]],
        },
        {"head": "p3", "relation": "spouse", "tail": "p10", "qualifiers": [["date", {"date": "1993"}], ["place", "?"]]},
        {"head": "p3", "relation": "spouse", "tail": "p10", "qualifiers": {"date": "?", "place": "t1"}},
    ]
    (batch,) = written(lines, tmp_path / "questions.jsonl")
    batch = batch.questions
    monkeypatch.setattr(WrittenParts, "cell", None)  # nobody looks at one
    encoder = QuestionEncoder(towns, NameLookup(towns))
    found = encoder.encode(batch, explain=False)
    assert found.row.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert found.asked.position.tolist() == [2, 0, 1, 1, 5, 6, 4]
    assert found.asked.kind.tolist() == [0, 0, 1, 1, 1, 0, 2]


NUMBERS = [1.7, 200, 1e9, -3.5, {"number": 1.7, "unit": "m"}, {"number": 170, "unit": "cm"}, {"date": "1995"}]


def test_hidden_relations_beside_numbers_are_tried_as_alone(predictor, tmp_path):
    """Within reach too: what is tried for a number is what `within_reach` leaves of it."""
    lines = [{"head": "p1", "relation": "?", "tail": one} for one in NUMBERS]
    lines += [
        {"head": "p1", "relation": "P26", "tail": "p2", "qualifiers": [["place", "t1"], ["?", one]]} for one in NUMBERS
    ]
    (batch,) = written(lines, tmp_path / "questions.jsonl")
    batch = batch.questions
    scaling, graph = predictor.loaded.scaling, predictor.graph
    found = QuestionEncoder(graph, predictor.names).encode(batch, scaling, explain=True)
    expected, refused = {}, {}
    for row in range(len(batch)):
        try:
            expected[row] = within_reach(ask(graph, *batch.parts(row), predictor.names), scaling)
        except UsageError as problem:
            refused[row] = str(problem)
    assert {row: str(problem) for row, problem in found.refused.items()} == refused
    assert len(refused) >= 4
    order = np.argsort(found.row)
    alone = AskedFacts.joined([expected[row] for row in sorted(expected)])
    assert found.row[order].tolist() == sorted(expected)
    taken = found.asked.take(order)
    assert taken.table == alone.table
    assert np.array_equal(taken.rows, alone.rows)
    assert taken.is_tried.all()


@pytest.mark.parametrize("explain", [True, False])
def test_unknown_names_are_explained_only_where_it_is_wanted(towns, tmp_path, explain):
    (batch,) = written([{"head": "Persn 2", "relation": "born in", "tail": "?"}], tmp_path / "questions.jsonl")
    (problem,) = QuestionEncoder(towns, NameLookup(towns)).encode(batch.questions, explain=explain).refused.values()
    assert (problem.where, problem.what) == ("head", "the graph has no entity called 'Persn 2'.")
    assert ("Person 2" in problem.advice) == explain
