"""The processes of one training job: what they add up, what the first one tells the others, and one clock for all.

Every process walks through the same epochs and steps; whatever steers the walk must be the same for all. The only
things that could differ are the time and a wish to stop. So the first process's clock and everybody's wishes are
exchanged at agreed moments (`sync`), and between these the time stands still.

Models are not wrapped in `DistributedDataParallel`: it works on a `forward`, which our models do not have, and
captured steps need the exchange inside the step. Gradients are summed by one call between backward and update.
"""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from hynt.distributed.launch import LEFT_ALONE, is_launched, is_watched, restarts
from hynt.errors import HyntError, UsageError
from hynt.interruption import Stopper

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

SMALL = 1 << 16
"""Numbers in a gradient up to which it travels in one message with others."""

STEPS_PER_SYNC = 16
"""On a GPU the host runs ahead of the device, and need not talk to its colleagues at each step."""


class JobEnded(HyntError):
    """Another process of this job is gone."""

    def __init__(self) -> None:
        super().__init__(
            "another process of this job ended, so this one stops as well; what was saved is kept.",
            advice="Look at what the other process said; training goes on with --resume.",
        )
        if is_watched():
            self.exit_code = LEFT_ALONE


class SingleProcess:
    """One process: nobody to talk to."""

    rank, world = 0, 1
    exchange: Callable[[Sequence[Tensor], Tensor], Tensor] | None = None

    def __init__(self, stopper: Stopper | None = None) -> None:
        self.stopper = stopper or Stopper()

    def watch(self, stopper: Stopper) -> None:
        """From now on, stop when this one is asked to."""
        self.stopper = stopper

    def clock(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    def sync(self, *, now: bool = False) -> None:
        """Does nothing: a single process has nobody to agree with."""

    def gathered(self, tensor: Tensor) -> Tensor:
        """The sum over all processes: this one's."""
        return tensor

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """What the first process has, all have."""

    def broadcast_text(self, text: str = "") -> str:
        """What the first process says."""
        return text

    def collected(self, data: bytes) -> list[bytes]:
        """What every process brings, in the order of processes, for the first one."""
        return [data]

    @contextmanager
    def words(self) -> Iterator[None]:
        """Does nothing: there is no other process whose end would have to be explained."""
        yield


class WorkerGroup(SingleProcess):
    """This process as one of several that train together; they agree on time, sums and when to stop."""

    def __init__(self, device: torch.device, stopper: Stopper | None = None) -> None:
        super().__init__()
        self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
        self.device, self._own = device, stopper or Stopper()
        self.exchange = self._summed
        is_cuda = device.type == "cuda"
        self._every = STEPS_PER_SYNC if is_cuda else 1
        self._talk: ProcessGroup | None = distributed.new_group(backend="gloo") if is_cuda else None
        self._count, self._time = 0, 0.0
        self.sync(now=True)

    def watch(self, stopper: Stopper) -> None:
        """From now on, all stop when this process is asked to."""
        self._own = stopper

    def clock(self) -> float:
        """The first process's time at the last `sync`."""
        return self._time

    def sync(self, *, now: bool = False) -> None:
        """Agrees on the time and on whether to stop; at each call, or on a GPU at some. All must call it alike."""
        self._count += 1
        if not now and self._count % self._every:
            return
        said = torch.zeros(2, dtype=torch.float64)
        said[0] = time.monotonic() if self.rank == 0 else 0.0
        said[1] = float(self._own.asked)
        distributed.all_reduce(said, group=self._talk)
        self._time, self.stopper.asked = float(said[0]), bool(said[1])

    def gathered(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        found = tensor.clone()
        distributed.all_reduce(found)
        return found

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Gives all processes what the first one has."""
        for tensor in tensors:
            value = tensor.detach().contiguous()
            distributed.broadcast(value, 0)
            tensor.detach().copy_(value)

    def broadcast_text(self, text: str = "") -> str:
        """What the first process says, heard by all. Plain text: nothing that is sent is ever run."""
        words = text.encode() if self.rank == 0 else b""
        size = torch.tensor([len(words)], dtype=torch.int64)
        distributed.broadcast(size, 0, group=self._talk)
        message = torch.frombuffer(bytearray(words or bytes(int(size))), dtype=torch.uint8)
        if len(message):
            distributed.broadcast(message, 0, group=self._talk)
        return bytes(message.numpy().tobytes()).decode()

    def collected(self, data: bytes) -> list[bytes]:
        """What every process brings, in the order of processes; for all but the first an empty list."""
        sizes = torch.zeros(self.world, dtype=torch.int64)
        sizes[self.rank] = len(data)
        distributed.all_reduce(sizes, group=self._talk)
        if self.rank:
            if data:
                distributed.send(torch.frombuffer(bytearray(data), dtype=torch.uint8), 0, group=self._talk)
            return []
        found = [data]
        for rank in range(1, self.world):
            message = torch.empty(int(sizes[rank]), dtype=torch.uint8)
            if len(message):
                distributed.recv(message, rank, group=self._talk)
            found.append(message.numpy().tobytes())
        return found

    @contextmanager
    def words(self) -> Iterator[None]:
        """Turns what the network says when a process is gone into a clear word."""
        try:
            yield
        except distributed.DistBackendError:
            raise JobEnded from None
        except RuntimeError as problem:
            if not _is_of_the_network(str(problem)):
                raise
            raise JobEnded from None

    def _summed(self, gradients: Sequence[Tensor], total: Tensor) -> Tensor:
        """Sums gradients in place over all processes, and the loss: what the update looks at is the same for all."""
        large = [gradient for gradient in gradients if gradient.numel() > SMALL]
        small = [gradient for gradient in gradients if gradient.numel() <= SMALL]
        for gradient in large:
            distributed.all_reduce(gradient)
        flat = torch.cat([*(gradient.reshape(-1) for gradient in small), total.detach().reshape(1)])
        distributed.all_reduce(flat)
        start = 0
        for gradient in small:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
        return flat[-1]


def _is_of_the_network(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in ("gloo", "nccl", "connection closed", "connection reset", "broken pipe"))


@contextmanager
def join_job(device: torch.device, stopper: Stopper | None = None, minutes: float = 30) -> Iterator[WorkerGroup]:
    """Joins the job that the environment describes: gloo between CPUs, NCCL between GPUs."""
    if not distributed.is_available():
        raise UsageError("this PyTorch was built without torch.distributed.", advice="Train in one process.")
    if device.type == "cuda":
        local, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= there:
            raise UsageError(
                f"process {local + 1} of this machine has no GPU of its own: there are {there}.",
                where="--processes",
                advice="Start one process per GPU, or say --device cpu.",
            )
        torch.cuda.set_device(local)
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        patience = timedelta(minutes=minutes)
        found, rank, world = next(rendezvous("env://", timeout=patience))
        # torchrun keeps its store when it starts a job again: addresses of the attempt before must not be read.
        store = PrefixStore(f"hynt-{restarts()}", found)
        distributed.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=patience)
        workers = WorkerGroup(device, stopper)
    except RuntimeError as problem:
        if distributed.is_initialized():
            distributed.destroy_process_group()
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise HyntError(
            f"the processes of this job did not find each other: {str(problem).splitlines()[0]}",
            where=place,
            advice="See that all of them started, and name their network's interface in GLOO_SOCKET_IFNAME.",
        ) from None
    try:
        with workers.words():
            yield workers
            workers.sync(now=True)  # nobody leaves before all have come to the end
    except BaseException as problem:
        _forget_work(problem)
        raise
    finally:
        gc.collect()
        distributed.destroy_process_group()


def _forget_work(problem: BaseException | None) -> None:
    """Lets go of what the functions that failed were working on. Captured steps are among it, and NCCL does not leave
    before the last CUDA graph that talks by it is gone: it would wait for ever.
    """
    while problem is not None:
        traceback.clear_frames(problem.__traceback__)
        problem = problem.__cause__ or problem.__context__


@contextmanager
def current_workers(device: torch.device) -> Iterator[SingleProcess]:
    """The workers that this process was started with; it alone, where no launcher started it."""
    if not is_launched():
        yield SingleProcess()
        return
    with join_job(device) as workers:
        yield workers
