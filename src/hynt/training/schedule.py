"""The learning rate of each epoch or step, by the schedule's shape."""

from __future__ import annotations

import math
from dataclasses import replace

from hynt.runs.settings import Schedule

MANY = 100_000
"""Times as many epochs as a schedule has: more than any budget of time lets through."""


def lasting(schedule: Schedule, seconds: float) -> Schedule:
    """The schedule stretched or cut to these seconds of training: time alone ends it.

    A cosine keeps its cycles and a line its fall, both by the share of time that is over; a rate that falls in steps
    goes on falling, after as many epochs as before.
    """
    period = schedule.period * MANY if schedule.shape == "cosine" else schedule.period
    return replace(schedule, epochs=schedule.epochs * MANY, period=period, seconds=seconds)


def cycle_of(schedule: Schedule, epoch: int) -> tuple[int, int]:
    """(epochs into its cycle, length of that cycle) of an epoch counted from 0."""
    length, left = schedule.period, epoch
    while left >= length:
        left -= length
        length *= schedule.growth
    return left, length


def learning_rate(schedule: Schedule, highest: float, epoch: int, share_of_epoch: float = 0.0) -> float:
    """The rate in an epoch counted from 0, of which `share_of_epoch` is done: only "linear" moves within an epoch.

    A cosine cycle starts at `highest`. The fall of "linear" counts from the very first step, as in GRAN's code: where
    warming up ends, the rate drops from `highest` to (1 − warm-up) of it.
    """
    if schedule.shape == "steps":
        return schedule.lowest_rate + (highest - schedule.lowest_rate) * schedule.decay ** (epoch // schedule.period)
    if schedule.shape == "linear":
        time = min((epoch + share_of_epoch) / schedule.epochs, 1.0)
        share = time / schedule.warm_up if time < schedule.warm_up else 1 - time
        return schedule.lowest_rate + (highest - schedule.lowest_rate) * share
    done, length = cycle_of(schedule, epoch)
    share = (1 + math.cos(math.pi * done / length)) / 2
    return schedule.lowest_rate + (highest - schedule.lowest_rate) * share
