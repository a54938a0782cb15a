"""What the graph says comes first: every answer begins with the stored facts, and new is only what is probable."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch

from hynt import Run
from hynt.asking.answers import NEW_FROM, Answers, format_probability
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.evaluation.combining import combined
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.graph.fact_table import TAIL, concatenate
from hynt.models.combination import Combination, GroupWeights, Weights
from hynt.models.contract import Position
from hynt.runs.observing import folds_of, without_folds
from hynt.runs.scoring import read_tiles
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")


def test_the_first_line_is_what_the_graph_holds_for_every_capital_of_world(world_run, tmp_path):
    run = load(shutil.copytree(world_run, tmp_path / "run"), "cpu")
    train_facts = list(run.graph.split("train").facts(run.graph.vocabulary))
    capitals = [fact for fact in train_facts if fact.relation == "capital"]
    found = run.predict_many([(fact.head, "capital", "?") for fact in capitals], top=3)
    assert len(capitals) == 119
    entities = run.graph.vocabulary.entity_count
    for fact, answers in zip(capitals, found, strict=True):
        (stored, *_) = answers.stored
        assert (stored.id, stored.splits) == (fact.tail, ("train",))
        assert 1 <= stored.rank <= entities
        first = str(answers).splitlines()[1]
        assert first.startswith(f"  in the graph, train: {stored.text}")
        assert f"rank {stored.rank:,}, probability {stored.probability:.4f}" in first


def test_rank_and_probability_are_those_of_the_whole_list(predictor):
    everything = predictor.predict("p2", "born in", "?", top=1000)
    (stored,) = everything.stored
    (own,) = [answer for answer in everything if answer.id == stored.id]
    assert (stored.rank, stored.probability) == (own.rank, pytest.approx(own.probability))
    few = predictor.predict("p2", "born in", "?", top=1)
    assert few.stored == everything.stored  # however few answers are shown
    beside = predictor.predict_many([("p3", "born in", "?"), ("p2", "born in", "?"), ("p2", "height", "?")], top=1)
    assert beside[1].stored == everything.stored  # and whatever is asked with it


def test_candidates_that_are_narrowed_are_ranked_among_themselves(predictor):
    narrowed = predictor.predict("p2", "born in", "?", candidates=[["t0", "t2"]])
    (stored,) = narrowed.stored
    assert stored.rank == next(answer.rank for answer in narrowed if answer.id == "t2")
    unknown = predictor.predict("p2", "born in", "?", candidates="unknown")
    assert (unknown.stored[0].rank, unknown.stored[0].probability) == (None, None)
    assert "in the graph, train: Ogdenville" in str(unknown).splitlines()[1]


def test_facts_with_more_qualifiers_answer_too(predictor):
    (stored,) = predictor.predict("p0", "spouse", "?").stored
    assert (stored.id, stored.qualifiers) == ("p7", "date 1990-06; place Springfield")
    (dated,) = predictor.predict(("p0", "spouse", "?", [("place", "t0")])).stored
    assert (dated.id, dated.qualifiers) == ("p7", "date 1990-06")
    (place,) = predictor.predict(("p0", "spouse", "p7", [("place", "?")])).stored
    assert (place.id, place.qualifiers) == ("t0", "date 1990-06")
    assert predictor.predict(("p0", "spouse", "?", [("place", "t1")])).stored == ()
    assert "in the graph: no answer to this question" in str(predictor.predict("p0", "spouse", "?", {"place": "t1"}))


def test_an_answer_that_is_stored_with_more_qualifiers_is_not_unknown(predictor, tmp_path):
    """The graph knows whom p0 married, also where nobody says when."""
    for question, known in ((("p0", "spouse", "?"), "p7"), (("p0", "spouse", "p7", [("place", "?")]), "t0")):
        everyone = [one.id for one in predictor.predict(question, top=100)]
        unknown = predictor.predict(question, top=100, candidates=["unknown"])
        assert known in everyone
        assert sorted([known, *(one.id for one in unknown)]) == sorted(everyone)
        assert unknown.stored[0].id == known
    (tmp_path / "asked.jsonl").write_text('{"head": "p0", "relation": "spouse", "tail": "?"}\n')
    run = Run(predictor.saved, "cpu")
    run.complete(tmp_path / "asked.jsonl", tmp_path / "found.parquet", top=100, candidates=["unknown"])
    rows = parquet.read_table(tmp_path / "found.parquet").to_pylist()
    assert "p7" not in [row["id"] for row in rows]
    assert len(rows) == len(predictor.predict("p0", "spouse", "?", top=100)) - 1
    explained = run.explain("p0", "spouse", "?", candidates=["unknown"])
    assert explained.about.id != "p7"
    assert explained.answers[0].id == explained.about.id


def test_relations_and_numbers_are_stored_answers_too(predictor):
    (relation,) = predictor.predict("p0", "?", "150 cm").stored
    assert (relation.id, relation.rank) == ("height", 1)
    (number,) = predictor.predict("p2", "height", "?").stored
    assert (number.value, number.text, number.splits, number.rank) == (1.52, "152 cm", ("valid",), None)
    assert number.predicted == predictor.predict("p2", "height", "?")[0].value
    (date,) = predictor.predict(("p0", "spouse", "p7", [("date", "?"), ("place", "t0")])).stored
    assert date.text == "1990-06"  # not its first day: the source says no more


def test_new_is_only_what_the_graph_lacks_and_the_model_is_sure_of(predictor):
    seen = set()
    questions = [(f"p{index}", relation, "?") for index in range(20) for relation in ("born in", "employer", "spouse")]
    for answers in predictor.predict_many(questions, top=100):
        held = {stored.id for stored in answers.stored}
        for answer in answers:
            assert answer.new == (answer.id not in held and answer.probability >= NEW_FROM)
            seen.add(answer.new)
        beside = [one for one in (*answers.new, *answers.guesses) if one.known or one.id in held]
        assert beside == [], "what the graph holds is no guess"
        known = {one.id for one in answers if one.known}
        assert {one.id for one in (*answers.new, *answers.guesses)} | held | known == {one.id for one in answers}
        assert Answers.from_dict(answers.to_dict()) == answers
    assert False in seen


def test_a_sure_answer_that_is_stored_with_more_qualifiers_is_not_called_new(predictor):
    only = predictor.predict("p0", "spouse", "?", candidates=[["p7"]])
    assert (only[0].probability, only[0].known, only[0].new) == (1.0, (), False)
    other = predictor.predict("p0", "spouse", "?", candidates=[["p8"]])
    assert other[0].new
    assert "  new: Person 8; rank 1, probability 1.0000" in str(other).splitlines()
    alone = "nothing else was a candidate: the probability says nothing"
    assert alone in other.notes
    assert alone not in predictor.predict("p0", "spouse", "?").notes


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(0.0, "0.0000"), (1e-9, "<0.0001"), (0.0001, "0.0001"), (0.5, "0.5000"), (1 - 1e-9, ">0.9999"), (1.0, "1.0000")],
)
def test_what_is_not_quite_sure_is_not_shown_as_sure(probability, shown):
    assert format_probability(probability) == shown


def test_a_model_that_reads_facts_judges_a_stored_one_without_it(towns, tmp_path):
    small = {"dimension": 8, "layers": 1, "heads": 2, "feedforward": 16, "bins": 11}
    settings = tiny_settings("hynt-inductive", schedule={"epochs": 1, "period": 1}, model=small)
    run = load(train(start(towns, settings, tmp_path / "run", CPU), CPU).path, "cpu")
    (stored,) = run.predict("p1", "born in", "?").stored
    assert (stored.id, stored.judged_without) == ("t1", True)
    (height,) = run.predict("p1", "height", "?").stored
    assert height.judged_without
    assert height.predicted != run.predict("p1", "height", "?")[0].value
    explained = run.explain(("p1", "height", "?"))
    assert f"judges it without that fact: {explained.answers[0].text(height.predicted)}" in "; ".join(explained.notes)
    # What it says with the fact in view is another thing, and stays as it was.
    again = run.predict("p1", "born in", "?", top=100)
    own = next(answer for answer in again if answer.id == "t1")
    assert own.score != pytest.approx(_score_without(run, "p1", "P19", "t1"))
    # So a reader of both is told why a guess may have more than the stored answer of a better rank.
    for text in (str(again), again._repr_html_()):
        assert ", with all facts in view" in text
    assert "in view" not in str(run.predict("p1", "born in", "t1", [("place", "?")]))
    assert stored.rank == _rank_without(run, "p1", "P19", "t1")


def _without(run, head, relation):
    """The answers of the same model, which observes all facts but those of the fact's fold."""
    table = concatenate(list(run.graph.splits.values()))
    names, folds = run.graph.vocabulary, folds_of(table, run.graph.vocabulary)
    own = (table.head == names.entity_ids[head]) & (table.relation == names.relation_ids[relation])
    (fold,) = folds[own]
    return run.observing(table.where(folds != fold)).predict(head, relation, "?", top=100)


def _rank_without(run, head, relation, answer):
    return next(one.rank for one in _without(run, head, relation) if one.id == answer)


def _score_without(run, head, relation, answer):
    return next(one.score for one in _without(run, head, relation) if one.id == answer)


def test_ids_are_shown_only_where_names_do_not_tell_answers_apart(predictor):
    found = predictor.predict("p2", "P19", "?", top=2)
    assert not found.is_ambiguous
    first, second = (replace(one, name="Paris", new=True) for one in found.answers[:2])
    twins = replace(found, answers=(first, second))
    assert twins.is_ambiguous
    assert f"new: Paris ({first.id}); rank" in str(twins)
    assert first.id in twins._repr_html_()
    assert f">{first.id}<" not in found._repr_html_()


def test_counts_that_a_run_answers_with_are_made_without_a_stored_fact_too(tmp_path):
    """A tail that only one fact has is counted once with the fact, and never without it."""
    facts = {"train": [(f"p{index}", "likes", f"t{index}") for index in range(30)]}
    facts["train"] += [(f"p{index}", "near", f"p{(index + 1) % 30}") for index in range(30)]
    graph = graph_from_facts(facts)
    counts = load(train(start(graph, tiny_settings("frequency"), tmp_path / "run", CPU), CPU).path, "cpu").loaded
    names = ("frequency", "frequency")
    likes = GroupWeights((0.0, 1.0), {})
    weights = Weights(names, {(Task.LINK, Position.TAIL): likes})
    model = Combination(counts.model.sizes, [counts.model, counts.model], weights, counts.model.answers)
    table = graph.split("train")
    fold = int(folds_of(table, graph.vocabulary)[0])
    left = without_folds(replace(counts, model=model), {fold})
    scored = []

    def hear(tile):
        scored.append(tile.entities()[0])

    for loaded in (replace(counts, model=model), left):
        read_tiles(loaded, table, np.array([0]), np.array([TAIL]), CPU, hear)
    own, other = graph.vocabulary.entity_ids["t0"], graph.vocabulary.entity_ids["p0"]
    assert scored[0][own] > scored[0][other]
    assert scored[1][own] == scored[1][other]


def test_curves_that_a_run_answers_with_are_drawn_without_a_stored_number_too(tmp_path):
    """A number that lies off its curve is told as it is with the fact in view, and as its neighbours without it."""
    facts = {"train": [("town", "people", 10.0 * year, [("year", float(year))]) for year in range(40)]}
    facts["train"][20] = ("town", "people", 265.0, [("year", 20.0)])
    graph = graph_from_facts(facts)
    mean = load(train(start(graph, tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path, "cpu").loaded
    weights = Weights(("relation-mean", "number-series"), {(Task.NUMBER, Position.TAIL): GroupWeights((0.0, 1.0), {})})
    known = FactTensors.from_table(graph.split("train"), graph.vocabulary, mean.scaling)
    loaded = replace(mean, model=combined([mean.model], known, weights))
    table = graph.split("train")
    row = int(np.flatnonzero(table.tail_number == 265.0)[0])
    left = without_folds(loaded, {int(folds_of(table, graph.vocabulary)[row])})
    said = []

    def hear(tile):
        said.append(float(mean.scaling.unscale(table.relation[[row]], tile.numbers().double().numpy())[0]))

    for one in (loaded, left):
        read_tiles(one, table, np.array([row]), np.array([TAIL]), CPU, hear)
    assert said[0] == pytest.approx(265.0, abs=0.1)
    assert said[1] == pytest.approx(200.0, abs=15.0)
