"""How fast a CPU trains HyNT, how that compares with a plain loop, and how time grows.

    python -m benchmarks.cpu_speed [--threads 2] [--measure compare,growth,longest] [--save FILE]

Times are of whole training steps: hiding, forward, loss, backward, clipping and Adam. Both the clock's seconds and the
processor's are given, each the least of several steps: on a machine that does other things as well, the processor's
are the ones to compare. The plain loop is `benchmarks/naive_reference.py`.

`compare` also counts the multiplications and additions of the matrix products in a step, and measures how many this
machine does in a second in one large product: what a step could take at the least, however it is written.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "OMP_WAIT_POLICY", "PASSIVE"
)  # threads that wait must not take the processor from those that work

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.generated_graph import write
from benchmarks.naive_reference import NaiveHynt, facts_as_lists, naive_steps, naive_update
from benchmarks.result_file import write_measured
from benchmarks.training_problems import Problem, like_hn_yg, like_wd50k, settings
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Masking
from hynt.models.hynt import Hynt, HyntSettings
from hynt.objectives.losses import LossSettings
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import affine_loss
from hynt.runs.settings import Optimiser
from hynt.training.optimisation import Optimisation
from hynt.training.step import EagerStep

CPU = torch.device("cpu")
SMOOTHING, CLIP = 0.7, 0.1
STEPS = 3
PROBLEMS = {"wd50k": like_wd50k, "hn-yg": like_hn_yg}


def least(work: Callable[[int], None], times: int) -> dict[str, float]:
    """Seconds of the quickest run by the clock and by the processor, after one run that does not count."""
    work(0)
    wall, processor = [], []
    for index in range(1, times + 1):
        clock, spent = time.perf_counter(), time.process_time()
        work(index)
        wall.append(time.perf_counter() - clock)
        processor.append(time.process_time() - spent)
    return {"seconds": min(wall), "processor_seconds": min(processor)}


def trained(facts: FactTensors, sizes: HyntSettings, batch_size: int) -> tuple[MaskedFacts, EagerStep]:
    """This project's stream and step, as the trainer makes them."""
    torch.manual_seed(0)
    model = Hynt.build(facts.sizes, facts, sizes).train()
    stream = MaskedFacts(facts, batch_size, Masking(), LossSettings(smoothing=SMOOTHING), affine_loss)
    optimisation = Optimisation(list(model.parameters()), Optimiser(clip=CLIP), CPU)
    return stream, EagerStep(model, stream, optimisation, CPU, bf16=False)


def operations(work: Callable[[int], None]) -> int:
    """Multiplications and additions in the matrix products of a step, forth and back."""
    with FlopCounterMode(display=False) as counter:
        work(0)
    return int(counter.get_total_flops())


def operations_per_second(times: int = 5) -> float:
    """What a processor does in a second of its own time, in a product of the size of a step's largest."""
    left, right = torch.randn(1024, 1536), torch.randn(1536, 4096)
    found = least(lambda _: void(left @ right), times)
    return 2 * 1024 * 1536 * 4096 / found["processor_seconds"]


def our_step(problem: Problem, times: int = STEPS) -> dict[str, float]:
    """A step of regular shape, and what share of an epoch's plan falls on it."""
    facts = problem.tensors()
    stream, runner = trained(facts, problem.settings, problem.batch_size)
    items = stream.epoch(0, 0)
    regular = [i for i in range(len(items)) if stream.is_common(items.items(i).shape)]
    plan = least(lambda index: void(stream.epoch(0, index)), 2)

    def step(index: int) -> None:
        runner.run(items.items(regular[index % len(regular)]), index)

    found = least(step, times)
    return {name: value + plan[name] / len(items) for name, value in found.items()} | {"operations": operations(step)}


def void(_: object) -> None:
    """Drops a result."""


def our_epoch(facts: FactTensors, sizes: HyntSettings, batch_size: int, times: int = 2) -> dict[str, float]:
    """A whole epoch, its plan included."""
    stream, runner = trained(facts, sizes, batch_size)

    def epoch(number: int) -> None:
        items = stream.epoch(0, number)
        for index in range(len(items)):
            runner.run(items.items(index), index)

    return least(epoch, times)


def naive_step(problem: Problem, to_longest_of_graph: bool, times: int = 1) -> dict[str, float]:
    """A step of the plain loop."""
    facts = problem.tensors()
    lists = facts_as_lists(facts)
    torch.manual_seed(0)
    model = NaiveHynt(facts.sizes, problem.settings)
    model.take_weights(Hynt.build(facts.sizes, facts, problem.settings))
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    longest = max(len(fact.components) // 2 for fact in lists) if to_longest_of_graph else None
    batches = naive_steps(lists, facts.sizes, problem.batch_size, random.Random(0), longest)

    def step(_: int) -> None:
        naive_update(model, optimiser, next(batches), SMOOTHING, CLIP)

    return least(step, times) | {"operations": operations(step)}


def compare(batch_size: int, graphs: list[str]) -> list[dict[str, Any]]:
    """This project's step beside the plain loop's."""
    rows = []
    for name in graphs:
        problem = PROBLEMS[name](20 * batch_size, batch_size)
        forms: dict[str, Callable[[Problem], dict[str, float]]] = {
            "hynt": our_step,
            "plain, padded to the batch's longest": lambda given: naive_step(given, False),
            "plain, padded to the graph's longest": lambda given: naive_step(given, True),
        }
        first: dict[str, float] = {}
        for form, measured in forms.items():
            found = measured(problem)
            first = first or found
            least_seconds = found["operations"] / operations_per_second()
            rows.append(
                {
                    "graph": name,
                    "form": form,
                    "facts_per_second": batch_size / found["seconds"],
                    "facts_per_processor_second": batch_size / found["processor_seconds"],
                    "times_the_time": found["seconds"] / first["seconds"],
                    "times_the_processor": found["processor_seconds"] / first["processor_seconds"],
                    "operations_per_fact": found["operations"] / batch_size,
                    "times_the_operations": found["operations"] / first["operations"],
                    "products_alone": least_seconds / found["processor_seconds"],
                }
            )
            show(rows[-1])
    return rows


def growth() -> list[dict[str, Any]]:
    """Time of an epoch as one size doubles and the others stay, and the slope of a straight line through logarithms."""
    base = Problem(4096, 4000, {0: 6, 1: 2, 2: 1}, settings(64, 2, 4, 256), relations=100, number_relations=10)
    series: dict[str, dict[int, Problem]] = {
        "facts": {n: replace(base, facts=n) for n in (2048, 4096, 8192, 16384)},
        "entities": {n: replace(base, facts=2048, entities=n) for n in (2000, 4000, 8000, 16000, 32000)},
        "qualifiers of each fact": {n: replace(base, facts=1024, lengths={n: 1}) for n in (2, 4, 8, 16, 32)},
        "width": {n: replace(base, facts=2048, settings=settings(n, 2, 4, 4 * n)) for n in (32, 64, 128, 256)},
    }
    rows = []
    for name, problems in series.items():
        spent = {}
        for size, problem in problems.items():
            spent[size] = our_epoch(problem.tensors(), problem.settings, problem.batch_size)["processor_seconds"]
        rows.append({"size": name, "processor_seconds": spent, "slope": slope(spent)})
        show(rows[-1])
    return rows


def slope(points: dict[int, float]) -> float:
    """The exponent of the power law that fits best."""
    x, y = [math.log(size) for size in points], [math.log(value) for value in points.values()]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    rise = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True))
    return rise / sum((a - middle) ** 2 for a in x)


def one_long_tail(longest: int) -> dict[str, Any]:
    """An epoch on a generated graph, with three facts of `longest` qualifiers or none, in this process."""
    from hynt.batches.number_scaling import NumberScaling
    from hynt.formats.importing import import_graph
    from hynt.graph.storage import load_graph

    with tempfile.TemporaryDirectory() as folder:
        source, place = Path(folder) / "generated.tsv", Path(folder) / "graph"
        write(source, 10_000, 4_000, longest=longest)
        import_graph(source, "tsv", place)
        graph = load_graph(place)
        table = next(iter(graph.splits.values()))
        scaling = NumberScaling.fit([table], graph.vocabulary)
        facts = FactTensors.from_table(table, graph.vocabulary, scaling)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = our_epoch(facts, settings(64, 2, 4, 256), 512)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"longest": longest, **found, "mb_before": round(before), "peak_mb": round(peak)}


def long_tail(threads: int) -> list[dict[str, Any]]:
    """With and without very long facts, each in a process of its own so that its memory can be told."""
    rows = []
    for longest in (0, 358):
        command = [sys.executable, "-m", "benchmarks.cpu_speed", "--threads", str(threads), "--one-long", str(longest)]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
        show(rows[-1])
    return rows


def show(row: dict[str, Any]) -> None:
    """A line of the table, at once."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return " ".join(f"{size}: {text(one)}" for size, one in value.items())
        return (
            f"{value:.3g}"
            if isinstance(value, float) and value < 1000
            else f"{value:,.0f}"
            if isinstance(value, float)
            else str(value)
        )

    print(" | ".join(f"{name} {text(value)}" for name, value in row.items()), flush=True)


def main() -> None:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1024, help="facts a step, for `compare`")
    parser.add_argument("--graphs", default="wd50k,hn-yg", help="for `compare`: whose lengths and sizes")
    parser.add_argument("--measure", default="compare,growth,longest")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    parser.add_argument("--one-long", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.one_long is not None:
        print(json.dumps(one_long_tail(given.one_long)))
        return
    kinds: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "compare": lambda: compare(given.batch, given.graphs.split(",")),
        "growth": growth,
        "longest": lambda: long_tail(given.threads),
    }
    figures: dict[str, Any] = {"threads": given.threads, "batch_size": given.batch, "torch": torch.__version__}
    for name in given.measure.split(","):
        figures[name] = kinds[name]()
        if given.save:
            write_measured(given.save, figures, str(__doc__))


if __name__ == "__main__":
    main()
