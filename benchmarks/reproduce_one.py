"""One model on one graph, as a process of `benchmarks.reproduce`; and sharing a GPU between such processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.result_file import graph_fingerprint
from hynt.runs.checkpoint import Watcher


class Teller(Watcher):
    """Tells of validations, and of epochs now and then: the last lines of a process that fails are all there is."""

    def epoch_done(self, record: Any) -> None:
        """Every epoch up to the tenth, then every tenth."""
        if record.epoch <= 10 or record.epoch % 10 == 0:
            seconds = _really(record.seconds)
            print(f"{record.phase}: epoch {record.epoch}, {seconds:.2f} s, {record.losses}", flush=True)

    def validated(self, record: Any) -> None:
        """A point of the curve."""
        words = f"{record.metric} {record.value:.4f} after {_really(record.trained_seconds):.1f} s"
        print(f"epoch {record.epoch}: {words}, validated in {_really(record.seconds):.1f} s", flush=True)

    def note(self, text: str) -> None:
        """Passed on."""
        print(f"note: {text}", flush=True)


AHEAD = 1e7
"""Seconds: more than any budget, so that they can be taken off again."""


class EndingClock:
    """Training time, until the whole call has to end: then it runs ahead, further each time it is asked, so that
    training is out of time whenever it next looks, and what there is can be tested.
    """

    def __init__(self, end: float, clock: Callable[[], float]) -> None:
        self.end, self.clock = end, clock
        self.ahead, self.is_begun = 0.0, False  # what training began at must be told as it is

    def __call__(self) -> float:
        if self.is_begun and time.monotonic() >= self.end:
            self.ahead += AHEAD
        self.is_begun = True
        return self.clock() + self.ahead


def without_ahead(told: Any) -> Any:
    """A row, or any part of it, with seconds as they were."""
    if isinstance(told, dict):
        return {key: _really(value) if "seconds" in key else without_ahead(value) for key, value in told.items()}
    return [without_ahead(one) for one in told] if isinstance(told, list) else told


def _really(seconds: Any) -> Any:
    return seconds % AHEAD if isinstance(seconds, float) else seconds


def changes_of(work: Mapping[str, Any], batch_size: int) -> tuple[str, ...]:
    """What differs from the preset: larger batches, rates to suit, and what was asked for, which wins."""
    from benchmarks.reproduce_budget import BUDGET, Budget
    from benchmarks.reproduce_search import together

    budget, scale = BUDGET.get(work["model"], Budget()), work["batch_scale"]
    changes = [f"batch_size={round(batch_size * (budget.batch_scale if scale is None else scale))}"]
    if scale is None and work["preset"] is None:
        changes += budget.changes
    elif scale == 1:
        changes = []
    return together(changes, work["changes"])


def do_one(work: Mapping[str, Any], out: Path) -> None:
    """Trains and judges, and writes the row."""
    import torch

    from benchmarks.evidence import from_answers, from_asking
    from benchmarks.reproduce_budget import BUDGET, Budget
    from benchmarks.reproduce_search import grid_changes, searched
    from hynt.comparison.trial import Trial, TrialPlace, run_trial, training_clock, trivial_rows
    from hynt.graph.storage import load_graph
    from hynt.kernels.device import chosen_device
    from hynt.runs.run_folder import describe_environment
    from hynt.training.resolve_settings import GRIDS, PRESETS

    device = chosen_device(work["device"])
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # while training; evaluation takes full float32 products
    graph = load_graph(work["graph"])
    of_place = {"environment": describe_environment(device), "fingerprint": graph_fingerprint(graph)}
    end = float("inf") if work["ends_in"] is None else time.monotonic() + work["ends_in"]
    told = time.process_time if work["processor_time"] else training_clock
    clock = EndingClock(end, told)
    place = TrialPlace(graph, device, Path(work["graph"]), work["tasks"].split(","), work["compiled"], clock)
    if work["model"] == "trivial":
        rows = trivial_rows(place, Trial("frequency", changes=tuple(work["changes"])).settings(graph, device))
        write(out, rows | of_place)
        return
    # Named, the preset of the paper stays as it is: unnamed, a run for one's own graph answers with statistics too.
    of_paper = f"{work['model']}-paper"
    preset = work["preset"] or (of_paper if of_paper in PRESETS else None)
    plain = Trial(work["model"], preset, work["seed"])
    budget = BUDGET.get(work["model"], Budget())
    # Only a schedule that counts seconds looks at the clock, so one that is to run out is given very many.
    counted = ("schedule.seconds=1e9",) if work["seconds"] is None and work["ends_in"] is not None else ()
    trial = Trial(
        work["model"],
        preset,
        work["seed"],
        work["seconds"],
        min(work["validations"], budget.validations or work["validations"]),
        min(work["validation_facts"], budget.validation_facts or work["validation_facts"]),
        work["test_facts"],
        (*changes_of(work, plain.settings(graph, device).batch_size), *counted),
        work["fills_time"],
    )
    found: list[dict[str, Any]] = []
    candidates = [tuple(one) for one in work["candidates"]]
    if not candidates and work["search"] > 1 and work["model"] in GRIDS:
        candidates = grid_changes(work["model"], work["search"])
    if candidates:
        trial, found = searched(place, trial, candidates, work["search_share"], Teller())
        clock = EndingClock(end, told)
        place = replace(place, clock=clock)
    with tempfile.TemporaryDirectory(prefix="reproduce-run-") as folder:
        run, further = Path(folder) / "run", from_answers if work["evidence"] else None
        row = without_ahead(run_trial(place, trial, run, Teller(), further=further))
        row["changes"] = [one for one in row["changes"] if one not in counted]
        row |= of_place | ({"searched": found} if found else {})
        write(out, row)
        if work["evidence"]:
            write(out, row | from_asking(run, device))


def write(path: Path, row: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def shared_gpu(place: Path) -> dict[str, str]:
    """Starts NVIDIA's service that lets processes use the GPU at the same time, and says what they need to know of it.

    Without it the GPU goes from process to process in slices of time. Where it cannot be started, nothing is changed.
    """
    if shutil.which("nvidia-cuda-mps-control") is None:
        print("processes take turns on the GPU: there is no nvidia-cuda-mps-control", flush=True)
        return {}
    told = {"CUDA_MPS_PIPE_DIRECTORY": str(place / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(place / "mps-log")}
    for folder in told.values():
        Path(folder).mkdir()
    environment = {**os.environ, **told}
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True, timeout=30, capture_output=True)
        trial = "import torch; print(float(torch.ones(2, device='cuda').sum()))"
        subprocess.run([sys.executable, "-c", trial], env=environment, check=True, timeout=60, capture_output=True)
    except (OSError, subprocess.SubprocessError) as problem:
        print(f"processes take turns on the GPU: {problem}", flush=True)
        return {}
    return told
