"""A run that keeps the best weights of each task and answers each with its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from hynt.batches.masked_batch import Task
from hynt.errors import DataError, UsageError
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.tables import headline
from hynt.exporting import export_onnx
from hynt.interruption import Stopper
from hynt.models.checking import check_model
from hynt.models.combination import TaskWeights
from hynt.models.contract import Entities, Relations, ScaledNumber
from hynt.models.hynt_inductive import HyntInductive
from hynt.runs.checkpoint import BestValidation, Interrupted
from hynt.runs.elsewhere import on_graph
from hynt.runs.opening import best_name, load_run
from hynt.runs.run_folder import RunFolder
from hynt.sharing.push_and_pull import Bundle
from hynt.training.run import start, train
from tests.models.test_hynt_inductive import FACTS, SMALL, every_question, model_of
from tests.training.small_graph import small_graph, tiny_settings
from tests.training.test_run import StopAfter

CPU = torch.device("cpu")
TASKS = ("link", "relation", "number")


def settings():
    return tiny_settings(
        schedule={"epochs": 8, "period": 8}, validation={"every": 1, "each_task": True, "metric": "link.triplet.mrr"}
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.set_num_threads(1)
    return train(start(small_graph(), settings(), tmp_path_factory.mktemp("runs") / "run", CPU), CPU)


def validations(run):
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    return {line["epoch"]: line["validation"] for line in lines if "validation" in line}


def best_epochs(run):
    """Of each task, by looking at all validations: the first of the best."""
    seen = validations(run)
    link = max(seen, key=lambda epoch: (seen[epoch]["link"]["triplet"]["mrr"], -epoch))
    relation = max(seen, key=lambda epoch: (seen[epoch]["relation"]["all"]["mrr"], -epoch))
    number = min(seen, key=lambda epoch: (seen[epoch]["number"]["all"]["rmse"], epoch))
    return {"link": link, "relation": relation, "number": number}


def test_each_task_is_answered_as_well_as_it_ever_was(run):
    """Two tasks at least are best at different times here, or this would show nothing."""
    wanted = best_epochs(run)
    assert len({*wanted.values()}) > 1
    loaded = load_run(run.path)
    assert loaded.described()["epochs_of_tasks"] == wanted
    told = {"graph": "g", "split": "valid", "ties": "realistic", "filter": "train", "reads_of_split": 1}
    assert f"link {wanted['link']}, " in headline({"protocol": told | loaded.described()})
    found = Evaluator(loaded.graph, loaded.scaling, "valid").evaluate(loaded.model).to_mapping()
    for task in TASKS:
        for metric, value in validations(run)[wanted[task]][task]["all"].items():
            assert found[task]["all"][metric] == pytest.approx(value, rel=1e-6)


def test_weights_lie_beside_each_other_only_where_they_differ(run):
    wanted, main = best_epochs(run), best_epochs(run)["link"]
    own = {f"weights-{task}.safetensors" for task, epoch in wanted.items() if epoch != main}
    assert own
    assert {path.name for path in run.path.glob("weights-*")} == own
    assert own <= {*run.manifest["files"]}
    assert own <= {*Bundle.of(run, None, None, "").names}


def test_a_damaged_file_of_a_task_is_refused(run, tmp_path):
    run.copy(tmp_path / "copy")
    file = next((tmp_path / "copy").glob("weights-*"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=file.name):
        load_run(tmp_path / "copy")


def test_stopped_and_resumed_keeps_the_same_weights_of_all_tasks(run, tmp_path):
    stopper = Stopper()
    begun = start(small_graph(), settings(), tmp_path / "run", CPU)
    with pytest.raises(Interrupted):
        train(begun, CPU, StopAfter(4, stopper), stopper)
    halfway = load_run(begun.path)
    assert not halfway.is_finished
    resumed = train(RunFolder.open(begun.path), CPU)
    for path in run.path.glob("weights*"):
        assert path.read_bytes() == (resumed.path / path.name).read_bytes()


def test_a_file_of_one_model_cannot_hold_it(run, tmp_path):
    with pytest.raises(UsageError, match="answers each task with weights of its own"):
        export_onnx(load_run(run.path), tmp_path / "model.onnx")


def test_rows_of_all_tasks_are_read_by_their_own_copies():
    first, relation, number = (model_of(FACTS, seed=seed) for seed in range(3))
    model = TaskWeights(first, {Task.RELATION: relation, Task.NUMBER: number}).eval()
    batch, answers, _ = every_question(FACTS, torch.arange(5))
    with torch.no_grad():
        read = model.read(batch)
        for task, own, candidates in (
            (Task.LINK, first, Entities()),
            (Task.RELATION, relation, Relations()),
            (Task.NUMBER, number, ScaledNumber()),
        ):
            rows = torch.nonzero(answers.task == int(task)).squeeze(1)
            assert len(rows)
            expected = own.score(own.read(batch).take(rows), candidates)
            assert torch.equal(model.score(read.take(rows), candidates), expected)
        assert torch.equal(model.distribution(read).probability, number.distribution(number.read(batch)).probability)


def test_entities_have_the_vectors_of_the_copy_that_answers_links():
    first, link = (model_of(FACTS, seed=seed) for seed in range(2))
    own, other = first.entity_vectors(), link.entity_vectors()
    assert torch.equal(TaskWeights(first, {Task.NUMBER: link}).entity_vectors(), own)
    assert torch.equal(TaskWeights(first, {Task.LINK: link}).entity_vectors(), other)
    assert not torch.equal(own, other)


def test_the_contract():
    def made(sizes, train):
        first, number = (HyntInductive.build(sizes, train, SMALL) for _ in range(2))
        return TaskWeights(first, {Task.NUMBER: number})

    check_model(made)


def test_an_inductive_run_takes_all_its_copies_to_another_graph(tmp_path):
    chosen = tiny_settings(
        "hynt-inductive",
        batch_size=16,
        schedule={"epochs": 4, "shape": "warm-cosine"},
        validation={"every": 1, "each_task": True},
        model={"dimension": 16, "layers": 2, "heads": 4, "feedforward": 32, "bins": 21},
    )
    made = train(start(small_graph(), chosen, tmp_path / "run", CPU), CPU)
    home = load_run(made.path)
    if not isinstance(home.model, TaskWeights):  # all tasks were best at one time
        other = load_run(made.path).model
        home = replace(home, model=TaskWeights(home.model, {Task.NUMBER: other}))
    there = on_graph(home, small_graph())
    for task, one in (("link", Task.LINK), ("number", Task.NUMBER)):
        expected = home.model.of(one).state_dict()
        assert all(torch.equal(value, expected[name]) for name, value in there.model.of(one).state_dict().items()), task
    assert bool(there.model.predicts(torch.arange(len(there.graph.relations))).any())
    found = Evaluator(there.graph, there.scaling, "valid").evaluate(there.model)
    assert "number" in found.per_question


def test_without_it_one_file_serves_all(tmp_path):
    plain = tiny_settings(schedule={"epochs": 2, "period": 2})
    made = train(start(small_graph(), plain, tmp_path / "run", CPU), CPU)
    assert [path.name for path in made.path.glob("weights*")] == ["weights.safetensors"]
    assert "best_of_tasks" not in made.manifest["training"]
    assert load_file(made.path / "weights.safetensors")


def trained_on_both(**chosen):
    return tiny_settings(
        train_on="train+valid", schedule={"epochs": 4, "period": 4}, validation={"chosen": chosen} if chosen else {}
    )


def test_epochs_chosen_before_serve_their_tasks_where_nothing_validates(tmp_path):
    made = train(start(small_graph(), trained_on_both(relation=2), tmp_path / "run", CPU), CPU)
    assert made.manifest["training"]["best_of_tasks"] == {"relation": {"epoch": 2}}
    assert made.manifest["training"]["weights_of_epoch"] == 4

    stopper = Stopper()
    half_way = start(small_graph(), trained_on_both(relation=2), tmp_path / "half-way", CPU)
    with pytest.raises(Interrupted):
        train(half_way, CPU, StopAfter(2, stopper), stopper)
    of_epoch_two = load_file(half_way.checkpoints / best_name(BestValidation(0, 2)) / "weights.safetensors")
    resumed = train(RunFolder.open(half_way.path), CPU)
    whole = train(start(small_graph(), trained_on_both(), tmp_path / "whole", CPU), CPU)
    last = load_file(whole.path / "weights.safetensors")
    assert any(not torch.equal(value, last[name]) for name, value in of_epoch_two.items())
    for one in (made, resumed):
        model = load_run(one.path).model
        assert isinstance(model, TaskWeights)
        for task, expected in ((Task.RELATION, of_epoch_two), (Task.LINK, last), (Task.NUMBER, last)):
            given = dict(model.of(task).named_parameters())
            assert all(torch.equal(given[name], value) for name, value in expected.items() if name in given), task
    assert load_run(made.path).described()["epochs_of_tasks"] == {"relation": 2}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"validation": {"chosen": {"link": 2}}}, "validation.chosen.link is for train_on=train[+]valid"),
        (
            {"train_on": "train+valid", "validation": {"chosen": {"number": 9}}, "schedule": {"epochs": 4}},
            "validation.chosen.number is 9, beyond the 4 epochs",
        ),
    ],
)
def test_epochs_that_cannot_be_kept_are_refused(wanted, words):
    with pytest.raises((UsageError, ValueError), match=words):
        tiny_settings(**wanted)
