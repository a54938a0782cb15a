"""The loop: same seed same weights, going on is going through, best and early stopping, failures told at once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from hynt.errors import UsageError
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, NotFinite, TrainingState
from hynt.runs.settings import Optimiser, Saving, Schedule, TrainingSettings, Validation
from hynt.training.trainer import chosen_metric
from tests.training.toy import Line, Notebook, Points, settings, trainer


def trained(chosen=None, **options):
    model = Line()
    notebook = Notebook(model)
    end = trainer(model, Points(), notebook, chosen or settings(), **options).train(TrainingState())
    return model, notebook, end


def same(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one) and one.keys() == other.keys()


def test_training_finds_the_line():
    model, notebook, end = trained(settings(epochs=60))
    assert end.finished
    losses = [sum(record.losses.values()) for record in notebook.epochs]
    assert losses[-1] < losses[0] / 4
    assert [record.epoch for record in notebook.epochs] == list(range(1, 61))
    assert all(sum(record.counts.values()) == 18 for record in notebook.epochs)
    assert torch.equal(model.unused, torch.ones(2))


def test_same_seed_same_weights_and_another_seed_others():
    one, two, other = trained()[0], trained()[0], trained(settings(seed=1))[0]
    assert same(one.state_dict(), two.state_dict())
    assert not same(one.state_dict(), other.state_dict())


def test_each_epoch_is_made_once_and_in_order():
    model, stream = Line(), Points()
    trainer(model, stream, Notebook(model), settings()).train(TrainingState())
    assert stream.made == list(range(6))


@pytest.mark.parametrize("at", range(30))
def test_going_on_from_any_step_gives_the_same_weights(at):
    whole, whole_notes, _ = trained(validate=lambda: {"toy": {"all": {"score": 1.0}}})
    model = Line()
    notebook = Notebook(model)
    stopper = Stopper()
    first = trainer(
        model, Points(), notebook, settings(), stopper=stopper, validate=lambda: {"toy": {"all": {"score": 1.0}}}
    )
    run, steps = first.runner_for, []

    def counting(phase, optimisation):
        runner = run(phase, optimisation)
        real = runner.run

        def step(items, seed):
            real(items, seed)
            steps.append(seed)
            stopper.asked = len(steps) == at + 1

        runner.run = step
        return runner

    first.runner_for = counting
    with pytest.raises(Interrupted) as stopped:
        first.train(TrainingState())
    assert "saved" in str(stopped.value)
    progress, weights, state, _ = notebook.saves[-1]
    assert len(set(steps)) == at + 1

    fresh = Line()
    fresh.load_state_dict(weights)
    later = Notebook(fresh)

    def restore(optimisation):
        for name, value in optimisation.tensors().items():
            value.copy_(state[name])

    again = TrainingState.from_mapping(progress.to_mapping(), "here")
    assert again == progress
    second = trainer(fresh, Points(), later, settings(), validate=lambda: {"toy": {"all": {"score": 1.0}}})
    end = second.train(again, restore)
    assert end.finished
    assert same(fresh.state_dict(), whole.state_dict())
    losses = [record.losses for record in notebook.epochs + later.epochs]
    assert losses == [record.losses for record in whole_notes.epochs]
    final = whole_notes.saves[-1]
    assert same(later.saves[-1][2], final[2])


def test_best_is_marked_and_ties_keep_the_earlier():
    scores = iter([0.2, 0.5, 0.5])
    _, notebook, end = trained(validate=lambda: {"toy": {"all": {"score": next(scores)}}})
    assert [record.is_best for record in notebook.validations] == [True, True, False]
    assert (end.best.epoch, end.best.value) == (4, 0.5)
    assert [best for *_, best in notebook.saves] == [True, True, False]


def test_less_is_better_for_errors():
    scores = iter([0.2, 0.5, 0.1])
    chosen = settings(validation=Validation(metric="number.all.rmse", every=2))
    _, _, end = trained(chosen, validate=lambda: {"number": {"all": {"rmse": next(scores)}}})
    assert end.best.epoch == 6


def test_early_stopping_after_misses_and_a_resumed_run_stays_stopped():
    scores = iter([0.5, 0.4, 0.4, 0.9])
    chosen = settings(epochs=20, validation=Validation(metric="toy.all.score", every=1, patience=2))
    validate = lambda: {"toy": {"all": {"score": next(scores)}}}  # noqa: E731
    model, notebook, end = trained(chosen, validate=validate)
    assert end.finished
    assert len(notebook.epochs) == 3
    progress = notebook.saves[-1][0]
    assert (progress.epoch, progress.misses) == (3, 2)
    again = Notebook(model)
    assert trainer(model, Points(), again, chosen, validate=validate).train(progress).finished
    assert again.epochs == []


def test_a_metric_without_questions_is_never_best():
    _, notebook, end = trained(validate=lambda: {"toy": {"all": {"score": None}}})
    assert end.best is None
    assert all(math.isnan(record.value) for record in notebook.validations)


def test_unknown_metric_is_named():
    with pytest.raises(UsageError, match=r"validation has no metric 'link\.all\.mmr'"):
        chosen_metric({"link": {"all": {"mrr": 0.1}}}, "link.all.mmr")


def test_loss_that_is_not_finite_stops_at_once_and_moves_no_weight():
    model = Line()
    notebook = Notebook(model)
    loop = trainer(
        model, Points(spoiled_epoch=3), notebook, settings(), validate=lambda: {"toy": {"all": {"score": 1.0}}}
    )
    with pytest.raises(
        NotFinite, match=r"no longer a finite number in epoch 4, near step 3.*lower optimiser.learning_rate"
    ):
        loop.train(TrainingState())
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    assert notebook.saves[-1][0].epoch == 2


def test_checkpoints_come_by_the_clock_too():
    now = [0.0]

    def clock():
        now[0] += 1.0
        return now[0]

    model = Line()
    notebook = Notebook(model)
    trainer(model, Points(), notebook, settings(saving=Saving(minutes=0.05)), clock=clock).train(TrainingState())
    assert len(notebook.saves) > 3
    assert any(progress.step for progress, *_ in notebook.saves)
    seconds = [progress.seconds for progress, *_ in notebook.saves]
    assert seconds == sorted(seconds)


def test_training_on_valid_refuses_early_stopping():
    with pytest.raises(ValueError, match="leaves no validation split to stop early on"):
        TrainingSettings(train_on="train+valid", validation=Validation(patience=2))
    assert settings(train_on="train+valid").validation_epochs() == ()


class Ticking:
    """A clock that goes on by a second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_training_ends_when_its_seconds_are_up_and_is_validated_then():
    scores = iter(range(1, 1000))
    chosen = settings(
        epochs=1000,
        schedule=Schedule(epochs=1000, period=2, seconds=200.0),
        validation=Validation(metric="toy.all.score", every=1000, seconds=60.0),
    )
    _, notebook, end = trained(chosen, validate=lambda: {"toy": {"all": {"score": next(scores)}}}, clock=Ticking())
    assert end.finished
    assert 0 < len(notebook.epochs) < 1000
    assert 2 <= len(notebook.validations) <= 4  # every sixty seconds, and at the end
    assert notebook.validations[-1].epoch == notebook.epochs[-1].epoch
    assert notebook.saves[-1][0].best.epoch == notebook.epochs[-1].epoch
    assert notebook.saves[-1][0].seconds >= 195.0


@pytest.mark.parametrize("limit", range(20, 60))
def test_wherever_time_runs_out_the_last_epoch_is_validated_and_saved(limit):
    chosen = settings(
        epochs=1000,
        schedule=Schedule(epochs=1000, period=2, seconds=float(limit)),
        validation=Validation(metric="toy.all.score", every=1000),
    )
    _, notebook, end = trained(chosen, validate=lambda: {"toy": {"all": {"score": 1.0}}}, clock=Ticking())
    assert notebook.validations[-1].epoch == notebook.epochs[-1].epoch
    assert end.seconds >= limit


def test_an_epoch_may_be_cut_short_and_says_how_many_questions_it_had():
    chosen = settings(epochs=1000, schedule=Schedule(epochs=1000, period=2, seconds=0.5))
    _, notebook, _ = trained(chosen, clock=Ticking())
    (only,) = notebook.epochs
    assert only.epoch == 1
    assert sum(only.counts.values()) == 4  # one step of five
    assert only.items == 4  # what its seconds were spent on, from which the speed is told; a whole epoch has 18
    assert only.time_left <= 0


def test_an_epoch_begun_in_another_sitting_counts_what_was_run_in_this_one():
    model = Line()
    notebook = Notebook(model)
    trainer(model, Points(), notebook, settings(epochs=2), clock=Ticking()).train(TrainingState(step=3))
    assert [record.items for record in notebook.epochs] == [7, 18]  # two steps of five, by their share
    assert [record.time_left for record in notebook.epochs] == [None, None]


def test_the_seconds_of_an_epoch_leave_out_the_validation_before_it():
    clock = Ticking()

    def validate():
        clock.now += 1000.0
        return {"toy": {"all": {"score": 1.0}}}

    _, notebook, _ = trained(validate=validate, clock=clock)
    assert len(notebook.validations) == 3
    assert all(record.seconds < 100.0 for record in notebook.epochs)


def test_a_run_that_was_out_of_time_is_not_trained_further():
    chosen = settings(epochs=1000, schedule=Schedule(epochs=1000, period=2, seconds=50.0))
    model = Line()
    notebook = Notebook(model)
    trainer(model, Points(), notebook, chosen, clock=Ticking()).train(TrainingState())
    saved = notebook.saves[-1][0]
    before = len(notebook.epochs)
    end = trainer(model, Points(), notebook, chosen, clock=Ticking()).train(saved)
    assert end.finished
    assert len(notebook.epochs) == before


def test_what_follows_the_first_phase_has_a_quarter_of_the_time_besides():
    chosen = settings(epochs=1000, schedule=Schedule(epochs=1000, period=2, seconds=200.0))
    model = Line()
    notebook = Notebook(model)
    both = trainer(model, Points(), notebook, chosen, clock=Ticking())
    both.phases = [*both.phases, replace(both.phases[0], epochs=10**9, rate=0.01)]
    end = both.train(TrainingState())
    assert end.finished
    assert 250.0 <= end.seconds < 265.0
    assert end.phase == 2


@pytest.mark.parametrize(
    ("group", "name", "usual"),
    [("optimiser", "learning_rate", "0.001"), ("losses", "number_weight", "1"), ("schedule", "lowest_rate", "0")],
)
def test_a_factor_far_above_what_is_usual_is_what_a_loss_without_end_is_blamed_on(group, name, usual):
    chosen = settings()
    chosen = replace(chosen, **{group: replace(getattr(chosen, group), **{name: 1e30})})
    model = Line()
    loop = trainer(model, Points(spoiled_epoch=3), Notebook(model), chosen)
    with pytest.raises(NotFinite, match=rf"a lower {group}.{name} than 1e\+30, of which {usual} is usual"):
        loop.train(TrainingState())


def test_a_linear_schedule_ends_with_the_time():
    chosen = settings(
        epochs=1000,
        schedule=Schedule(epochs=1000, shape="linear", seconds=300.0),
        optimiser=Optimiser(learning_rate=1.0),
    )
    _, notebook, _ = trained(chosen, clock=Ticking())
    rates = [record.rate for record in notebook.epochs]
    assert len(rates) < 100
    assert max(rates) > 0.5
    assert rates[-1] < 0.1
