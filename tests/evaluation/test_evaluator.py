"""The whole evaluation equals the oracle, whatever the tile, the chunk and the memory; and says what went wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.batches.fact_tensors import FactTensors
from hynt.errors import DataError, UsageError
from hynt.evaluation import evaluation_pass as sitting
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import columns
from hynt.models.contract import EVERYWHERE, Position, Task
from hynt.models.hynt import Hynt, HyntSettings
from tests.evaluation.scripted_model import ScriptedModel, asked, random_graph, scaling_of, scripted_code
from tests.oracle.plain_facts import component
from tests.oracle.ranking_oracle import known_answers, metrics, rank


def oracle_ranks(graph, plain, task, triplet_only, ties):
    """(ranks, candidate counts) of a task's questions, one by one."""
    found, counts = [], []
    size = graph.vocabulary.entity_count if task == "link" else graph.vocabulary.relation_count
    for fact in plain["test"]:
        for position in range(3 if triplet_only else 3 + 2 * len(fact[3])):
            answer = component(fact, position)
            if (position % 2 == 1) != (task == "relation") or isinstance(answer, float):
                continue
            code = scripted_code(graph, fact, position)
            known = set(known_answers(plain, fact, position))
            scores = [float((code * 31 + candidate * 17) % 7) for candidate in range(size)]
            found.append(rank(scores, answer, known, ties))
            counts.append(size - len(known - {answer}))
    return found, counts


@pytest.mark.parametrize("seed", range(25))
def test_metrics_equal_the_oracle(seed):
    graph, plain = random_graph(seed)
    ties = ("realistic", "hynt")[seed % 2]
    mapping = asked(ScriptedModel(graph), graph, ties=ties, rows=1 + seed % 7).to_mapping()
    for task in ("link", "relation"):
        for scope in ("triplet", "all"):
            expected = metrics(*oracle_ranks(graph, plain, task, scope == "triplet", ties))
            assert mapping[task][scope] == pytest.approx(expected)


def test_numbers_equal_the_oracle_in_both_units():
    graph, plain = random_graph(3)
    found = asked(ScriptedModel(graph), graph)
    scaling = scaling_of(graph)
    errors, scaled_errors = [], []
    for fact in plain["test"]:
        for position in range(2, 3 + 2 * len(fact[3])):
            truth = component(fact, position)
            if not isinstance(truth, float):
                continue
            relation = fact[1] if position == 2 else fact[3][(position - 3) // 2][0]
            guess = scripted_code(graph, fact, position) % 11 / 10 * scaling.width[relation] + scaling.offset[relation]
            errors.append(guess - truth)
            scaled_errors.append((guess - truth) / scaling.width[relation])
    numbers = found.per_question["number"]
    assert numbers.predicted - numbers.truth == pytest.approx(np.array(errors), rel=1e-5, abs=1e-5)
    mapping = found.to_mapping()["number"]
    assert mapping["all"]["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(scaled_errors))), rel=1e-5)
    assert mapping["all"]["count"] == len(errors) == sum(row["count"] for row in mapping["per_relation"])


def same(one, other) -> bool:
    return all(
        np.array_equal(column, columns(other.per_question[task])[name])
        for task, questions in one.per_question.items()
        for name, column in columns(questions).items()
    )


def test_tiles_and_chunks_change_nothing(monkeypatch):
    graph, _ = random_graph(11)
    whole = asked(ScriptedModel(graph), graph)
    for rows in (1, 2, 5, 1000):
        assert same(whole, asked(ScriptedModel(graph), graph, rows=rows))
    monkeypatch.setattr(sitting, "SCORES_AT_ONCE", 40)  # tiles of 8 rows see 5 candidates at a time
    frugal = Measured(graph)
    assert same(whole, asked(frugal, graph, rows=8))
    assert 0 < frugal.most <= 40


class Measured(ScriptedModel):
    """Remembers the most scores it gave at once."""

    most = 0

    def score(self, question, candidates):
        found = super().score(question, candidates)
        self.most = max(self.most, found.numel())
        return found


class Forgetful(ScriptedModel):
    """Runs out of memory above some rows."""

    fits = 3

    def score(self, question, candidates):
        if len(question.relation) > self.fits:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return super().score(question, candidates)


@pytest.mark.slow
def test_running_out_of_memory_gives_the_same_ranks_and_is_reported():
    graph, _ = random_graph(5)
    model = Forgetful(graph)
    found = asked(model, graph, rows=16)
    assert same(found, asked(ScriptedModel(graph), graph, rows=16))
    sizes = found.protocol["memory_back_off"]
    assert {"rows": 2, "capacity": 0} in sizes
    assert {one["rows"] for one in sizes} == {8, 4, 2}
    assert model.largest_batch == 16


def test_memory_that_holds_no_question_at_all_is_an_error():
    graph, _ = random_graph(5)
    model = Forgetful(graph)
    model.fits = 0
    with pytest.raises(UsageError, match="memory ran out with a single question"):
        asked(model, graph)


def test_other_errors_are_not_taken_for_full_memory():
    graph, _ = random_graph(5)
    model = ScriptedModel(graph)
    model.read = lambda batch: (_ for _ in ()).throw(RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        asked(model, graph)


def small_hynt(graph):
    torch.manual_seed(0)
    settings = HyntSettings(
        dimension=16, context_heads=2, prediction_heads=2, context_feedforward=32, prediction_feedforward=32
    )
    train = FactTensors.from_table(graph.split("train"), graph.vocabulary, scaling_of(graph))
    return Hynt.build(train.sizes, train, settings)


def test_hynt_is_evaluated_without_dropout_and_left_as_it_was():
    graph, _ = random_graph(5)
    model = small_hynt(graph).train()
    torch.set_float32_matmul_precision("high")
    try:
        first, second = asked(model, graph), asked(model, graph)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert same(first, second)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.slow
def test_hynt_backs_off_to_identical_ranks():
    graph, _ = random_graph(8, sizes=(60, 5, 60), entities=40)
    model = small_hynt(graph)
    whole = asked(model, graph, rows=32)
    score = model.score

    def forgetful(question, candidates):
        if len(question.relation) > 8:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return score(question, candidates)

    model.score = forgetful
    again = asked(model, graph, rows=32)
    for task in ("link", "relation"):
        assert np.array_equal(whole.per_question[task].rank(), again.per_question[task].rank())
    assert whole.per_question["number"].predicted == pytest.approx(again.per_question["number"].predicted, abs=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_stops_and_names_the_question(bad):
    graph, _ = random_graph(2)
    model = ScriptedModel(graph)
    score = model.score
    model.score = lambda question, candidates: score(question, candidates) + bad
    with pytest.raises(DataError, match=r"test fact 1, head: the model's answer to \? · r") as caught:
        asked(model, graph, tasks=["link"])
    assert "is not a finite number" in str(caught.value)
    assert str(caught.value).endswith("Take an earlier checkpoint, or train again with a lower learning rate.")
    with pytest.raises(DataError, match="is not a finite number"):
        asked(model, graph, tasks=["number"])


def test_only_what_the_model_answers_is_asked_and_the_rest_is_counted():
    graph, _ = random_graph(2)
    everything = asked(ScriptedModel(graph), graph)
    model = ScriptedModel(graph)
    model.answers = frozenset({(Task.LINK, Position.TAIL), (Task.LINK, Position.HEAD)})
    found = asked(model, graph)
    assert list(found.per_question) == ["link"]
    counts = {task: len(questions) for task, questions in everything.per_question.items()}
    assert everything.protocol["unanswered"] == {}
    assert found.protocol["unanswered"] == counts | {"link": counts["link"] - len(found.per_question["link"])}
    assert found.to_mapping()["link"]["all"] == everything.to_mapping()["link"]["triplet"]


def test_type_constraints_rank_among_what_train_holds_there():
    graph, plain = random_graph(4)
    found = asked(ScriptedModel(graph), graph, type_constrained=True)
    constrained = found.type_constrained
    for index in range(len(constrained)):
        fact, position = plain["test"][constrained.row[index]], int(constrained.position[index])
        known = set(known_answers(plain, fact, position))
        if position < 3:
            allowed = {other[position] for other in plain["train"] if other[1] == fact[1]}
        else:
            relation = fact[3][(position - 3) // 2][0]
            allowed = {value for other in plain["train"] for name, value in other[3] if name == relation}
        answer = component(fact, position)
        excluded = (known | (set(range(graph.vocabulary.entity_count)) - allowed)) - {answer}
        code = scripted_code(graph, fact, position)
        scores = [float((code * 31 + candidate * 17) % 7) for candidate in range(graph.vocabulary.entity_count)]
        assert constrained.rank()[index] == rank(scores, answer, excluded)
        assert constrained.candidates[index] == len(allowed - known - {answer}) + 1
    mapping = found.to_mapping()
    assert mapping["link_type_constrained"]["all"]["mean_rank"] <= mapping["link"]["all"]["mean_rank"]


def test_the_protocol_stands_beside_the_numbers():
    graph, _ = random_graph(2)
    described = {"model": "scripted", "seed": 7, "trained_on": "train", "scaled_on": "train"}
    protocol = asked(ScriptedModel(graph), graph, ties="hynt", described=described).to_mapping()["protocol"]
    assert protocol | described == protocol
    assert (protocol["split"], protocol["filter"], protocol["ties"]) == ("test", "train+valid+test", "hynt")
    assert protocol["candidates"] == {"entities": 9, "relations": 4}


def test_progress_reaches_the_end():
    graph, _ = random_graph(2)
    heard = []
    asked(ScriptedModel(graph), graph, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (len(Evaluator(graph, scaling_of(graph)).questions),) * 2


def test_bad_calls_are_refused():
    graph, _ = random_graph(2)
    with pytest.raises(UsageError, match="unknown tie rule 'best'"):
        asked(ScriptedModel(graph), graph, ties="best")
    with pytest.raises(UsageError, match="this graph has no split 'tests'"):
        asked(ScriptedModel(graph), graph, split="tests")


def test_every_position_of_every_task_is_asked():
    graph, plain = random_graph(2)
    found = asked(ScriptedModel(graph), graph)
    total = sum(3 + 2 * len(fact[3]) for fact in plain["test"])
    assert sum(len(questions) for questions in found.per_question.values()) == total
    assert len(EVERYWHERE) == 7
