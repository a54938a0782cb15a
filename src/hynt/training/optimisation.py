"""One update of the weights: bound the gradient's norm, then Adam, Muon or plain descent, all on the device without a
look from the host.

The fused kernels divide gradients by a scale and skip the update when a flag is up; mixed-precision training uses
both for its own ends. Here the scale is the clipping factor, which spares a pass over all gradients, and the flag goes
up for good at the first loss or gradient that is not finite. So the weights stay as they were before the bad step,
however late the host learns of it. On a GPU Adam has a kernel of its own, `table_update`, with the same two.

A run answers with an exponential average of the weights, which is steadier than those of any one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from hynt.errors import UsageError
from hynt.runs.settings import Optimiser, Schedule
from hynt.training.muon import Muon

LARGE = 2**20
"""Numbers in a tensor from which on it is swept alone on a GPU. Smaller ones lie side by side and are swept at once."""


class Optimisation:
    """An optimiser over some parameters with its state, and perhaps a second one, which takes other steps.

    A parameter that both move has a state in each. By "muon" layers' matrices are moved by Muon and the rest by Adam.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        settings: Optimiser,
        device: torch.device,
        second: Sequence[nn.Parameter] = (),
        *,
        matrices: Sequence[nn.Parameter] = (),
        sweeps: bool | None = None,
    ) -> None:
        """`matrices`: which of them are layers' matrices, for Muon; `sweeps`: whether Adam runs by the kernel of
        `table_update`; None: where there is one.
        """
        self.parameters = [*parameters, *second]
        self._own = (range(len(parameters)), range(len(parameters), len(self.parameters)))
        self.settings = settings
        self.rate = torch.tensor(settings.learning_rate, dtype=torch.float32, device=device)  # ()
        self.failed = torch.zeros((), dtype=torch.float32, device=device)  # () 1 once a step was not finite
        by_muon = {id(one) for one in matrices} if settings.method == "muon" else set()
        if settings.method == "muon" and not by_muon:
            raise UsageError(
                "this model has no layers of square matrices, which Muon is for.",
                where="optimiser.method",
                advice="Say adam.",
            )
        # What Muon moves has no moments here.
        self._by_muon = frozenset(i for i, parameter in enumerate(self.parameters) if id(parameter) in by_muon)
        states = [one[:0] if i in self._by_muon else one for i, one in enumerate(self.parameters)]
        self.means = [torch.zeros_like(parameter, requires_grad=False) for parameter in states]
        self.squares = [torch.zeros_like(parameter, requires_grad=False) for parameter in states]
        self._all_steps = torch.zeros(len(self.parameters), dtype=torch.float32, device=device)
        self.steps = list(self._all_steps.unbind())  # each () float32
        self._whole = torch.ones((), dtype=torch.float32, device=device)  # the scale of gradients that are not clipped
        if sweeps is None:
            sweeps = device.type == "cuda" and find_spec("triton") is not None
        plain = not second and (settings.method == "muon" or (settings.method == "adam" and not settings.weight_decay))
        self._sweeps = sweeps and plain and all(one.dtype == torch.float32 for one in self.parameters)
        # Beside Muon only matrices decay: a norm's gain or a bias has no reason to be small.
        self._decays = torch.tensor([settings.weight_decay * (one.dim() > 1) for one in self.parameters], device=device)
        self._moves: dict[tuple[int, ...], Tensor] = {}  # for parameters that move together: 1 for each of them
        self._small: FlatParameters | None = None
        rest = [i for i in range(len(self.parameters)) if i not in self._by_muon]
        small = [i for i in rest if self.parameters[i].numel() < LARGE]
        if self._sweeps and small:
            from hynt.kernels.table_update import BLOCK

            self._small = FlatParameters(small, self.parameters, self.means, self.squares, BLOCK)
        by_muon_in_order = [self.parameters[i] for i in sorted(self._by_muon)]
        self._muon = Muon(by_muon_in_order, settings.weight_decay, beside=self._sweeps)
        wholes: list[Tensor] = []
        if self._sweeps:
            large = [self.parameters[i] for i in rest if i not in small]
            wholes = [*self._muon.wholes.values(), *([] if self._small is None else [self._small.values]), *large]
        self._average = WeightAverage(self.parameters, settings.average, device, wholes) if settings.average else None
        # Where several processes train together: sums gradients in place, and the loss, over all of them.
        self.exchange: Callable[[Sequence[Tensor], Tensor], Tensor] | None = None
        # Where tables are sharded over processes: what moves them after each update, and this process's state of that.
        self.after: Callable[[], None] | None = None
        self.tables: dict[str, Tensor] = {}

    def set_rate(self, rate: float) -> None:
        """The learning rate of the steps to come. Filled in place: a captured step reads the same tensor."""
        self.rate.fill_(rate)

    def forget_gradients(self) -> None:
        """Drops gradients, so that the next backward pass writes them instead of adding to them."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def update(self, total: Tensor, *, second: bool = False) -> None:
        """Moves the parameters along their gradients, unless the loss `total`, (), or a gradient is not finite."""
        self._move(total, second)
        if self._average is not None:
            self._average.follow(self.failed)

    def answering(self) -> AbstractContextManager[None]:
        """Within it the model has the weights that it answers with: their average, where there is one. What is saved
        and restored is saved and restored within it.
        """
        return nullcontext() if self._average is None else self._average.in_place()

    def _move(self, total: Tensor, second: bool) -> None:
        moved = [index for index in self._own[second] if self.parameters[index].grad is not None]
        gradients = [gradient for gradient in (self.parameters[i].grad for i in moved) if gradient is not None]
        if not gradients:
            return
        if self.exchange is not None:
            total = self.exchange(gradients, total)
        rest = [i for i in moved if i not in self._by_muon]
        if self._sweeps:
            large = [i for i in rest if self._small is None or i not in self._small.indices]
            of_matrices = [one for i, one in zip(moved, gradients, strict=True) if i in self._by_muon]
            swept = [one for i, one in zip(moved, gradients, strict=True) if i in large]
            swept += [] if self._small is None else [self._small.gradient(self.parameters)]
            gradients = of_matrices + swept
        clip, scale = self.settings.clip, None
        if self._sweeps and clip is None and not self._by_muon:
            from hynt.kernels.table_update import look_for_failure

            look_for_failure(gradients, total.detach(), self.failed)
        else:
            norm = torch.linalg.vector_norm(torch.stack(list(torch._foreach_norm(gradients))))
            self.failed.copy_(torch.maximum(self.failed, (~torch.isfinite(norm + total.detach())).float()))
            scale = None if clip is None else ((norm + 1e-6) / clip).clamp(min=1.0)
        if self.settings.method == "sgd":
            sgd(
                [self.parameters[i] for i in moved],
                gradients,
                [None] * len(moved),
                fused=True,
                grad_scale=scale,
                found_inf=self.failed,
                weight_decay=0.0,
                momentum=0.0,
                lr=self.rate,  # type: ignore[arg-type]
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )
            return
        if self._by_muon:
            self._muon.update(self.rate * (self.settings.matrix_rate / self.settings.learning_rate), scale, self.failed)
        if self._sweeps:
            self._sweep(rest, large, swept, self._whole if scale is None else scale)
            return
        decay = self.settings.weight_decay
        if not self._by_muon:
            self._adam(moved, scale, decay)
            return
        self._adam([i for i in rest if self.parameters[i].dim() > 1], scale, decay)
        self._adam([i for i in rest if self.parameters[i].dim() <= 1], scale, 0.0)

    def _adam(self, moved: Sequence[int], scale: Tensor | None, weight_decay: float) -> None:
        """Moves these parameters, all of which have gradients."""
        gradients = [gradient for gradient in (self.parameters[i].grad for i in moved) if gradient is not None]
        if not gradients:
            return
        adam(
            [self.parameters[i] for i in moved],
            gradients,
            [self.means[i] for i in moved],
            [self.squares[i] for i in moved],
            [],
            [self.steps[i] for i in moved],
            fused=True,
            grad_scale=scale,
            found_inf=self.failed,
            capturable=self.rate.is_cuda,
            amsgrad=False,
            beta1=self.settings.beta1,
            beta2=self.settings.beta2,
            lr=self.rate,
            weight_decay=weight_decay,
            decoupled_weight_decay=weight_decay > 0,
            eps=self.settings.epsilon,
            maximize=False,
        )

    def _sweep(self, moved: Sequence[int], large: Sequence[int], gradients: Sequence[Tensor], scale: Tensor) -> None:
        """Moves large parameters one by one, then all small ones; `gradients` are in that order."""
        from hynt.kernels.table_update import update_table

        # Made outside any capture: steps are warmed up first.
        moves = self._moves.get(tuple(moved))
        if moves is None:
            moves = self._moves[tuple(moved)] = torch.zeros_like(self._all_steps)
            moves[list(moved)] = 1.0
        settings = self.settings
        common = (self.rate, scale, self.failed, (settings.beta1, settings.beta2), settings.epsilon)
        for i, gradient in zip(large, gradients, strict=False):
            table = self.parameters[i]
            mean, square, step, decay = self.means[i], self.squares[i], self.steps[i], self._decays[i]
            update_table(table, gradient.contiguous(), mean, square, step, decay, *common)
        if self._small is not None:
            small = self._small
            update_table(
                small.values,
                gradients[-1],
                small.means,
                small.squares,
                self._all_steps,
                self._decays,
                *common,
                owners=small.owners,
                moves=moves,
            )
        self._all_steps.addcmul_(moves, 1 - self.failed)

    def tensors(self) -> dict[str, Tensor]:
        """The state by name, for a checkpoint."""
        kinds = {"mean": self.means, "square": self.squares, "step": self.steps}
        found = {
            f"{kind}.{index}": value
            for kind, values in kinds.items()
            for index, value in enumerate(values)
            if index not in self._by_muon
        }
        return found | self._muon.tensors() | ({} if self._average is None else self._average.tensors())


# Small parameters laid side by side in one tensor, so that one sweep moves them all.


class FlatParameters:
    """Makes parameters, and their two states, views of three long tensors. Each begins at a multiple of `block`."""

    def __init__(
        self,
        indices: Sequence[int],
        parameters: Sequence[nn.Parameter],
        means: list[Tensor],
        squares: list[Tensor],
        block: int,
    ) -> None:
        """Of all parameters and their states those at `indices`; `means` and `squares` get the views."""
        self.indices = list(indices)
        counts = [parameters[i].numel() for i in self.indices]
        blocks = [-(-count // block) for count in counts]
        device = parameters[self.indices[0]].device
        room = block * sum(blocks)
        self.values, self.means, self.squares, self.gradients = (torch.zeros(room, device=device) for _ in range(4))
        self.owners = torch.repeat_interleave(torch.tensor(self.indices), torch.tensor(blocks)).int().to(device)
        self._places: dict[int, Tensor] = {}  # views of the gradients
        start = 0
        for i, count, wide in zip(self.indices, counts, blocks, strict=True):
            parameter, place = parameters[i], slice(start, start + count)
            self.values[place].copy_(parameter.detach().flatten())
            parameter.data = self.values[place].view(parameter.shape)
            means[i] = self.means[place].view(parameter.shape)
            squares[i] = self.squares[place].view(parameter.shape)
            self._places[i] = self.gradients[place].view(parameter.shape)
            start += block * wide

    def gradient(self, parameters: Sequence[nn.Parameter]) -> Tensor:
        """(all,) the gradients in the same order, 0 where there is none."""
        there, gradients, missing = [], [], []
        for i, place in self._places.items():
            gradient = parameters[i].grad
            if gradient is None:
                missing.append(place)
            else:
                there.append(place)
                gradients.append(gradient)
        torch._foreach_copy_(there, gradients)
        if missing:
            torch._foreach_zero_(missing)
        return self.gradients


# The learning rate of each epoch or step, by the schedule's shape.

MOVING = ("linear", "warm-cosine")
"""Shapes whose rate moves from step to step, by the share of all steps that is over."""

MANY = 100_000
"""Times as many epochs as a schedule has: more than any budget of time lets through."""


def lasting(schedule: Schedule, seconds: float) -> Schedule:
    """The schedule stretched or cut to these seconds of training: time alone ends it.

    A cosine keeps its cycles and a line its fall, both by the share of time that is over; a rate that falls in steps
    goes on falling, after as many epochs as before.
    """
    period = schedule.period * MANY if schedule.shape == "cosine" else schedule.period
    return replace(schedule, epochs=schedule.epochs * MANY, period=period, seconds=seconds)


LEAST = 0.2
"""Of the time that a command may last, for training, however long all else takes."""


def training_seconds(schedule: Schedule, reserved: float) -> float | None:
    """How long the first phase may last, where so many seconds are kept for all else; None: the clock ends nothing."""
    return None if schedule.seconds is None else max(schedule.seconds - reserved, LEAST * schedule.seconds)


def cycle_of(schedule: Schedule, epoch: int) -> tuple[int, int]:
    """(epochs into its cycle, length of that cycle) of an epoch counted from 0."""
    length, left = schedule.period, epoch
    while left >= length:
        left -= length
        length *= schedule.growth
    return left, length


def learning_rate(schedule: Schedule, highest: float, epoch: int, share_of_epoch: float = 0.0) -> float:
    """The rate in an epoch counted from 0, of which `share_of_epoch` is done: only shapes of `MOVING` move within one.

    A cosine cycle starts at `highest`. The fall of "linear" counts from the very first step, as in GRAN's code: where
    warming up ends, the rate drops from `highest` to (1 − warm-up) of it.
    """
    if schedule.shape == "steps":
        return schedule.lowest_rate + (highest - schedule.lowest_rate) * schedule.decay ** (epoch // schedule.period)
    if schedule.shape == "linear":
        time = min((epoch + share_of_epoch) / schedule.epochs, 1.0)
        share = time / schedule.warm_up if time < schedule.warm_up else 1 - time
        return schedule.lowest_rate + (highest - schedule.lowest_rate) * share
    if schedule.shape == "warm-cosine":
        time = min((epoch + share_of_epoch) / schedule.epochs, 1.0)
        if time < schedule.warm_up:
            return highest * time / schedule.warm_up
        share = (1 + math.cos(math.pi * (time - schedule.warm_up) / (1 - schedule.warm_up))) / 2
        return schedule.lowest_rate + (highest - schedule.lowest_rate) * share
    done, length = cycle_of(schedule, epoch)
    share = (1 + math.cos(math.pi * done / length)) / 2
    return schedule.lowest_rate + (highest - schedule.lowest_rate) * share


class WeightAverage:
    """The average of some parameters over the steps, where each step back counts `decay` times as much.

    The first 1 / (1 − decay) steps count alike: otherwise what the weights were before the first one would linger.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], decay: float, device: torch.device, wholes: Sequence[Tensor] = ()
    ) -> None:
        """`wholes`: the few long tensors that the parameters are parts of, where they are."""
        self.decay = decay
        self._parameters = list({id(one): one for one in parameters}.values())
        self._wholes = [(one.detach(), one.detach().clone()) for one in wholes]
        self._averages = [self._average_of(one.detach()) for one in self._parameters]
        self._steps = torch.zeros((), dtype=torch.float32, device=device)

    def _average_of(self, parameter: Tensor) -> Tensor:
        """A part of the average of what the parameter is a part of."""
        for whole, average in self._wholes:
            if whole.untyped_storage().data_ptr() == parameter.untyped_storage().data_ptr():
                start = parameter.storage_offset() - whole.storage_offset()
                return average.view(-1)[start : start + parameter.numel()].view(parameter.shape)
        return parameter.clone()

    @torch.no_grad()
    def follow(self, failed: Tensor) -> None:
        """Takes in the weights after a step; where `failed` () is up, nothing changes."""
        works = (failed == 0).float()
        self._steps.add_(works)
        share = works * (1 / self._steps.clamp(min=1)).clamp(min=1 - self.decay)
        if self._wholes:
            for whole, average in self._wholes:
                average.lerp_(whole, share)
            return
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
