"""Several processes of one job in a test: forked, so that nothing is imported again."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable

import torch

from hynt.distributed.worker_group import join_job

CPU = torch.device("cpu")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def together(world: int, work: Callable, *arguments, stopper_of=lambda rank: None) -> list[int]:
    """Runs `work(workers, *arguments)` in so many processes and returns their exit codes."""
    context = multiprocessing.get_context("fork")
    port = free_port()
    started = [
        context.Process(target=_member, args=(rank, world, port, work, arguments, stopper_of)) for rank in range(world)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
        if process.is_alive():
            process.kill()
    return [process.exitcode for process in started]


def _member(rank, world, port, work, arguments, stopper_of) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    torch.set_num_threads(1)
    code = 1
    try:
        with join_job(CPU, stopper_of(rank), minutes=2) as workers:
            work(workers, *arguments)
        code = 0
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:  # noqa: BLE001 - whatever it is, the parent sees a code and the log a traceback
        traceback.print_exc()
    finally:
        os._exit(code)  # no test of the parent's goes on in the child
