"""The predictor and the evaluator give the same answer to the same question, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.asking.candidates import CandidateMask
from hynt.asking.question import ask
from hynt.evaluation.evaluator import evaluate
from hynt.evaluation.metrics import KIND_OF_TASK
from hynt.graph.fact import Qualifier
from hynt.graph.fact_table import RELATION_KIND, components
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.scoring import read_tiles

SPLIT = "test"


@pytest.fixture(scope="module")
def evaluation(predictor):
    loaded = predictor.loaded
    return evaluate(loaded.model, loaded.graph, loaded.scaling, SPLIT)


def asked_fact(graph: KnowledgeGraph, row: int, position: int):
    """The question that hides a component of a stored fact, asked with the fact's own ids and numbers."""
    fact = list(graph.facts(SPLIT))[row]
    parts = [*fact[:3], *(part for pair in fact.qualifiers for part in pair)]
    parts[position] = "?"
    pairs = [Qualifier(*parts[at : at + 2]) for at in range(3, len(parts), 2)]
    return ask(graph, *parts[:3], pairs)


def scores_of(predictor, asked) -> np.ndarray:
    """(rows, candidates) the scores of all candidates of one question."""
    found, rows = {}, np.arange(len(asked.table))

    def work(tile):
        made = tile.relations() if asked.kind == RELATION_KIND else tile.entities()
        found.update(zip(tile.which.tolist(), made.numpy(), strict=True))

    position = np.full(len(rows), asked.position)
    read_tiles(predictor.loaded, asked.table, rows, position, predictor.device, work)
    return np.stack([found[row] for row in rows.tolist()])


def test_numbers_are_equal_to_the_last_digit(predictor, evaluation):
    found = evaluation.per_question["number"]
    assert len(found) > 20
    for row, position, value in zip(found.row, found.position, found.predicted, strict=True):
        answer = predictor.answer(asked_fact(predictor.graph, int(row), int(position)), CandidateMask(None, False))[0]
        assert answer.value == value
        assert answer.interval[0] < value < answer.interval[1]


@pytest.mark.parametrize("task", ["link", "relation"])
def test_ranks_are_equal(predictor, evaluation, task):
    """Better and tied candidates, counted from the predictor's scores, are those that the evaluator counted."""
    found, graph = evaluation.per_question[task], predictor.graph
    parts = components(graph.split(SPLIT), graph.vocabulary.relation_is_number)
    assert (parts.kind == KIND_OF_TASK[task]).sum() == len(found)
    compared = 0
    for number in range(len(found)):
        answer = int(found.answer[number])
        asked = asked_fact(graph, int(found.row[number]), int(found.position[number]))
        if asked.tried is not None:
            continue  # a number beside a masked relation: see the test below
        scores = scores_of(predictor, asked)[0]
        others = np.ones(len(scores), dtype=np.bool_)
        others[predictor.known.lookup(asked.table, np.array([asked.position]), asked.kind).answers] = False
        assert (scores[others] > scores[answer]).sum() == found.better[number]
        assert (scores[others] == scores[answer]).sum() == found.ties[number]
        compared += 1
    assert compared > 20


def test_a_relation_beside_a_number_has_the_score_the_evaluator_gave_it(predictor):
    """The evaluator knows the scale of the number, because it knows the answer; the row of that relation is equal."""
    import torch

    from hynt.batches.fact_tensors import FactTensors
    from hynt.batches.masked_batch import mask
    from hynt.evaluation.evaluator import scoring_conditions
    from hynt.evaluation.tiles import Tiling
    from hynt.models.contract import Relations

    loaded, graph = predictor.loaded, predictor.graph
    table = graph.split(SPLIT)
    row = int(np.flatnonzero(table.relation == graph.vocabulary.relation_ids["height"])[0])
    asked = asked_fact(graph, row, 1)
    assert asked.kind == RELATION_KIND
    (at,) = np.flatnonzero(asked.tried == table.relation[row])
    facts = FactTensors.from_table(table, graph.vocabulary, loaded.scaling)
    tiling = Tiling.of(np.array([0]), torch.device("cpu"))
    (tile,) = tiling.tiles
    rows = torch.full((tile.layout.rows,), row)
    with scoring_conditions(loaded.model):
        batch, _ = mask(facts, rows, torch.ones_like(rows), tile.layout)
        scores = loaded.model.score(loaded.model.read(batch), Relations())[0]
    assert np.array_equal(scores_of(predictor, asked)[at], scores.numpy())


def test_asking_again_and_among_others_changes_nothing(predictor, towns):
    first = predictor.predict(head="p2", relation="born in", tail="?").to_dict()
    assert predictor.predict(("Person 2", "P19", "?")).to_dict() == first
    few = predictor.predict(head="p2", relation="born in", tail="?", candidates=["t0", "t1"])
    scores = {answer["id"]: answer["score"] for answer in first["answers"]}
    assert {answer.id: answer.score for answer in few} == {name: scores[name] for name in ("t0", "t1")}
