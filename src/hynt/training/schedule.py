"""The learning rate of each epoch: cosine annealing with warm restarts, whose cycles grow."""

from __future__ import annotations

import math

from hynt.training.settings import Schedule


def cycle_of(schedule: Schedule, epoch: int) -> tuple[int, int]:
    """(epochs into its cycle, length of that cycle) of an epoch counted from 0."""
    length, left = schedule.period, epoch
    while left >= length:
        left -= length
        length *= schedule.growth
    return left, length


def learning_rate(schedule: Schedule, highest: float, epoch: int) -> float:
    """The rate throughout an epoch counted from 0: `highest` at the start of a cycle, falling as half a cosine."""
    done, length = cycle_of(schedule, epoch)
    share = (1 + math.cos(math.pi * done / length)) / 2
    return schedule.lowest_rate + (highest - schedule.lowest_rate) * share
