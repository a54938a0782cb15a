"""Grouped questions: every distinct question once an epoch, labels never made and yet exact, few shapes of steps."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch
import torch.nn.functional as functional
from torch import nn

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.batches.questions import Grouping, QuestionGroups
from hynt.formats.from_python import graph_from_facts
from hynt.models.contract import EncodedQuestion, Entities
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.losses import TrueAnswers, binary_loss, true_answers
from tests.models.small_models import facts_of
from tests.training.small_graph import small_graph


def tensors(graph, literals=False):
    table = graph.split("train")
    known = distinct_literals(table) if literals else None
    return FactTensors.from_table(table, graph.vocabulary, NumberScaling.fit([table], graph.vocabulary), literals=known)


def obvious_groups(graph, grouping, literals):
    """Questions as Python sees them: a dictionary from what is visible to the answers."""
    found = defaultdict(set)
    for fact in graph.split("train").facts(graph.vocabulary):
        pairs = fact.qualifiers if grouping.qualifiers else ()
        number = not isinstance(fact.tail, str)
        if number and not literals:
            continue
        seen = tuple(sorted(map(repr, pairs)))
        if grouping.heads:
            found["head", None, fact.relation, repr(fact.tail), seen].add(fact.head)
        if grouping.tails:
            found["tail", fact.head, fact.relation, None, seen].add(getattr(fact.tail, "literal", fact.tail))
        for index, pair in enumerate(pairs if grouping.qualifier_values else ()):
            if literals or isinstance(pair.value, str):
                rest = tuple(sorted(map(repr, pairs[:index] + pairs[index + 1 :])))
                value = getattr(pair.value, "literal", pair.value)
                found["value", fact.head, fact.relation, repr(fact.tail), rest, pair.relation].add(value)
    return found


@pytest.mark.parametrize("literals", [False, True])
@pytest.mark.parametrize(
    "grouping",
    [Grouping(), Grouping(qualifiers=False), Grouping(heads=False), Grouping(tails=False, qualifier_values=1.0)],
)
def test_groups_are_those_a_dictionary_makes(grouping, literals):
    graph = small_graph(people=30)
    groups = QuestionGroups.of(tensors(graph, literals), grouping)
    expected = obvious_groups(graph, grouping, literals)
    assert sorted(groups.counts().tolist()) == sorted(map(len, expected.values()))
    assert len(groups) == len(expected)
    last = graph.vocabulary.entity_count + groups.facts.sizes.literals
    assert int(groups.answers.min()) >= 0
    assert int(groups.answers.max()) < last
    # The fact that stands for a question holds one of its answers where the blank is.
    slots = {0: groups.facts.head, 2: groups.facts.tail_entity}
    for row, position, start, end in zip(
        groups.row.tolist(),
        groups.position.tolist(),
        groups.offsets.tolist(),
        groups.offsets.tolist()[1:],
        strict=False,
    ):
        if position in slots:
            own = int(slots[position][row])
            own -= own > groups.facts.sizes.mask_entity
            assert own in groups.answers[start:end].tolist()


def test_the_order_of_qualifiers_makes_no_new_question():
    pairs = [("in", "x"), ("by", "y")]
    graph = graph_from_facts({"train": [("a", "r", "b", pairs), ("a", "r", "c", pairs[::-1]), ("a", "r", "d")]})
    groups = QuestionGroups.of(tensors(graph), Grouping(heads=False))
    assert sorted(groups.counts().tolist()) == [1, 2]
    assert sorted(groups.members.tolist()) == [1, 2]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_labels_written_out(smoothing):
    torch.manual_seed(0)
    logits = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    true = TrueAnswers(torch.tensor([0, 0, 2, 0]), torch.tensor([1, 4, 6, 1]), torch.tensor([True, True, True, False]))
    labels = torch.zeros(3, 7, dtype=torch.float64)
    labels[[0, 0, 2], [1, 4, 6]] = 1.0
    if smoothing:
        labels = (1 - smoothing) * labels + 1 / 7
        torch.testing.assert_close(labels.sum(1), torch.tensor([2.8, 1.0, 1.9], dtype=torch.float64))
    found = binary_loss(logits, true, smoothing)
    expected = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
    torch.testing.assert_close(found, expected.float(), rtol=1e-6, atol=1e-6)
    outer = torch.tensor([0.5, 2.0, -1.0])
    (mine,) = torch.autograd.grad((found * outer).sum(), logits)
    (slow,) = torch.autograd.grad((expected * outer).sum(), logits)
    torch.testing.assert_close(mine, slow, rtol=1e-6, atol=1e-7)


def test_answers_come_end_to_end_and_filler_rows_have_none():
    offsets, answers = torch.tensor([0, 2, 3, 6]), torch.tensor([10, 11, 20, 30, 31, 32])
    found = true_answers(torch.tensor([2, 1, 0, 2]), torch.tensor([1.0, 0.0, 1.0, 1.0]), offsets, answers, 10)
    real = found.is_real.tolist()
    assert real == [True] * 8 + [False] * 2
    assert found.row.tolist()[:8] == [0, 0, 0, 2, 2, 3, 3, 3]
    assert found.candidate.tolist()[:8] == [30, 31, 32, 10, 11, 30, 31, 32]


class Plain(nn.Module):
    """Scores entities by a row of a table for the hidden position and relation: enough to run the stream."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.table = nn.Parameter(torch.randn(sizes.relations + 1, sizes.entities) * 0.1)

    def read(self, batch):
        return EncodedQuestion(self.table[batch.relation], batch.relation)

    def score(self, question, candidates):
        assert isinstance(candidates, Entities)
        return question.encoded


def asked_in(stream, seed, epoch):
    plan, found = stream.epoch(seed, epoch), []
    for index in range(len(plan)):
        items = plan.items(index)
        questions, weights = items.tensors
        assert len(questions) == items.shape.pieces.layout.rows
        found += questions[weights > 0].tolist()
    return found


def test_every_question_comes_once_an_epoch_in_another_order():
    facts = facts_of([0] * 400 + [1] * 200 + [2] * 7 + [3, 9, 358], seed=3)
    stream = GroupedQuestions(facts, 16, Grouping(), 0.1)
    first, second = asked_in(stream, 5, 0), asked_in(stream, 5, 1)
    assert sorted(first) == sorted(second) == list(range(len(stream.groups)))
    assert first != second
    assert first == asked_in(stream, 5, 0)
    model = Plain(facts.sizes)
    plan = stream.epoch(5, 0)
    counted = 0.0
    for index in range(len(plan)):
        items = plan.items(index)
        loss = stream.loss_for(items.shape)(model, items.tensors)
        assert torch.isfinite(loss.total)
        counted += float(loss.counts)
    assert counted == stream.item_count == len(stream.groups)
    shapes = {plan.items(index).shape for index in range(len(plan))}
    assert len(shapes) <= 5, "a step is compiled for each shape"
    assert any(stream.is_common(shape) for shape in shapes)


def test_values_of_qualifiers_are_asked_as_often_as_said():
    facts = facts_of([2] * 300, seed=4)
    whole = GroupedQuestions(facts, 64, Grouping(qualifier_values=1.0), 0.0)
    half = GroupedQuestions(facts, 64, Grouping(qualifier_values=0.5), 0.0)
    none = GroupedQuestions(facts, 64, Grouping(), 0.0)
    every, triplets = len(asked_in(whole, 0, 0)), len(asked_in(none, 0, 0))
    assert every == len(whole.groups)
    counts = [len(asked_in(half, 0, epoch)) for epoch in range(6)]
    assert len(set(counts)) > 1
    middle = triplets + 0.5 * (every - triplets)
    assert all(abs(count - middle) < 0.1 * every for count in counts)
    kept = half.groups.position[torch.tensor(sorted(asked_in(half, 0, 0)))]
    assert int((kept <= 2).sum()) == triplets, "a question about the triplet is never left out"


def test_filler_is_never_felt_and_the_loss_compiles_in_one_piece():
    facts = facts_of([0] * 21 + [1] * 9, seed=6)
    model = Plain(facts.sizes)
    streams = [GroupedQuestions(facts, size, Grouping(), 0.1) for size in (6, 7, 8, 9)]
    stream, items = next(
        (stream, items)
        for stream in streams
        for items in map(stream.epoch(0, 0).items, range(4))
        if bool((items.tensors[1] == 0).any())
    )
    questions, weights = items.tensors
    plain = stream.loss_for(items.shape)
    capacities = torch.tensor([p.capacity for p in items.shape.pieces.pieces for _ in range(p.rows)])
    other = torch.where(weights == 0, questions[weights > 0][capacities[weights > 0] == 0][0], questions)
    torch.testing.assert_close(plain(model, (questions, weights)).total, plain(model, (other, weights)).total)
    compiled = torch.compile(plain, dynamic=False, fullgraph=True, backend="aot_eager")
    gradients = []
    for loss in (plain, compiled):
        model.zero_grad()
        loss(model, items.tensors).total.backward()
        gradients.append(model.table.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1])
