"""How many questions a second a run answers: from columns in memory, from Parquet and from JSON lines to Parquet.

    python -m benchmarks.completion_speed --run runs/first --out completion.json
    python -m benchmarks.completion_speed --graph world --epochs 2 --device cuda --out completion.json

With `--graph`, a built-in name or a saved graph's folder, a run is trained first for a few epochs: speed does not
depend on how well it learned. Besides the clock's seconds, the processor's are given: on a machine that does other
things as well, they are the ones to compare. `--limit-seconds` skips what is left when the time is up; the JSON is
written after each measure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait must not take the processor from others

import torch

from benchmarks.completion_questions import KINDS, drawn, write_jsonl, write_parquet
from benchmarks.result_file import write_measured
from hynt.asking.predictor import Predictor
from hynt.completion.batches import BatchAnswers, CompletionOptions
from hynt.completion.completing import complete
from hynt.completion.question_files import open_questions
from hynt.front.run import load

BATCH = 16_384


def main() -> None:
    given = _arguments()
    if given.threads:
        torch.set_num_threads(given.threads)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run = Path(given.run) if given.run else None
        run = run or trained(given.graph, given.preset, given.epochs, given.device, place / "run")
        predictor = load(run, given.device)
        predictor.calibration  # noqa: B018 - made on first use, which is not what is measured
        result = described(predictor, given)
        for name, work in measures(predictor, given, place).items():
            if time.monotonic() - began > given.limit_seconds:
                result["cut_short"] = True
                break
            result["measures"][name] = timed(work)
            print(name, json.dumps(result["measures"][name]), flush=True)
            result["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            if predictor.device.type == "cuda":
                result["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated()
            write_measured(Path(given.out), result, str(__doc__))


def measures(predictor: Predictor, given: argparse.Namespace, place: Path) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name; each says how many questions it answered, and in how many seconds."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    found["warm-up"] = lambda: from_columns(predictor, 2048, KINDS[:3], given)
    for kind in KINDS:
        count = given.questions // (16 if kind == KINDS[3] else 4)
        found[f"from columns: {kind}"] = partial(from_columns, predictor, count, (kind,), given)
    found["from columns: all but relations beside numbers"] = lambda: from_columns(
        predictor, given.questions, KINDS[:3], given
    )
    for name, write in (("Parquet", write_parquet), ("JSON lines", write_jsonl)):
        for on_error in ("record", "stop"):
            job = partial(from_file, predictor, write, on_error, given, place)
            found[f"{name} to Parquet, on-error {on_error}"] = job
    found["one by one, predict()"] = lambda: one_by_one(predictor, given)
    return found


def from_columns(predictor: Predictor, count: int, kinds: tuple[str, ...], given: argparse.Namespace) -> dict[str, Any]:
    """Scoring alone: questions are encoded beforehand, answers become rows and are let go."""
    answers = BatchAnswers(predictor, CompletionOptions(given.top))
    with tempfile.TemporaryDirectory() as folder:
        file = open_questions(write_parquet(drawn(predictor.graph, count, 0, kinds), Path(folder) / "q.parquet"))
        batches = [answers.checked(batch, explain=False) for batch in file.batches(BATCH)]
    assert not any(batch.refused for batch in batches)
    clock = _Clock(predictor)
    rows = sum(len(answers.answered(batch)) for batch in batches)
    return clock.told(count, rows)


def from_file(
    predictor: Predictor, write: Callable[[Any, Path], Path], on_error: Any, given: argparse.Namespace, place: Path
) -> dict[str, Any]:
    """The whole job, as `hynt complete` does it after the run is loaded."""
    ending = "parquet" if write is write_parquet else "jsonl"
    path = place / f"questions.{ending}"
    if not path.exists():
        write(drawn(predictor.graph, given.questions, 1), path)
    out = place / "answers.parquet"
    clock = _Clock(predictor)
    done = complete(predictor, path, out, CompletionOptions(given.top), on_error=on_error)
    told = clock.told(done.questions, done.rows)
    return told | {"question_bytes": path.stat().st_size, "answer_bytes": out.stat().st_size}


def one_by_one(predictor: Predictor, given: argparse.Namespace) -> dict[str, Any]:
    """As a loop in Python would ask."""
    count = min(200, given.questions)
    (batch,) = open_questions(_few(predictor, count)).batches(count)
    asked = [batch.questions.parts(row) for row in range(count)]
    predictor.predict(asked[0], top=given.top)
    clock = _Clock(predictor)
    rows = sum(len(predictor.predict(one, top=given.top)) for one in asked)
    return clock.told(count, rows)


def _few(predictor: Predictor, count: int) -> Path:
    path = Path(tempfile.mkdtemp()) / "few.parquet"
    return write_parquet(drawn(predictor.graph, count, 2), path)


class _Clock:
    """From now on."""

    def __init__(self, predictor: Predictor) -> None:
        self._on_cuda = predictor.device.type == "cuda"
        self._wall, self._spent = time.perf_counter(), time.process_time()

    def told(self, questions: int, rows: int) -> dict[str, Any]:
        if self._on_cuda:
            torch.cuda.synchronize()
        wall, spent = time.perf_counter() - self._wall, time.process_time() - self._spent
        return {
            "questions": questions,
            "rows": rows,
            "seconds": wall,
            "processor_seconds": spent,
            "questions_per_second": questions / wall,
            "questions_per_processor_second": questions / spent,
        }


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """With what the machine was doing meanwhile."""
    before = os.getloadavg()[0]
    return work() | {"load_before": before, "load_after": os.getloadavg()[0]}


def trained(graph: str, preset: str | None, epochs: int, device: str, out: Path) -> Path:
    """A run of a few epochs with a preset, or with the settings that the graph's size suggests."""
    from hynt.graph.storage import load_graph
    from hynt.kernels.device import chosen_device
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import start, train

    found, target = load_graph(graph), chosen_device(device)
    named = preset or ("world" if graph == "world" else None)
    settings = resolve_settings(SettingsRequest("hynt", named, epochs), found, on_gpu=target.type == "cuda")
    return train(start(found, settings, out, target), target, compiled=False).path  # compiling pays for long runs alone


def described(predictor: Predictor, given: argparse.Namespace) -> dict[str, Any]:
    graph, device, settings = predictor.graph, predictor.device, predictor.loaded.settings
    return {
        "graph": graph.name,
        "entities": graph.vocabulary.entity_count,
        "relations": graph.vocabulary.relation_count,
        "model": settings.model_name,
        "dimension": getattr(settings.model, "dimension", None),
        "top": given.top,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor(),
        "device_type": device.type,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "measures": {},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", help="a finished run")
    source.add_argument("--graph", help="train on this graph first: world, or a saved graph's folder")
    parser.add_argument("--preset", help="settings of the run that is trained")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--limit-seconds", type=float, default=600)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
