"""One update of the weights: bound the gradient's norm, then Adam, all on the device without a look from the host.

Adam's fused kernel divides gradients by a scale and skips the update when a flag is up; mixed-precision training uses
both for its own ends. Here the scale is the clipping factor, which spares a pass over all gradients, and the flag goes
up for good at the first loss or gradient that is not finite. So the weights stay as they were before the bad step,
however late the host learns of it.

The fused kernel is made for many small tensors. On a GPU it leaves half the memory's speed unused on a table with
millions of numbers; there Adam is also written out below and compiled, one sweep a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from hynt.training.settings import Optimiser

LARGE = 2**20
"""Numbers in a tensor from which on it gets a sweep of its own."""

Sweep: TypeAlias = Callable[
    [list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], Tensor, Tensor], None
]


class Optimisation:
    """Adam over some parameters, with its state."""

    def __init__(self, parameters: Sequence[nn.Parameter], settings: Optimiser, device: torch.device) -> None:
        self.parameters = list(parameters)
        self.settings = settings
        self.rate = torch.tensor(settings.learning_rate, dtype=torch.float32, device=device)  # ()
        self.failed = torch.zeros((), dtype=torch.float32, device=device)  # () 1 once a step was not finite
        self.means = [torch.zeros_like(parameter, requires_grad=False) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter, requires_grad=False) for parameter in self.parameters]
        self.steps = [torch.zeros((), dtype=torch.float32, device=device) for _ in self.parameters]
        self._sweep: Sweep | None = None

    def set_rate(self, rate: float) -> None:
        """The learning rate of the steps to come. Filled in place: a captured step reads the same tensor."""
        self.rate.fill_(rate)

    def compile_large(self, compiled: bool) -> None:
        """Whether large tensors get compiled sweeps of their own, or go with the rest."""
        self._sweep = torch.compile(self.sweep, dynamic=False) if compiled else None

    def forget_gradients(self) -> None:
        """Drops gradients, so that the next backward pass writes them instead of adding to them."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def update(self, total: Tensor) -> None:
        """Moves the parameters along their gradients, unless the loss `total`, (), or a gradient is not finite."""
        gradients = {i: p.grad for i, p in enumerate(self.parameters) if p.grad is not None}
        if not gradients:
            return
        norm = torch.linalg.vector_norm(torch.stack(list(torch._foreach_norm(list(gradients.values())))))
        self.failed.copy_(torch.maximum(self.failed, (~torch.isfinite(norm + total.detach())).float()))
        clip = self.settings.clip
        scale = torch.ones_like(norm) if clip is None else ((norm + 1e-6) / clip).clamp(min=1.0)
        large = [i for i in gradients if self._sweep is not None and self.parameters[i].numel() >= LARGE]
        if self._sweep is not None and large:
            self._sweep(
                [self.parameters[i].detach() for i in large], [gradients[i] for i in large],
                [self.means[i] for i in large], [self.squares[i] for i in large], [self.steps[i] for i in large],
                scale, self.failed,
            )  # fmt: skip
        rest = [i for i in gradients if i not in large]
        if rest:
            self._fused(rest, [gradients[i] for i in rest], None if clip is None else scale)

    def _fused(self, chosen: list[int], gradients: list[Tensor], scale: Tensor | None) -> None:
        adam(
            [self.parameters[i] for i in chosen], gradients, [self.means[i] for i in chosen],
            [self.squares[i] for i in chosen], [], [self.steps[i] for i in chosen],
            fused=True, grad_scale=scale, found_inf=self.failed, capturable=self.rate.is_cuda,
            amsgrad=False, beta1=self.settings.beta1, beta2=self.settings.beta2, lr=self.rate, weight_decay=0.0,
            eps=self.settings.epsilon, maximize=False,
        )  # fmt: skip

    def sweep(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        means: list[Tensor],
        squares: list[Tensor],
        steps: list[Tensor],
        scale: Tensor,
        failed: Tensor,
    ) -> None:
        """Adam written out (Kingma and Ba, algorithm 1), with the same scale and flag as the fused kernel."""
        beta1, beta2, epsilon = self.settings.beta1, self.settings.beta2, self.settings.epsilon
        stays = failed > 0
        for parameter, raw, mean, square, step in zip(parameters, gradients, means, squares, steps, strict=True):
            count = step + 1
            gradient = raw / scale
            new_mean = mean + (1 - beta1) * (gradient - mean)
            new_square = beta2 * square + (1 - beta2) * gradient * gradient
            size = self.rate / (1 - torch.pow(beta1, count))
            width = new_square.sqrt() / (1 - torch.pow(beta2, count)).sqrt() + epsilon
            parameter.copy_(torch.where(stays, parameter, parameter - size * new_mean / width))
            mean.copy_(torch.where(stays, mean, new_mean))
            square.copy_(torch.where(stays, square, new_square))
            step.copy_(torch.where(stays, step, count))

    def tensors(self) -> dict[str, Tensor]:
        """The state by name, for a checkpoint."""
        kinds = {"mean": self.means, "square": self.squares, "step": self.steps}
        return {f"{kind}.{index}": value for kind, values in kinds.items() for index, value in enumerate(values)}
