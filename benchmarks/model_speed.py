"""How fast each model trains and answers, and how much memory it takes: every model in a process of its own, one at a
time, in one run, so that their ratios hold whatever the machine.

    python -m benchmarks.model_speed --graph world --preset small --threads 2 --out speed.json
    PYTHONPATH=src python3 -m benchmarks.model_speed --graph graphs/HN-YG --preset paper --device cuda --out speed.json
    python -m benchmarks.model_speed --generated 2000 --longest 358 --preset small --epochs 1 --out long.json

Facts a second are those of the training split: an epoch of any model goes through all of them once, whatever it asks
about them. Steps are timed for `--seconds`, after a few to warm up; `--epochs 1` times whole epochs instead. Processor
seconds are summed over threads. `--markdown FILE` prints the table of a JSON file that is there.

On a GPU most of the time goes into compiling. With `--together` all models compile at the same time, and when the last
is ready they are timed one after another, the others waiting.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.result_file import read_measured, write_measured

WARM_UP_STEPS = 5
WARM_UP_FACTS = 50


def measured(model: str, given: argparse.Namespace) -> dict[str, Any]:
    """One model, in this process."""
    import torch

    from hynt.comparison.trial import Trial, peak_memory
    from hynt.evaluation.evaluator import Evaluator
    from hynt.graph.storage import load_graph
    from hynt.kernels.device import chosen_device
    from hynt.models.contract import Model
    from hynt.runs.opening import new_model
    from hynt.runs.training_data import fit_scaling, training_data
    from hynt.training.optimisation import Optimisation
    from hynt.training.process import phases_for, runner_for
    from hynt.training.validating import SampledEvaluator

    device = chosen_device(given.device)
    if device.type == "cpu":
        torch.set_num_threads(given.threads)
    graph = load_graph(given.graph)
    preset = given.hynt_preset if (model, given.preset) == ("hynt", "paper") else f"{model}-{given.preset}"
    settings = Trial(model, preset, changes=tuple(given.set)).settings(graph, device)

    def waited() -> tuple[float, float]:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()

    began = waited()[0]
    data = training_data(graph, settings, fit_scaling(graph, settings), device)
    network = new_model(settings, data, device).train()
    built = waited()[0] - began
    phase = phases_for(network, data, settings)[0]
    runner = runner_for(network, device, settings, print, given.compiled)(
        phase, Optimisation(phase.parameters, settings.optimiser, device, phase.second)
    )
    assert isinstance(network, Model)
    evaluator = Evaluator(graph, data.scaling, "test", device=device, literals=data.literals)
    if device.type == "cuda":  # what is compiled at the first question is not to be timed
        SampledEvaluator.of(evaluator, WARM_UP_FACTS).evaluate(network)
        network.train()
    if given.test_facts is not None:
        evaluator = SampledEvaluator.of(evaluator, given.test_facts)
    if given.meeting is not None:  # one whole epoch: it has every shape that a later one has
        items = phase.stream.epoch(settings.seed, 0)
        for index in range(len(items)):
            runner.run(items.items(index), index)
        waited()
        turn(given.meeting, model)
    start: tuple[float, float] | None = None if given.epochs is None else waited()
    done = steps = 0
    for epoch in range(10**6 if given.epochs is None else given.epochs):
        items = phase.stream.epoch(settings.seed, epoch)
        for index in range(len(items)):
            if start is None and done >= min(WARM_UP_STEPS, len(items)):
                start, steps = waited(), 0
            runner.run(items.items(index), done)
            done, steps = done + 1, steps + 1
            if given.epochs is None and start is not None and time.perf_counter() - start[0] > given.seconds:
                break
        if given.epochs is None and start is not None and time.perf_counter() - start[0] > given.seconds:
            break
    end = waited()
    assert start is not None
    wall, processor = end[0] - start[0], end[1] - start[1]
    facts, failed = len(data.facts) * steps / len(items), bool(runner.optimisation.failed)
    row: dict[str, Any] = {
        "parameters": sum(p.numel() for p in network.parameters()),
        "batch_size": settings.batch_size,
        "steps_per_epoch": len(items),
        "steps": steps,
        "build_seconds": built,
        "train_seconds": wall,
        "train_processor_seconds": processor,
        "facts_per_second": facts / wall,
        "facts_per_processor_second": facts / processor,
        "failed": failed,
        "train_peak_memory_bytes": peak_memory(device),
    }
    before = waited()
    found = evaluator.evaluate(network)
    after = waited()
    questions = sum(len(one) for one in found.per_question.values())
    return row | {
        "test_questions": questions,
        "test_seconds": after[0] - before[0],
        "test_processor_seconds": after[1] - before[1],
        "peak_memory_bytes": peak_memory(device),
    }


def turn(meeting: Path, model: str) -> None:
    """Says that a model is ready, waits until all are, and then for its turn, which lasts until the process ends."""
    (meeting / f"{model}.ready").touch()
    while not (meeting / "begin").exists():
        time.sleep(0.05)
    lock = os.open(meeting / "turn", os.O_CREAT | os.O_RDWR)  # left open on purpose: it is let go with the process
    fcntl.flock(lock, fcntl.LOCK_EX)


def generated(given: argparse.Namespace, place: Path) -> str:
    """A graph with a few very long facts, in train and in test."""
    from benchmarks.generated_graph import long_graph
    from hynt.graph.storage import save_graph

    save_graph(long_graph(given.generated, given.longest), place / "generated")
    return str(place / "generated")


def table(result: dict[str, Any], *, by_processor: bool) -> str:
    """Markdown: speed, its ratio to HyNT's in the same run, time of a test, and memory."""
    rows, of = result["models"], "processor_second" if by_processor else "second"
    unit = "processor second" if by_processor else "s"
    base = rows.get("hynt", {}).get(f"facts_per_{of}")
    lines = [
        f"| model | parameters | batch | facts/{unit} | against `hynt` | test questions/{unit} | peak memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if "facts_per_second" not in row:
            lines.append(f"| `{name}` | {row['problem']} | | | | | |")
            continue
        speed = row[f"facts_per_{of}"]
        ratio = f"{speed / base:.2f}" if base else "–"
        asked = row["test_questions"] / row["test_processor_seconds" if by_processor else "test_seconds"]
        lines.append(
            f"| `{name}` | {row['parameters']:,} | {row['batch_size']} | {speed:,.0f} | {ratio} | "
            f"{asked:,.0f} | {row['peak_memory_bytes'] / 1e6:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="world")
    parser.add_argument("--generated", type=int, help="instead: a generated graph of so many facts")
    parser.add_argument("--longest", type=int, default=358, help="qualifiers of its longest facts")
    parser.add_argument("--models", default="all")
    parser.add_argument("--preset", choices=("small", "paper"), default="small")
    parser.add_argument("--hynt-preset", help="HyNT's, where the others have their `paper`; otherwise its defaults")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--epochs", type=int, help="time so many whole epochs instead")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="of one model; of all --together")
    parser.add_argument("--together", action="store_true", help="let all compile at once, then time one after another")
    parser.add_argument("--test-facts", type=int, help="ask about so many test facts only, drawn once")
    parser.add_argument("--markdown", type=Path, help="print the table of this JSON and leave")
    parser.add_argument("--by-processor", action="store_true", help="with --markdown: for a machine that was busy")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--meeting", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.markdown is not None:
        result = read_measured(given.markdown, "models", advice="give a file that `benchmarks.model_speed` wrote")
        print(table(result, by_processor=given.by_processor))
        return
    if given.out is None:
        parser.error("--out is needed")
    if given.one is not None:
        given.out.write_text(json.dumps(measured(given.one, given)), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as place:
        if given.generated is not None:
            given.graph = generated(given, Path(place))
        _run_all(given, Path(place))


def _run_all(given: argparse.Namespace, place: Path) -> None:
    from hynt.comparison.comparing import model_names
    from hynt.kernels.device import chosen_device
    from hynt.runs.run_folder import describe_environment

    name = "generated" if given.generated is not None else Path(given.graph).name
    result: dict[str, Any] = {
        "environment": describe_environment(chosen_device(given.device)),
        "graph": name,
        "preset": given.preset,
        "threads": given.threads,
        "models": {},
    }
    environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads)}
    options = ["--graph", given.graph, "--preset", given.preset, "--device", given.device]
    options += ["--threads", str(given.threads), "--seconds", str(given.seconds)]
    options += [] if given.epochs is None else ["--epochs", str(given.epochs)]
    options += [part for change in given.set for part in ("--set", change)] + ["--compiled"] * given.compiled
    options += [] if given.test_facts is None else ["--test-facts", str(given.test_facts)]
    options += [] if given.hynt_preset is None else ["--hynt-preset", given.hynt_preset]
    options += ["--meeting", str(place)] if given.together else []
    own = {model: place / f"{model}.json" for model in model_names(given.models)}
    python = [sys.executable, "-m", "benchmarks.model_speed"]
    commands = {model: [*python, "--one", model, "--out", str(path), *options] for model, path in own.items()}
    limit = None if given.limit_seconds == float("inf") else given.limit_seconds
    for model, problem in (_side_by_side if given.together else _in_turn)(commands, environment, limit, place):
        row = json.loads(own[model].read_text(encoding="utf-8")) if own[model].exists() else {"problem": problem}
        result["models"][model] = row
        write_measured(given.out, result, str(__doc__))
        shown = {key: row[key] for key in row if key in ("problem", "facts_per_second", "test_seconds")}
        print(f"{model}: {shown}", flush=True)


Commands = Mapping[str, list[str]]


def _in_turn(
    commands: Commands, environment: Mapping[str, str], limit: float | None, _: Path
) -> Iterator[tuple[str, str]]:
    """(model, last word) of each, one process after another."""
    for model, command in commands.items():
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
            yield model, _last_word(done.stderr)
        except subprocess.TimeoutExpired:
            yield model, f"took more than {limit:g} s"


def _side_by_side(
    commands: Commands, environment: Mapping[str, str], limit: float | None, place: Path
) -> Iterator[tuple[str, str]]:
    """(model, last word) of each: all are started at once, and told to begin when none is preparing any more."""
    end = time.monotonic() + (float("inf") if limit is None else limit)
    running = {}
    for model, command in commands.items():
        with (place / f"{model}.log").open("wb") as log:
            running[model] = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        for model, process in running.items():
            while process.poll() is None and not (place / f"{model}.ready").exists() and time.monotonic() < end:
                time.sleep(0.1)
        (place / "begin").touch()
        for model, process in running.items():
            try:
                process.wait(None if limit is None else max(end - time.monotonic(), 0.1))
                yield model, _last_word((place / f"{model}.log").read_text(encoding="utf-8", errors="replace"))
            except subprocess.TimeoutExpired:
                yield model, f"took more than {limit:g} s, with the others"
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _last_word(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[-1]


if __name__ == "__main__":
    main()
