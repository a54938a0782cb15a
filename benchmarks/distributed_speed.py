"""Training in several processes: seconds an epoch beside one process, and whether the losses agree.

    PYTHONPATH=src python3 -m benchmarks.distributed_speed --graph world --processes 0,1,2 --out result.json
    PYTHONPATH=src python3 -m benchmarks.distributed_speed --graph graphs/wd50k --device cuda --processes 0,1 \
        --preset wd50k-link --out result.json

0 is training as it always is; 1 is a job of one process, with everything a job has: the process group (gloo, or NCCL on
a GPU), gradients exchanged inside the step, the shared clock. Runs are made one after the other, `--rounds` times over,
and the quickest is kept: ratios within one call are what to look at. On a CPU an epoch's seconds are the least of those
after the first. On a GPU the host runs ahead and hears of epochs late, so it is the mean over many: `--epochs 40` or
so. Steps are captured there but not compiled, unless `--compile` says so: that takes a minute for each run.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import write_measured

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def one_run(given: argparse.Namespace, processes: int, folder: Path, seconds: float) -> dict[str, Any]:
    """Trains once and reads its metrics."""
    options = ["--epochs", str(given.epochs), "--device", given.device]
    options += ["--preset", given.preset] if given.preset else []
    for change in (*given.changes, "validation.every=1000000"):
        options += ["--set", change]
    place = {"OMP_NUM_THREADS": str(given.threads)}
    if processes == 1:
        place |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
        place |= {"MASTER_PORT": str(_free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    if processes > 1:
        place |= {} if given.compile else {"TORCH_COMPILE_DISABLE": "1"}
        options += ["--processes", str(processes), "--out", str(folder)]
        command = [sys.executable, "-m", "hynt", "train", given.graph, *options]
    else:  # not by way of the command line, so that a machine with little but PyTorch can do it
        options += [*(["--compile"] if given.compile else []), "--graph", given.graph, "--out", str(folder)]
        command = [sys.executable, "-m", "benchmarks.distributed_speed", "--one-run", *options]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, env={**os.environ, **place}, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"skipped": "the time limit was reached"}
    if done.returncode:
        return {"failed": done.stderr.strip()[-300:]}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    epochs = [line for line in lines if "loss" in line]
    validations = [line for line in lines if "metric" in line]
    return {
        "epoch_seconds": epoch_seconds([line["seconds"] for line in epochs], given.device),
        "loss": epochs[-1]["loss"],
        "questions": epochs[-1]["questions"],
        "validation": {one["metric"]: one["value"] for one in validations},
        "notes": [line[:300] for line in done.stderr.splitlines() if not line.startswith("epoch ")],
        "whole_seconds": time.perf_counter() - began,
    }


def train_once(given: argparse.Namespace) -> None:
    """What `hynt train` does, in this process."""
    from hynt.distributed.worker_group import current_workers
    from hynt.graph.storage import load_graph
    from hynt.kernels.device import chosen_device
    from hynt.runs.checkpoint import Watcher
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import start, train

    class Heard(Watcher):
        def note(self, text: str) -> None:
            print(text, file=sys.stderr)

    device, graph = chosen_device(given.device), load_graph(given.graph)
    request = SettingsRequest("hynt", given.preset, given.epochs, changes=tuple(given.changes))
    settings = resolve_settings(request, graph, on_gpu=device.type == "cuda")
    with current_workers(device) as workers:
        run = start(graph, settings, given.out, device)
        train(run, device, Heard(), workers.stopper, compiled=given.compile, clock=workers.clock, workers=workers)


def epoch_seconds(seconds: list[float], device: str) -> float:
    """Of an epoch in the middle of a run."""
    if device == "cpu":
        return min(seconds[1:])
    steady = seconds[2:-1]
    return sum(steady) / len(steady)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Every number of processes, round after round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="world", help="a built-in name or a saved graph's folder")
    parser.add_argument("--preset")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--processes", default="0,1,2")
    parser.add_argument("--epochs", type=int, help="3 on a CPU, 40 on a GPU")
    parser.add_argument("--compile", action="store_true", help="compile steps on a GPU, as training does")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--limit-seconds", type=float, default=900.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--one-run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_run:
        train_once(given)
        return
    given.epochs = given.epochs or (3 if given.device == "cpu" else 40)
    if given.epochs < (2 if given.device == "cpu" else 4):
        parser.error("--epochs: at least 2 on a CPU, and 4 on a GPU")
    began = time.perf_counter()
    result: dict[str, Any] = {"device": given.device, "compiled": given.compile and given.device == "cuda", "runs": {}}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(given.rounds):
            for processes in (int(text) for text in given.processes.split(",")):
                left = given.limit_seconds - (time.perf_counter() - began)
                found = one_run(given, processes, Path(place) / f"{processes}-{turn}", max(1.0, left))
                best = result["runs"].get(str(processes))
                if best is None or found.get("epoch_seconds", 1e9) < best.get("epoch_seconds", 1e9):
                    result["runs"][str(processes)] = found
                print(processes, json.dumps(found), file=sys.stderr)
                plain = result["runs"].get("0", {}).get("epoch_seconds")
                result["speed_beside_plain"] = {
                    name: plain / run["epoch_seconds"]
                    for name, run in result["runs"].items()
                    if plain and "epoch_seconds" in run
                }
                write_measured(given.out, result, str(__doc__))


if __name__ == "__main__":
    main()
