"""How long a run trains where nobody counts epochs: while validation improves, or for the minutes that were said."""

from __future__ import annotations

import pkgutil
import time
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import hynt
from hynt.auditing.plan import plan_audit
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.comparison.table import recommended
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import UsageError
from hynt.evaluation.combining import weighing_bytes
from hynt.formats.from_python import graph_from_facts
from hynt.front.training import time_text
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.models.contract import Position
from hynt.models.registry import MODELS
from hynt.models.shared_facts import building_bytes
from hynt.models.trivial import STATISTICS
from hynt.objectives.streams import Phase, PhaseSettings
from hynt.progress import duration
from hynt.runs.checkpoint import EpochRecord, Interrupted, TrainingProgress
from hynt.runs.run_folder import RunFolder
from hynt.runs.training_data import fit_scaling
from hynt.training.default_model import cases, model_for
from hynt.training.estimate import Estimate, _seconds, estimate
from hynt.training.optimisation import learning_rate
from hynt.training.process import threads_for
from hynt.training.resolve_settings import (
    LONGEST_MINUTES,
    LONGEST_OF_PAPERS,
    LONGEST_ON_GPU,
    VALIDATED,
    SettingsRequest,
    resolve_settings,
)
from hynt.training.run import start, train
from tests.batches.random_graphs import mixed_facts
from tests.heard_progress import HeardProgress
from tests.training.small_graph import small_graph, tiny_settings
from tests.training.toy import Points

CPU = torch.device("cpu")
RANKING = 1 + sum((Task.LINK, Position.HEAD) in kind.answers for kind, _ in STATISTICS.values())
"""How many rank a fact's head: the model, and statistics."""


def resolved(model=None, preset=None, *, on_gpu=False, **said):
    return resolve_settings(SettingsRequest(model, preset, until_done=True, **said), small_graph(), on_gpu=on_gpu)


def test_defaults_end_with_validation_and_what_was_said_ends_as_it_says():
    found = resolved()
    assert found.validation.patience == 1
    ends = found.schedule.cycle_ends()
    assert ends[-1] == found.schedule.epochs
    assert found.validation_epochs() == ends  # judged where the rate has fallen, each time twice as long after the last
    assert [later - one for one, later in pairwise(ends)] == [2**n * ends[0] for n in range(1, len(ends))]
    for closed in (
        resolved(epochs=7),
        resolved(changes=["schedule.epochs=7"]),
        resolved(changes=["validation.every=2"]),
        resolved(train_on="train+valid"),
        resolved(preset="world"),
        resolve_settings(SettingsRequest(), small_graph(), on_gpu=False),
    ):
        assert closed.validation.patience is None


@pytest.mark.parametrize("model", [name for name, entry in MODELS.items() if entry.learns])
def test_every_default_has_a_longest_time(model):
    """TransEA's 500 epochs took 21 hours on 310,000 facts where nothing cut them."""
    on_cpu = LONGEST_MINUTES if model == "hynt" else LONGEST_OF_PAPERS
    assert resolved(model).schedule.seconds == 60 * on_cpu
    assert resolved(model, on_gpu=True).schedule.seconds == 60 * LONGEST_ON_GPU
    assert resolved(model, epochs=500).schedule.seconds is None
    assert resolved(model, f"{model}-small").schedule.seconds is None


def test_a_longest_time_is_not_spent_many_times_over_on_validation():
    """Ten minutes of `transea` on WD50K were followed by nine of validation."""
    many = [(f"thing {one}", "next", f"thing {one + 1}") for one in range(VALIDATED + 1)]
    request = SettingsRequest("transea", until_done=True)
    for valid, asked in ((many, VALIDATED), (many[:VALIDATED], None)):
        graph = graph_from_facts({"train": many, "valid": valid})
        assert resolve_settings(request, graph, on_gpu=False).validation.facts == asked
        said = replace(request, changes=["validation.facts=7"])
        assert resolve_settings(said, graph, on_gpu=False).validation.facts == 7
        assert resolve_settings(replace(request, preset="transea-paper"), graph, on_gpu=False).validation.facts is None


def test_a_run_without_validation_has_a_longest_time_too():
    assert resolved(train_on="train+valid").schedule.seconds == 60 * LONGEST_MINUTES


def test_time_cuts_what_validation_would_end_and_moves_no_rate(tmp_path):
    graph, time = small_graph(), iter(range(10**9))
    schedule = {"epochs": 63, "period": 1, "growth": 2, "seconds": 30.0}
    settings = tiny_settings(schedule=schedule, validation={"patience": 9})
    done = train(start(graph, settings, tmp_path / "run", CPU), CPU, clock=lambda: next(time) / 4)
    lines = [line for line in hynt.Run(done.path).history() if "learning_rate" in line]
    assert 1 < lines[-1]["epoch"] < 63
    by_epoch = [learning_rate(settings.schedule, settings.optimiser.learning_rate, one) for one in range(len(lines))]
    assert [line["learning_rate"] for line in lines] == pytest.approx(by_epoch)


def test_minutes_plan_the_schedule_to_end_with_them():
    found = resolved(minutes=3)
    assert found.schedule.seconds == 180
    assert found.schedule.period == found.schedule.epochs  # one fall of the rate
    assert found.validation.patience is None
    assert 0 < found.validation.seconds < 180
    with pytest.raises(UsageError, match="minutes and epochs were both given"):
        resolved(minutes=3, epochs=5)


def test_a_run_of_so_many_minutes_ends_there(tmp_path):
    graph, time = small_graph(), iter(range(10**9))
    settings = replace(resolved(minutes=1), model=tiny_settings().model)
    run = start(graph, settings, tmp_path / "run", CPU)
    done = train(run, CPU, clock=lambda: next(time) / 4)  # every look at the clock moves it on
    assert done.manifest["training"]["seconds"] == pytest.approx(60, rel=0.05)
    rates = [line["learning_rate"] for line in hynt.Run(done.path).history() if "learning_rate" in line]
    assert rates[0] > 50 * rates[-1]


class Hours:
    """A model of time: every kind of work takes as long as it is told to."""

    def __init__(self, monkeypatch, step, question, weighed, statistic):
        self.now = 1_000.0
        for module in ("hynt.front.training", "hynt.training.estimate"):
            monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=self, perf_counter=self))
        monkeypatch.setattr(SingleProcess, "clock", lambda workers: self.now)
        self._slower(monkeypatch, "hynt.training.step.EagerStep.run", lambda *given: step)
        self._slower(monkeypatch, "hynt.evaluation.combining.statistic", lambda *given: statistic)
        self._slower(monkeypatch, "hynt.evaluation.combining._asked", partial(self._weighing, weighed))
        self._slower(monkeypatch, "hynt.evaluation.evaluator.Evaluator.evaluate", partial(self._asking, question))

    def __call__(self):
        return self.now

    def _asking(self, question, evaluator, model, *rest):
        return question * sum(len(evaluator._answerable(model, task)) for task in evaluator.tasks)

    def _weighing(self, weighed, model, evaluator, kind, *rest):
        return weighed * len(kind.tiled(evaluator, np.random.default_rng(0))[1].question)  # with what fills tiles

    def _slower(self, monkeypatch, name, seconds):
        place, _, attribute = name.rpartition(".")
        owner = pkgutil.resolve_name(place)
        before = getattr(owner, attribute)

        def slower(*given, **options):
            self.now += seconds(*given)
            return before(*given, **options)

        monkeypatch.setattr(owner, attribute, slower)


@pytest.mark.parametrize("model", ["hynt", "kbln"])
@pytest.mark.parametrize(
    "costs",
    [
        {"step": 0.5, "question": 0.001, "weighed": 0.001, "statistic": 0.01},
        {"step": 0.5, "question": 0.05, "weighed": 0.001, "statistic": 0.01},
        {"step": 0.5, "question": 0.001, "weighed": 0.02, "statistic": 0.2},
        {"step": 2.0, "question": 0.001, "weighed": 0.001, "statistic": 2.0},
    ],
    ids=["little on top", "slow validation", "slow weighing", "slow statistics"],
)
def test_the_whole_command_ends_within_its_minutes_and_says_so_before(model, costs, monkeypatch, tmp_path):
    """Validation and weighing came on top: 1.02 to 1.26 times the minutes."""
    hours, heard = Hours(monkeypatch, **costs), HeardProgress()
    monkeypatch.setattr("hynt.front.training.watched", lambda progress: nullcontext(heard))
    graph, began = small_graph(people=60), hours.now
    small = {"model.dimension": 16} | ({"model.head_epochs": 20} if model == "kbln" else {})
    run = hynt.train(graph, model, out=tmp_path / "run", minutes=2, device="cpu", **small)
    assert hours.now - began == pytest.approx(120, rel=0.1)
    (told,) = [said.removeprefix("note: ") for said in heard.said if "this takes about" in said]
    assert told.startswith(f"this takes about {duration(120)}: ")
    trained = run.manifest["training"]["seconds"]
    assert float(told.split(": ")[1].split()[0]) == pytest.approx(trained, rel=0.1)
    assert told.endswith(" of training, the rest for validation and weighing statistics")


def test_a_command_whose_minutes_are_too_few_trains_for_a_part_of_them(monkeypatch, tmp_path):
    Hours(monkeypatch, step=0.5, question=0.001, weighed=2.0, statistic=0.01)
    run = hynt.train(small_graph(people=60), "hynt", minutes=0.5, device="cpu", **{"model.dimension": 16})
    assert run.manifest["training"]["seconds"] == pytest.approx(0.2 * 30, abs=1)


@pytest.mark.parametrize("model", ["hynt", "kbln"])
def test_without_timing_steps_all_of_the_time_is_planned_too(model):
    """As on a GPU, where a step is captured before it can be timed."""
    settings = resolved(model, minutes=1)
    found = estimate(small_graph(), settings, CPU, 20.0, steps=False)
    assert found.spent > 20
    assert found.spent + found.seconds + found.beside == pytest.approx(60)
    later = 1.25 if model == "kbln" else 1.0
    assert found.seconds == pytest.approx(later * (60 - found.reserved))


def test_a_run_that_was_stopped_keeps_what_is_reserved(tmp_path):
    settings, time, stopper = replace(resolved(minutes=1), model=tiny_settings().model), iter(range(10**9)), Stopper()
    run = start(small_graph(), settings, tmp_path / "run", CPU)
    clock = lambda: next(time) / 4  # noqa: E731
    heard = HeardProgress(lambda update: setattr(stopper, "asked", True))
    with pytest.raises(Interrupted):
        train(run, CPU, TrainingProgress(heard), stopper, clock=clock, reserved=20)
    done = train(RunFolder.open(run.path), CPU, clock=clock)
    assert done.manifest["training"]["seconds"] == pytest.approx(40, rel=0.05)


def test_training_ends_when_validation_stops_improving_and_its_audit_takes_as_long(tmp_path):
    graph = small_graph()
    settings = tiny_settings(schedule={"epochs": 63, "period": 1, "growth": 1}, validation={"patience": 1})
    heard = HeardProgress()
    run = train(start(graph, settings, tmp_path / "run", CPU), CPU, TrainingProgress(heard))
    checks = [line for line in hynt.Run(run.path).history() if "validation" in line]
    assert len(checks) < 63
    assert [line["best"] for line in checks] == [True] * (len(checks) - 1) + [False]
    best = run.manifest["training"]["weights_of_epoch"]
    assert best == checks[-2]["epoch"]
    assert plan_audit(graph, folds=2, run=RunFolder.open(run.path)).settings.schedule.epochs == best


def test_weighing_statistics_is_told_by_the_scores_of_each_kind(tmp_path):
    """After the first of 15 kinds, which took a third of the time, it told fourteen times as much again."""
    heard, settings = HeardProgress(), tiny_settings(schedule={"epochs": 1}, with_statistics=True)
    train(start(small_graph(), settings, tmp_path / "run", CPU), CPU, TrainingProgress(heard))
    told = [(one.done, one.total) for one in heard.updates if one.stage == "weighing statistics"]
    shares = [done / total for done, total in told]
    assert shares[0] == 0
    assert len({total for _, total in told}) == 1
    assert all(one < later for one, later in pairwise(shares))
    table = small_graph().split("valid")
    entities = small_graph().vocabulary.entity_count
    heads = len(table) * min(entities + 1, RANKING * 64 + 64 + 1) * RANKING
    assert told[1] == (heads, told[0][1])
    assert shares[1] > 1 / len(told)
    assert shares[-1] < 1


def test_an_epoch_is_counted_to_the_next_check_where_that_may_end_it():
    heard = HeardProgress()
    shown = TrainingProgress(heard)
    shown.epoch_done(EpochRecord("main", 2, 63, 1e-3, {"link": 1.0}, {"link": 1}, 10, 3.0, None, 7))
    (update,) = heard.updates
    assert (update.done, update.total) == (2, 7)
    assert update.share == pytest.approx(2 / 7)
    assert "on while validation improves" in update.note


def test_a_step_gets_no_more_threads_than_it_has_work_for(monkeypatch):
    given = []
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    facts = mixed_facts(30)
    hynt_like, other = (
        MODELS.get(name).build(facts.sizes, facts, MODELS.get(name).settings()) for name in ("hynt", "transea")
    )
    for model, entities, device in (
        (hynt_like, 500, CPU),
        (hynt_like, 12_439, CPU),
        (hynt_like, 10**6, CPU),
        (hynt_like, 500, torch.device("cuda")),
        (other, 500, CPU),
    ):
        model.sizes = facts.sizes._replace(entities=entities)
        with threads_for(model.phases(facts, PhaseSettings(batch_size=256, epochs=1)), device):
            pass
    assert given == [1, 8, 4, 8, 8, 8]  # on a GPU, and of what says nothing of its work, none are taken


def test_an_estimate_tells_of_the_whole_process_and_of_the_first_check():
    graph = small_graph()
    open_ended = tiny_settings(schedule={"epochs": 7, "period": 1, "growth": 2}, validation={"patience": 1})
    found = estimate(graph, open_ended, CPU)
    assert (found.first_epochs, found.epochs) == (1, 7)
    assert found.first_seconds == pytest.approx(found.seconds / 7)
    assert found.memory >= found.process > 100e6  # torch alone takes more than all tensors here
    assert found.training_state + found.activations + found.facts < 10e6
    timed = replace(open_ended, schedule=replace(open_ended.schedule, epochs=10**6, seconds=5.0))
    assert estimate(graph, timed, CPU).seconds == pytest.approx(5.0)


def test_an_estimate_counts_what_follows_the_first_phase_as_far_as_it_may_last():
    endless = tiny_settings("kbln", schedule={"epochs": 10**8, "period": 2, "seconds": 8.0})
    for head_epochs, seconds in ((10**8, 10.0), (1, 8.0)):
        settings = replace(endless, model=replace(endless.model, head_epochs=head_epochs))
        assert estimate(small_graph(), settings, CPU).seconds == pytest.approx(seconds, abs=0.5)


@pytest.mark.parametrize(("each", "steps"), [(7.0, 1), (1.6, 2), (0.3, 5), (0.125, 6)])
def test_a_slow_step_is_timed_once_and_a_quick_one_often(each, steps, monkeypatch):
    """A step of gran took seconds, and telling the time of six seconds of training took twenty."""
    now, run = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Runner:
        def run(self, items, seed):
            run.append(items)
            now[0] += each

    phase = Phase(Points(), (), 1)
    assert _seconds(Runner(), phase, 0, CPU) == pytest.approx(each)
    assert len(run) == steps


def test_an_estimate_tells_what_weighing_statistics_takes_on_top():
    graph = small_graph()
    plain = tiny_settings(schedule={"epochs": 2, "period": 2})
    assert estimate(graph, plain, CPU).weighing == 0
    found = estimate(graph, replace(plain, with_statistics=True), CPU)
    # The kind with most scores: heads or tails, of which the model and statistics rank each entity.
    table, entities = graph.split("valid"), graph.vocabulary.entity_count
    questions = max(len(table), table.qualifier_total)
    scores = 8 * RANKING * questions * (min(entities, RANKING * 64 + 64) + 1)
    assert found.weighing == 3 * scores + 20_000_000
    assert found.memory == found.process + found.weighing


def test_no_time_is_told_as_nothing():
    quick = Estimate(**dict.fromkeys((one.name for one in fields(Estimate)), 0))
    for found in (quick, replace(quick, epochs=2, first_epochs=1), replace(quick, reserved=0.1)):
        assert "1 s" in time_text(found)
        assert " 0 s" not in time_text(found)


def test_an_estimate_tells_what_making_rules_takes_where_that_is_more():
    """On WikiPeople- it told 1.5 GB, and 2.6 GB were used: twenty million pairs of traits are counted there."""
    facts = {places: [(f"thing {one}", "in", f"place {one % places}") for one in range(2_000)] for places in (1_000, 4)}
    few, many = (graph_from_facts({"train": said, "valid": said[:1]}) for said in facts.values())
    found = []
    for graph in (few, many):
        facts = FactTensors.from_table(graph.split("train"), graph.vocabulary, fit_scaling(graph, tiny_settings()))
        found.append((building_bytes(facts), weighing_bytes(frozenset(), graph, "valid", facts)))
    assert found[0][0] < found[0][1]
    assert found[1][0] == found[1][1] >= 60 * 4 * 500**2


def test_statistics_are_made_once_where_no_number_has_a_log_scale(tmp_path, monkeypatch):
    """They were made again for the means of numbers on log scales: on 300,000 facts for a minute, in a gigabyte."""
    monkeypatch.setattr("hynt.training.run.combined", lambda *given: pytest.fail("statistics are made again"))
    settings = tiny_settings(schedule={"epochs": 1}, optimiser={"learning_rate": 1e-9}, with_statistics=True)
    run = train(start(small_graph(people=100), settings, tmp_path / "run", CPU), CPU)
    assert (run.path / "combination.json").exists()


@pytest.mark.parametrize(("minutes", "compiled"), [(1, False), (10, True)])
def test_a_short_time_is_not_spent_on_compiling(minutes, compiled, tmp_path, monkeypatch):
    """A minute on a GPU went by before the first epoch was over."""
    found = []

    def trained(run, *given, **options):
        found.append(options["compiled"])
        return train(run, *given, **options)

    monkeypatch.setattr("hynt.training.run.train", trained)
    graph = small_graph(people=10)
    hynt.train(graph, "frequency", out=tmp_path / "run", changes=[f"schedule.seconds={60 * minutes}"])
    assert found == [compiled]


def knowing(facts: int, numbers: int) -> KnowledgeGraph:
    """A graph of so many training facts, of which so many say a number."""
    said = [(f"thing {one}", "size", float(one)) for one in range(numbers)]
    said += [(f"thing {one}", "next", f"thing {one + 1}") for one in range(facts - numbers)]
    return graph_from_facts({"train": said, "valid": said[:5]})


def test_where_minutes_are_said_and_no_model_the_study_names_it():
    assert {case.model for case in cases()} <= {name for name, entry in MODELS.items() if entry.learns}
    for case in cases():
        if case.facts < 3_000:
            graph = knowing(case.facts, round(case.numbers * case.facts))
            assert model_for(graph, case.minutes, on_gpu=case.device == "cuda") == case.model
    numbers, values = knowing(2_000, 1_200), knowing(2_000, 0)
    minute = SettingsRequest(minutes=1.0, until_done=True)
    assert resolve_settings(minute, numbers, on_gpu=False).model_name == "hynt-inductive"
    assert resolve_settings(minute, values, on_gpu=False).model_name == "hynt"
    for said in (
        replace(minute, model="hynt"),
        replace(minute, changes=["model.dimension=32"]),
        replace(minute, minutes=None),
        replace(minute, minutes=600.0),  # nothing like it was studied
    ):
        assert resolve_settings(said, numbers, on_gpu=False).model_name == "hynt"


def row(model, preset=None, **marks):
    tasks = {task: {"triplet": {"rmse" if task == "number" else "mrr": value}} for task, value in marks.items()}
    return {"model": model, "preset": preset, "valid": tasks, "test": {"realistic": tasks}}


def test_a_comparison_recommends_the_model_that_validation_prefers_among_those_that_answer_most():
    rows = [
        row("transea", "transea-small", link=0.9, number=0.01),
        row("hynt", link=0.4, relation=0.8, number=0.1),
        row("gran", "gran-small", link=0.5, relation=0.9, number=0.2),
    ]
    found = recommended({"rows": rows, "minutes_per_model": 2.0}, "my graph")
    assert found["model"] == "gran"
    assert found["command"] == (
        "hynt train 'my graph' --model gran --preset gran-small --set with_statistics=true --minutes 2 --out RUN"
    )
    assert "link MRR 0.500, relation MRR 0.900, number RMSE 0.2000" in found["sentence"]
    rows[2]["beside_seconds"] = 15.0  # validation and weighing: the command does all within its minutes
    found = recommended({"rows": rows, "minutes_per_model": 2.0}, "g")
    assert "--minutes 2.3 " in found["command"]
    assert "in 2 minutes of training, 2.3 minutes with all else, expect" in found["sentence"]
    assert recommended({"rows": rows[:2], "minutes_per_model": 2.0}, "g")["command"] == (
        "hynt train g --model hynt --minutes 2 --out RUN"
    )
    assert recommended({"rows": [], "minutes_per_model": 2.0}, "g") is None
