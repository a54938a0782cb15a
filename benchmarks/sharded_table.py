"""Engines for a table that is sharded over processes: DTensor, torchrec, and, beside them, a whole table in each.

    PYTHONPATH=src python3 -m benchmarks.sharded_table --rows 1000000 --width 64 --out result.json

Two processes on gloo. In a step each looks up its own random rows, squares them, goes back, and moves what was looked
up by row-wise Adagrad (the whole table: all-reduced dense gradient and Adam). Each engine has processes of its own.
Time is that of the slower process: the least and the median step; memory is what the process added at its peak, and the
processor's seconds are those of both. torchrec needs `fbgemm-gpu-cpu`, built for this very version of torch.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.result_file import write_measured

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ENGINES = ("dtensor", "dtensor-dense", "torchrec", "whole")
RATE = 0.01


def dtensor_step(given: argparse.Namespace) -> Callable[[Any], None]:
    """`hynt.distributed.sharded_table`."""
    import torch.distributed as distributed
    from torch.distributed.device_mesh import init_device_mesh

    from hynt.distributed.sharded_table import RowwiseAdagrad, ShardedTable

    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    table = ShardedTable.drawn(mesh, given.rows, given.width, scale=0.1)
    optimiser = RowwiseAdagrad(table)

    def step(ids: Any) -> None:
        table(ids).square().sum().backward()
        optimiser.step(RATE)

    return step


def dense_dtensor_step(given: argparse.Namespace) -> Callable[[Any], None]:
    """DTensor left to itself: its gradient is as large as the shard."""
    import torch
    import torch.distributed as distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    world = distributed.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    local = (2 * torch.rand(given.rows // world, given.width) - 1) * 0.1
    weight: Any = torch.nn.Parameter(DTensor.from_local(local, mesh, [Shard(0)]))
    squares = torch.zeros(len(local))

    def step(ids: Any) -> None:
        everyone = DTensor.from_local(ids, mesh, [Shard(0)]).redistribute(mesh, [Replicate()])
        found: Any = torch.nn.functional.embedding(everyone, weight)
        found.redistribute(mesh, [Shard(0)]).to_local().square().sum().backward()
        gradient: Any = weight.grad
        first = distributed.get_rank() * len(local)
        asked = torch.unique(everyone.to_local())
        own = asked[(asked >= first) & (asked < first + len(local))] - first
        rows = gradient.redistribute(mesh, [Shard(0)]).to_local()[own]
        weight.grad = None
        squares[own] += rows.square().mean(1)
        with torch.no_grad():
            weight.to_local()[own] -= RATE * rows / (squares[own].sqrt() + 1e-8).unsqueeze(1)

    return step


def torchrec_step(given: argparse.Namespace) -> Callable[[Any], None]:
    """A row-wise sharded `EmbeddingCollection` whose update is fused into the way back."""
    import torch
    import torch.distributed as distributed
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from torchrec import EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology

    config = EmbeddingConfig(
        name="entity", embedding_dim=given.width, num_embeddings=given.rows, feature_names=["entity"]
    )
    sharder = EmbeddingCollectionSharder(
        fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "learning_rate": RATE}
    )
    planner = EmbeddingShardingPlanner(
        topology=Topology(world_size=distributed.get_world_size(), compute_device="cpu"),
        constraints={"entity": ParameterConstraints(sharding_types=["row_wise"])},
    )
    collection = EmbeddingCollection(tables=[config], device=torch.device("meta"))
    plan = planner.collective_plan(collection, [sharder], distributed.group.WORLD)
    model = DistributedModelParallel(collection, device=torch.device("cpu"), plan=plan, sharders=[sharder])

    def step(ids: Any) -> None:
        asked = KeyedJaggedTensor(["entity"], ids, lengths=torch.ones(len(ids), dtype=torch.int32))
        model(asked).wait()["entity"].values().square().sum().backward()

    return step


def whole_step(given: argparse.Namespace) -> Callable[[Any], None]:
    """The table whole in every process, as `hynt train --processes` has it."""
    import torch
    import torch.distributed as distributed

    table = torch.nn.Parameter((2 * torch.rand(given.rows, given.width) - 1) * 0.1)
    optimiser = torch.optim.Adam([table], RATE, fused=True)

    def step(ids: Any) -> None:
        optimiser.zero_grad()
        loss: Any = torch.nn.functional.embedding(ids, table).square().sum()
        loss.backward()
        distributed.all_reduce(table.grad)
        optimiser.step()

    return step


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """One process of one engine."""
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    made = {
        "dtensor": dtensor_step,
        "dtensor-dense": dense_dtensor_step,
        "torchrec": torchrec_step,
        "whole": whole_step,
    }[given.engine]
    # What the engine's modules take is not the table's: they are loaded before memory is counted.
    warm = argparse.Namespace(**{**vars(given), "rows": 100})
    made(warm)(torch.arange(10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.manual_seed(distributed.get_rank())
    step = made(given)
    times, worked = [], time.process_time()
    for _ in range(given.steps):
        ids = torch.randint(given.rows, (given.asked,))
        distributed.barrier()
        began = time.perf_counter()
        step(ids)
        times.append(time.perf_counter() - began)
    busy = (time.process_time() - worked) / given.steps
    added = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    distributed.destroy_process_group()
    ordered = sorted(times[1:])
    return {
        "least_seconds": ordered[0],
        "median_seconds": ordered[len(ordered) // 2],
        "processor_seconds": busy,
        "added_bytes": added,
    }


def main() -> None:
    """Every engine, two processes each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--asked", type=int, default=4096, help="rows that a process looks up in a step")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="for each engine")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine:
        print(json.dumps(measured(given)))
        return
    result: dict[str, Any] = {name: getattr(given, name) for name in ("rows", "width", "asked", "steps")}
    result["engines"] = {}
    for engine in given.engines.split(","):
        result["engines"][engine] = found = _engine(given, engine)
        print(engine, json.dumps(found), file=sys.stderr)
        if given.out is not None:
            write_measured(given.out, result, str(__doc__))


def _engine(given: argparse.Namespace, engine: str) -> dict[str, Any]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "benchmarks.sharded_table",
        "--engine",
        engine,
        "--rows",
        str(given.rows),
        "--width",
        str(given.width),
        "--asked",
        str(given.asked),
        "--steps",
        str(given.steps),
    ]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **place, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=given.limit_seconds) for process in started]
    except subprocess.TimeoutExpired:
        for process in started:
            process.kill()
        return {"skipped": "the time limit was reached"}
    for process, (_, problem) in zip(started, said, strict=True):
        if process.returncode:
            return {"failed": (problem.strip().splitlines() or ["no word"])[-1][:300]}
    found = [json.loads(output.strip().splitlines()[-1]) for output, _ in said]
    return {key: max(one[key] for one in found) for key in found[0]}


if __name__ == "__main__":
    main()
