"""An exponential average of the weights: steadier than the weights of any one step, and what a run answers with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of some parameters over the steps, where each step back counts `decay` times as much.

    The first 1 / (1 − decay) steps count alike: otherwise what the weights were before the first one would linger.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], decay: float, device: torch.device) -> None:
        self.decay = decay
        self._parameters = list({id(one): one for one in parameters}.values())
        self._averages = [one.detach().clone() for one in self._parameters]
        self._steps = torch.zeros((), dtype=torch.float32, device=device)

    @torch.no_grad()
    def follow(self, failed: Tensor) -> None:
        """Takes in the weights after a step; where `failed` () is up, nothing changes."""
        works = (failed == 0).float()
        self._steps.add_(works)
        share = works * (1 / self._steps.clamp(min=1)).clamp(min=1 - self.decay)
        away = torch._foreach_sub(list(self._parameters), self._averages)
        torch._foreach_mul_(away, share)
        torch._foreach_add_(self._averages, away)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the model has the averages; the weights that go on learning are kept, see `tensors`."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def tensors(self) -> dict[str, Tensor]:
        """Within `in_place`: what is needed besides the model's weights to go on, by name, for a checkpoint."""
        return {"averaged_steps": self._steps} | {f"learning.{i}": one for i, one in enumerate(self._averages)}

    @torch.no_grad()
    def _exchange(self) -> None:
        for parameter, average in zip(self._parameters, self._averages, strict=True):
            kept = parameter.clone()
            parameter.copy_(average)
            average.copy_(kept)
