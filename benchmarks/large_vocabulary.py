"""Memory and time of a training step as the number of entities grows, with all entities scored and with a sample.

    PYTHONPATH=src python3 -m benchmarks.large_vocabulary --device cpu --entities 10000,100000,1000000 --dimension 64 \
        --batch-size 256 --out result.json
    PYTHONPATH=src python3 -m benchmarks.large_vocabulary --device cuda --limit-seconds 500 --out result.json

Facts are generated as tensors: heads and tails by a skewed law over all entities, one qualifier in every second fact,
a third of the tails numbers. Each point is measured in a process of its own, so that its peak memory is its own. The
slopes are those of log(value) over log(entities), by least squares, between neighbouring sizes and over all.

On a GPU steps are captured as in training, but compiled only with `--compile`, which takes most of a minute for each
size. A compiler merges sweeps over all scores, so with it a full softmax does better than without.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.result_file import write_measured

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

FACTS = 200_000
RELATIONS = 100
SLOPES = ("peak_bytes", "step_seconds", "least_processor_seconds")


def generated_facts(entities: int, facts: int, device: Any) -> Any:
    """`FactTensors` of a graph of this size, without names."""
    import torch

    from hynt.batches.fact_tensors import FactTensors, Sizes

    random = torch.Generator().manual_seed(0)

    def skewed(count: int) -> torch.Tensor:
        share = torch.rand(count, generator=random, dtype=torch.float64) ** 3
        return (share * entities).long().clamp(max=entities - 1).int()

    is_number = torch.arange(RELATIONS) % 3 == 0
    relation = torch.randint(RELATIONS, (facts,), generator=random).int()
    tail_is_number = is_number[relation.long()]
    value = torch.rand(facts, generator=random)
    count = torch.arange(facts) % 2
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)])
    qualifiers = int(offsets[-1]) + 1  # the last one is the filler
    return FactTensors(
        Sizes(entities, RELATIONS),
        skewed(facts),
        relation,
        torch.where(tail_is_number, entities, skewed(facts)).int(),
        value.double() * tail_is_number,
        value * tail_is_number,
        tail_is_number,
        offsets,
        torch.full((qualifiers,), 1, dtype=torch.int32),
        skewed(qualifiers),
        torch.zeros(qualifiers, dtype=torch.float64),
        torch.zeros(qualifiers),
        torch.zeros(qualifiers, dtype=torch.bool),
        torch.cat([is_number, torch.zeros(1, dtype=torch.bool)]),
    ).to(device)


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """One point, in this process."""
    import torch

    from hynt.batches.masked_batch import Masking
    from hynt.models.hynt import Hynt, HyntSettings
    from hynt.objectives.losses import LossSettings
    from hynt.objectives.masked_facts import MaskedFacts
    from hynt.objectives.sampled_softmax import affine_loss
    from hynt.objectives.streams import trainable
    from hynt.runs.settings import Optimiser
    from hynt.training.optimisation import Optimisation
    from hynt.training.step import CapturedStep, EagerStep

    device, entities = torch.device(given.device), int(given.point)
    is_cuda = device.type == "cuda"
    facts = generated_facts(entities, FACTS if is_cuda else min(FACTS, 40 * given.batch_size), device)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    heads = 16 if given.dimension % 16 == 0 and given.dimension >= 128 else 4
    with device:  # billions of random numbers take a CPU half a minute
        model = Hynt(
            facts.sizes,
            HyntSettings(
                dimension=given.dimension,
                context_heads=heads,
                prediction_heads=heads,
                context_feedforward=4 * given.dimension,
                prediction_feedforward=4 * given.dimension,
            ),
        )
    losses = LossSettings(softmax=given.softmax, negatives=given.negatives)
    stream = MaskedFacts(facts, given.batch_size, Masking(), losses, affine_loss)
    optimisation = Optimisation(trainable(model), Optimiser(clip=1.0), device)
    runner: Any
    notes: list[str] = []
    if is_cuda:
        torch.cuda.reset_peak_memory_stats()
        bf16 = torch.cuda.is_bf16_supported()
        runner = CapturedStep(model, stream, optimisation, device, bf16=bf16, compiled=given.compile, note=notes.append)
    else:
        runner = EagerStep(model, stream, optimisation, device, bf16=False)
    model.train()
    epoch = stream.epoch(0, 0)
    # Steps of one shape: another one would be captured in the middle, and hold memory of its own.
    usual = [items for items in map(epoch.items, range(len(epoch))) if stream.is_common(items.shape)]

    def step(index: int) -> None:
        runner.run(usual[index % len(usual)], index)

    warm_up, steps = (5, 20) if is_cuda else (1, given.steps)
    for index in range(warm_up):
        step(index)
    times, busy = [], []
    for index in range(steps):
        if is_cuda:
            torch.cuda.synchronize()
        began, worked = time.perf_counter(), time.process_time()
        step(warm_up + index)
        if is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = torch.cuda.max_memory_allocated() if is_cuda else 1024 * (after - before)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    result: dict[str, Any] = {
        "entities": entities,
        "softmax": given.softmax,
        "parameters": parameters,
        "peak_bytes": peak,
        "step_seconds": sorted(times)[len(times) // 2],
        "least_step_seconds": min(times),
        "bytes_an_entity": peak / entities,
        "link_questions_a_step": stream.regular.outputs[0],
    }
    if is_cuda:
        # Weights stay where they are after a step that was not finite, and such a step is no measure.
        result |= {"is_finite": not runner.has_failed(), "notes": notes}
    else:
        result["least_processor_seconds"] = min(busy)
    return result


def slopes(points: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The exponent that a value grows with, over all points and from each to the next."""
    pairs = [(math.log(point["entities"]), math.log(point[key])) for point in points if key in point]
    if len(pairs) < 2:
        return {}
    mean_x, mean_y = (sum(pair[i] for pair in pairs) / len(pairs) for i in (0, 1))
    over_all = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / sum((x - mean_x) ** 2 for x, _ in pairs)
    steps = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(pairs)]
    return {"over_all": round(over_all, 3), "between": [round(step, 3) for step in steps]}


def main() -> None:
    """Measures every size with each softmax, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--entities", default="10000,100000,1000000,10000000")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--negatives", type=int, default=16384)
    parser.add_argument("--softmax", default="full,sampled")
    parser.add_argument("--full-up-to", type=int, default=10_000_000, help="no full softmax above this size")
    parser.add_argument("--steps", type=int, default=5, help="steps measured on a CPU")
    parser.add_argument("--compile", action="store_true", help="compile steps on a GPU, as training does")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point is not None:
        print(json.dumps(measured(given)))
        return
    began = time.perf_counter()
    result: dict[str, Any] = {
        "device": given.device,
        "dimension": given.dimension,
        "batch_size": given.batch_size,
        "negatives": given.negatives,
        "compiled": given.compile,
        "points": [],
        "slopes": {},
    }
    if given.device == "cuda":
        import torch

        result["device"] = torch.cuda.get_device_name()
    for softmax in given.softmax.split(","):
        points: list[dict[str, Any]] = []
        for entities in (int(float(size)) for size in given.entities.split(",")):
            left = given.limit_seconds - (time.perf_counter() - began)
            if softmax == "full" and entities > given.full_up_to:
                continue
            point = _point(given, entities, softmax, left)
            print(json.dumps(point), file=sys.stderr)
            result["points"].append(point)
            if "step_seconds" in point:
                points.append(point)
            result["slopes"][softmax] = {key: slopes(points, key) for key in SLOPES}
            result["seconds"] = time.perf_counter() - began
            if given.out is not None:
                write_measured(given.out, result, str(__doc__))


def _point(given: argparse.Namespace, entities: int, softmax: str, left: float) -> dict[str, Any]:
    failed = {"entities": entities, "softmax": softmax}
    if left <= 0:
        return {**failed, "skipped": "the time limit was reached"}
    command = [
        sys.executable,
        "-m",
        "benchmarks.large_vocabulary",
        "--device",
        given.device,
        "--dimension",
        str(given.dimension),
        "--batch-size",
        str(given.batch_size),
        "--negatives",
        str(given.negatives),
        "--softmax",
        softmax,
        "--steps",
        str(given.steps),
        "--point",
        str(entities),
        *(["--compile"] if given.compile else []),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=None if math.isinf(left) else left, check=False
        )
    except subprocess.TimeoutExpired:
        return {**failed, "skipped": "the time limit was reached"}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no word"]
        return {**failed, "failed": reason[0][:300]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
