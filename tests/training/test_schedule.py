"""The learning rate falls as half a cosine and starts again, each cycle longer; validation follows the cycles."""

from __future__ import annotations

import pytest
import torch

from hynt.runs.settings import Schedule, TrainingSettings, Validation
from hynt.training.optimisation import MANY, lasting, learning_rate


@pytest.mark.parametrize("period,growth", [(5, 2), (3, 1), (1, 2), (7, 3)])
def test_rates_agree_with_torch(period, growth):
    schedule = Schedule(epochs=60, period=period, growth=growth, lowest_rate=1e-5)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=1e-3)
    torch_schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimiser, period, growth, eta_min=1e-5)
    for epoch in range(60):
        assert learning_rate(schedule, 1e-3, epoch) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)
        optimiser.step()
        torch_schedule.step()


def test_authors_validate_at_the_ends_of_cycles():
    assert Schedule(epochs=700, period=100).cycle_ends() == (100, 300, 700)
    assert Schedule(epochs=350, period=50).cycle_ends() == (50, 150, 350)
    assert TrainingSettings(schedule=Schedule(epochs=400, period=50)).validation_epochs() == (50, 150, 350, 400)
    every = TrainingSettings(schedule=Schedule(epochs=25, period=50), validation=Validation(every=10))
    assert every.validation_epochs() == (10, 20, 25)
    late = TrainingSettings(schedule=Schedule(epochs=25), validation=Validation(every=5, first=11))
    assert late.validation_epochs() == (15, 20, 25)


def test_a_linear_schedule_warms_up_and_falls_from_the_first_step_on():
    """GRAN's: where warming up ends the rate drops to what falling from the start would have left."""
    schedule = Schedule(epochs=20, shape="linear", warm_up=0.1)
    assert learning_rate(schedule, 0.5, 0) == 0.0
    assert learning_rate(schedule, 0.5, 1, 0.5) == pytest.approx(0.375)
    assert learning_rate(schedule, 0.5, 1, 0.9999) == pytest.approx(0.5, rel=1e-3)
    assert learning_rate(schedule, 0.5, 2) == pytest.approx(0.45)
    assert learning_rate(schedule, 0.5, 19, 0.5) == pytest.approx(0.0125)
    assert learning_rate(schedule, 0.5, 20) == 0.0
    assert learning_rate(Schedule(epochs=20, shape="linear", warm_up=0.0), 0.5, 0) == 0.5


def test_a_cosine_after_a_warm_up_moves_from_step_to_step():
    schedule = Schedule(epochs=20, shape="warm-cosine", warm_up=0.1, lowest_rate=0.01)
    assert learning_rate(schedule, 0.5, 0) == 0.0
    assert learning_rate(schedule, 0.5, 1, 0.5) == pytest.approx(0.375)
    assert learning_rate(schedule, 0.5, 2) == pytest.approx(0.5)
    assert learning_rate(schedule, 0.5, 11) == pytest.approx(0.255)
    assert learning_rate(schedule, 0.5, 20) == pytest.approx(0.01)
    assert schedule.cycle_ends() == ()


def test_a_schedule_in_steps_falls_after_each_period():
    schedule = Schedule(epochs=400, shape="steps", period=50, decay=0.95)
    assert [learning_rate(schedule, 1.0, epoch) for epoch in (0, 49, 50, 99, 100)] == pytest.approx(
        [1.0, 1.0, 0.95, 0.95, 0.9025]
    )
    assert schedule.cycle_ends() == ()


def test_a_schedule_that_lasts_some_seconds_keeps_its_cycles_by_the_share_of_time():
    cycles = Schedule(epochs=350, period=50)
    long = lasting(cycles, 60.0)
    assert long.seconds == 60.0
    for epoch in (0, 10, 49, 50, 149, 150, 349):
        assert learning_rate(long, 1e-3, epoch * MANY) == pytest.approx(learning_rate(cycles, 1e-3, epoch))
    falling = lasting(Schedule(epochs=400, shape="steps", period=50), 60.0)
    assert falling.period == 50
    assert learning_rate(falling, 1.0, 100) == pytest.approx(0.9025)
