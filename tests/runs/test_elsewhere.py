"""A run over a graph that it was not trained on, and over its own with more facts."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import hynt
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import Expectation
from hynt.cli.application import run as invoke
from hynt.errors import DataError, UsageError
from hynt.evaluation.combining import combined
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.combination import Combination, GroupWeights, Weights
from hynt.models.contract import Position, Task
from hynt.runs.elsewhere import FEWEST, on_graph
from tests.training.small_graph import small_graph


@pytest.fixture(scope="module")
def run(inductive_run):
    return hynt.load(inductive_run, "cpu")


def people(ages: int = 3, **more):
    """A graph of other people: relations that the run knows, and one that it does not, with some different numbers."""
    facts = [(f"someone {i}", "born in", f"village {i % 3}") for i in range(9)]
    facts += [(f"someone {i}", "height", 150 + 3 * i, [("year", 2001)]) for i in range(9)]
    facts += [(f"someone {i}", "age", 20 + i % ages) for i in range(9)]
    return hynt.graph_from_facts({"train": facts, **more}, name="people")


def test_its_own_graph_gives_the_answers_it_always_gives(run):
    again = run.on(run.graph)
    for question in (("person 1", "born in", "?"), ("person 3", "height", "?", [("year", 2001)])):
        assert str(again.predict(question)) == str(run.predict(question))


def test_statistics_that_are_weighed_in_go_along(inductive_run, tmp_path):
    graph = small_graph()
    made = hynt.train(
        graph, start_from=inductive_run, out=tmp_path / "run", device="cpu", with_statistics=True, epochs=1
    )
    if not isinstance(made.loaded.model, Combination):  # validation may find that they add nothing
        everywhere = {(Task.LINK, Position.TAIL): GroupWeights((1.0, 1.0), {0: (0.5, 2.0)})}
        weights = Weights(("hynt-inductive", "frequency"), everywhere)
        train = FactTensors.from_table(graph.split("train"), graph.vocabulary, made.loaded.scaling)
        made.__dict__["loaded"] = replace(made.loaded, model=combined([made.loaded.model], train, weights))
    again = made.on(graph)
    assert isinstance(again.loaded.model, Combination)
    question = ("person 1", "born in", "?")
    assert [one.score for one in again.predict(question)] == pytest.approx(
        [one.score for one in made.predict(question)]
    )
    assert len(made.on(people()).predict("someone 1", "born in", "?", top=3)) == 3


def test_new_entities_are_answered_and_found(run):
    other = run.on(people())
    found = other.predict("someone 1", "born in", "?", top=3)
    assert found.candidates == len(other.graph.entities)
    assert {answer.id for answer in found} <= set(other.graph.vocabulary.entities)
    assert other.described() == {"model": "hynt-inductive", "graph": "people"}
    with pytest.raises(UsageError, match="the graph has no entity called 'person 1'"):
        other.predict("person 1", "born in", "?")


def test_a_known_relation_keeps_the_scale_of_the_run(run):
    other = run.on(people())
    mine, yours = (one.loaded.scaling.to_mapping(one.graph.vocabulary) for one in (run, other))
    assert yours["height"] == mine["height"]
    answer = other.predict("someone 1", "height", "?", [("year", 2001)])[0]
    assert 100 < answer.value < 250
    radii = [one.calibration.radii.radius[:, one.graph.vocabulary.relation_ids["height"]] for one in (run, other)]
    assert (radii[0] == radii[1]).all()


def test_means_of_log_scales_go_along(run):
    relations = run.graph.vocabulary.relation_count
    means = Expectation(np.arange(relations) * 0.5, np.arange(relations) + 2.0)
    home = replace(run.loaded, scaling=replace(run.loaded.scaling, expectation=means))
    graph = people()
    found = on_graph(home, graph).scaling.expectation
    there, here = (one.vocabulary.relation_ids["height"] for one in (run.graph, graph))
    assert (found.offset[here], found.factor[here]) == (means.offset[there], means.factor[there])
    assert found.factor[graph.vocabulary.relation_ids["age"]] == 1


@pytest.mark.parametrize("ages", [FEWEST - 1, FEWEST])
def test_a_new_relation_of_numbers_is_predicted_once_it_has_enough_of_them(run, ages):
    other = run.on(people(ages))
    if ages < FEWEST:
        with pytest.raises(UsageError, match="the run has learned no numbers of 'age', and its graph has fewer than 8"):
            other.predict("someone 1", "age", "?")
        told = other.complete([("someone 1", "age", "?"), ("someone 1", "height", "?")], on_error="record")
        assert (told.questions, told.refused) == (2, 1)
        asked = people(ages, test=[("someone 2", "age", 20)])
        assert run.evaluate(asked=asked, references=False).to_dict()["protocol"]["unanswered"] == {"number": 1}
    else:
        answer = other.predict("someone 1", "age", "?")[0]
        assert 15 <= answer.value <= 35
        assert answer.interval is None


def test_its_numbers_are_read_before_that(run):
    with_ages = run.on(people())
    none = people()
    age = none.vocabulary.relation_ids["age"]
    table = none.split("train")
    without = run.on(KnowledgeGraph(none.vocabulary, {"train": table.where(table.relation != age)}, none.entities))
    read, unread = (one.predict("someone 1", "born in", "?")[0].score for one in (with_ages, without))
    assert read != unread


def test_a_relation_of_another_kind_or_unit_is_refused(run):
    with pytest.raises(UsageError, match="'born in' has numbers without a unit there, and entities here"):
        run.on(hynt.graph_from_facts([("a", "born in", 3)]))
    with pytest.raises(UsageError, match="'height' has numbers in m there, and numbers without a unit here"):
        run.on(hynt.graph_from_facts([("a", "height", hynt.number(3, "m"))]))


def test_what_belongs_to_the_training_graph_is_refused_elsewhere(run, tmp_path):
    other, more = run.on(people()), run.with_facts([("person 99", "knows", "person 1")])
    verbs = [other.audit, other.calibrate, other.report, lambda: other.export(tmp_path / "m.onnx")]
    verbs += [lambda one=one: one.save(tmp_path / "copy") for one in (other, more)]
    verbs += [lambda one=one: one.update([("a", "knows", "person 1")]) for one in (other, more)]
    for verb in verbs:
        with pytest.raises(UsageError, match="works on a run's own graph, and this run is asked of another"):
            verb()


def test_what_if(run):
    question = ("person 99", "born in", "?")
    with pytest.raises(UsageError, match="no entity called 'person 99'"):
        run.predict(question)
    moved = run.with_facts([("person 99", "knows", "PERSON 1"), ("person 99", "height", 170)])
    assert moved.predict(question).candidates == len(run.graph.entities) + 1
    assert len(moved.graph) == len(run.graph) + 2
    assert run.graph is not moved.graph
    more = moved.with_facts([("person 99", "knows", "person 2")])
    assert more.predict(question).to_dict() != moved.predict(question).to_dict()


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (("person 1", "height", "tall"), "fact 1, height: 'height' holds numbers, and 'tall' is not a number"),
        (("person 1", "born in", 7), "fact 1: the relation 'born in' carries entities, and 7 is a number"),
        (("person 1", "height", hynt.number(2, "m")), "fact 1, height: 'height' has no unit, but 'm' was given"),
        (("person 1", "size", hynt.number(2, "shoes")), "fact 1: unknown unit 'shoes'"),
        (("person 0", "born in", "town 0"), "fact 1: the graph holds this already: (person 0, born in, town 0)"),
        (("person 1", "born in"), "fact 1: ('person 1', 'born in') is not a fact"),
    ],
)
def test_a_fact_that_does_not_fit_is_refused(run, fact, told):
    with pytest.raises(DataError) as refusal:
        run.with_facts([fact])
    assert str(refusal.value).startswith(told)


def test_an_evaluation_of_one_graph_by_another(run):
    asked = hynt.graph_from_facts(
        {
            "train": [("nobody", "knows", "no one")],
            "test": [
                ("someone 1", "born in", "village 0"),
                ("person 1", "knows", "someone 2"),
                ("stranger", "age", 21),
            ],
        },
        name="asked",
    )
    found = run.evaluate(observed=people(FEWEST), asked=asked, references=False).to_dict()
    protocol = found["protocol"]
    assert protocol["candidates"]["entities"] == len(people().entities) + 4  # no one and nobody are named there as well
    assert (protocol["observed_facts"], protocol["observed"], protocol["filter"]) == (27, "train", "train+test")
    assert "reads_of_split" not in protocol
    groups = {row["group"]: row["count"] for row in found["breakdowns"]["link"]["seen"]}
    assert groups == {
        "answer seen, context not": 1,  # who knows someone 2?
        "answer not seen, context seen": 1,  # whom does person 1 know?
        "neither answer nor context seen": 3,
    }
    assert {row["group"] for row in found["breakdowns"]["number"]["seen"]} == {"answer seen, context not"}
    with pytest.raises(UsageError, match="the run observes train, so its answers there say nothing"):
        run.evaluate("train", observed=people())


def test_an_evaluation_of_another_graph_observes_its_training_split_alone(run):
    graph = small_graph(seed=5)
    found, same = run.evaluate(asked=graph, references=False), run.on(graph).evaluate(references=False)
    assert found.to_dict() == same.to_dict()
    assert len(on_graph(run.loaded, graph, ("train",)).observed.table) == len(graph.split("train"))


def test_the_command_line(inductive_run, tmp_path, capsys):
    graph = people(FEWEST, test=[("someone 1", "age", 21), ("someone 2", "born in", "village 1")])
    graph.save(tmp_path / "people")
    run, where = str(inductive_run), str(tmp_path / "people")
    question = ["--head", "someone 1", "--relation", "born in", "--tail", "?"]
    assert invoke(["predict", run, *question, "--graph", where, "--device", "cpu"]) == 0
    assert "village" in capsys.readouterr().out
    assert invoke(["evaluate", run, "--asked", where, "--device", "cpu", "--breakdown", "relation"]) == 0
    told = capsys.readouterr().out
    assert "asked of 27 facts of people" in " ".join(told.split())
    assert "link by seen" in told
    assert "number by relation" in told


def test_what_is_of_another_kind_follows_updates(inductive_run, tmp_path):
    """A town is no person until someone says how high it is; a new person is one at once."""
    asked, unlike = ("height", "?", {"year": "2001"}), "town 1 is unlike the heads of height in training: none of "
    run = hynt.load(shutil.copytree(inductive_run, tmp_path / "run"), "cpu")
    assert any(unlike in note for note in run.predict("town 1", *asked).notes)
    updated = run.update([("Zoe", "knows", "person 1"), ("town 1", "height", 151, [("year", 2000)])])
    for head in ("town 1", "Zoe"):
        assert not any("unlike" in note for note in updated.predict(head, *asked).notes)


def test_the_weights_are_those_of_the_run(run):
    one, other = (dict(model.named_parameters()) for model in (run.loaded.model, run.on(people()).loaded.model))
    assert all(torch.equal(one[name], other[name]) for name in one)
