"""Measures training and evaluation of saved graphs on one machine, several jobs in one call, and writes JSON.

    PYTHONPATH=src python3 benchmarks/device.py --out result.json \
        "graph=graphs/hn-yg preset=hn-yg-link measure=epoch,train seeds=0,1,2" \
        "graph=graphs/wd50k preset=wd50k-link measure=epoch,evaluate set=precision=fp32"

A job is a text of key=value pairs:
    graph      a saved graph's folder (needed for all measures but `checks`)
    model      a model's name (default hynt)
    preset     a preset's name; without it the defaults for the graph's size
    measure    some of: checks, epoch, train, ensemble, evaluate, profile, with commas between; `ensemble` asks the kept
               runs of all seeds as one, and the `members` too
    members    for `ensemble`: folders of other runs, with commas between
    weights    for `ensemble`: fitted on validation (the default), or equal
    like       for `ensemble`: folders of as many other runs, on whose validation the weights are fitted, for members
               that were trained on validation too
    seeds      for `train`: whole schedules, one per seed (default 0)
    epochs     for `train`: another length of the schedule
    every      for `train`: validate every so many epochs, for a curve of quality over time
    split      for `train`: which split is asked at the end (default test; valid while anything is being chosen)
    breakdown  for `train`: results by relation, position, qualifiers, frequency or seen, with commas between
    asked      for `train`: the folder of another graph, whose training facts are observed and whose split is asked
    ablation   for `train`: a change of hynt-inductive in `benchmarks/inductive_ablations.py`, or an addition in
               `benchmarks/inductive_trials.py`, with its words after a colon
    keep       for `train`: a folder where runs stay (default: nowhere); one that is there already is only asked
    pause      for `train` with `keep`: an epoch after which a copy of the run, as far as it is, stays beside it
    set        a change of a setting, key=value; may come several times
    name       what to call the job in the result

Results are written after each measurement, so a call that is cut short leaves what it had. `--cache-archive FILE`
unpacks the compiler's cache before the first job and packs it again after the last.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

KEYS = (
    *("graph", "model", "preset", "measure", "seeds", "epochs", "every", "split", "keep", "set", "name"),
    *("members", "weights", "like", "breakdown", "asked", "ablation", "pause"),
)
MEASURES = ("checks", "epoch", "profile", "evaluate", "train", "ensemble")


class Job:
    """One graph with settings, and what to measure on it."""

    def __init__(self, text: str) -> None:
        values: dict[str, list[str]] = defaultdict(list)
        for pair in shlex.split(text):
            key, equals, value = pair.partition("=")
            if not equals or key not in KEYS:
                sys.exit(f"cannot read {pair!r} in the job {text!r}")
            values[key].append(value)
        last = {key: found[-1] for key, found in values.items()}
        self.graph_folder = last.get("graph")
        self.model = last.get("model", "hynt")
        self.preset = last.get("preset")
        self.measures = last.get("measure", "epoch").split(",")
        self.seeds = [int(seed) for seed in last.get("seeds", "0").split(",")]
        self.epochs = int(last["epochs"]) if "epochs" in last else None
        self.changes = values["set"] + ([f"validation.every={last['every']}"] if "every" in last else [])
        self.split = last.get("split", "test")
        self.keep = last.get("keep")
        self.members = [one for one in last.get("members", "").split(",") if one]
        self.equal_weights = last.get("weights", "fitted") == "equal"
        self.like = [one for one in last.get("like", "").split(",") if one]
        self.pause = int(last["pause"]) if "pause" in last else None
        self.breakdown = [one for one in last.get("breakdown", "").split(",") if one]
        self.asked, self.ablation = last.get("asked"), last.get("ablation")
        self.name, self.text = last.get("name", text), text
        unknown = set(self.measures) - set(MEASURES)
        if unknown:
            sys.exit(f"unknown measure {', '.join(unknown)} in the job {text!r}; there are {', '.join(MEASURES)}")


def _unpack(archive: Path, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    if archive.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(cache, filter="data")


def _pack(archive: Path, cache: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cache, arcname=".")


def main() -> None:
    """Runs the jobs of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="+", help="jobs, each one text of key=value pairs")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--plain", action="store_true", help="capture steps without compiling them")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no measurement after this")
    parser.add_argument("--cache-archive", type=Path, help="keeps the compiler's cache between calls")
    given = parser.parse_args()
    jobs = [Job(text) for text in given.jobs]
    began = time.perf_counter()
    cache = Path(tempfile.gettempdir()) / "hynt-compiler-cache"
    if given.cache_archive is not None:
        _unpack(given.cache_archive, cache)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(cache / "triton")

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.device_measures import Bench, say
    from benchmarks.device_rows import rows_of
    from benchmarks.result_file import ResultFile, device_words
    from hynt.kernels.device import chosen_device
    from hynt.runs.run_folder import describe_environment

    device = chosen_device(given.device)
    where, found_of = device_words(describe_environment(device)), dict[str, dict[str, Any]]()

    def write() -> None:
        rows = [row for job in jobs for row in rows_of(job, found_of.get(job.name, {}), where, given.plain)]
        ResultFile("What benchmarks/device.py measured.", rows).write(given.out)

    for job in jobs:
        say(f"{job.name}")
        if job.ablation is not None:
            change(job.ablation)
        found = found_of.setdefault(job.name, {})
        bench = None if job.graph_folder is None else Bench(job, device, not given.plain)
        for measure in job.measures:
            if time.perf_counter() - began > given.limit_seconds:
                found[measure] = {"skipped": "the time limit was reached"}
                continue

            def keep(part: dict[str, Any], into: dict[str, Any] = found) -> None:
                into["train"] = part
                write()

            found[measure] = _measured(measure, bench, keep)
            write()
            if measure in ("epoch", "evaluate"):
                say(f"  {measure}: {json.dumps({k: v for k, v in found[measure].items() if k != 'shapes'})}")
    if given.cache_archive is not None:
        with suppress(OSError):
            _pack(given.cache_archive, cache)
    write()


def change(words: str) -> None:
    """Makes an ablation, or an addition that was tried, to the classes of this process."""
    from benchmarks.inductive_ablations import ABLATIONS
    from benchmarks.inductive_trials import TRIALS

    name, _, own = words.partition(":")
    if name in TRIALS:
        TRIALS[name](own)
    else:
        ABLATIONS[name]()


def _measured(measure: str, bench: Any, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    from benchmarks.device_measures import checks, ensemble, epoch, evaluate, profile, train

    if measure == "checks":
        return checks()
    if bench is None:
        sys.exit(f"the measure {measure} needs graph=FOLDER")
    if measure == "train":
        return train(bench, keep)
    return {"epoch": epoch, "profile": profile, "evaluate": evaluate, "ensemble": ensemble}[measure](bench)


if __name__ == "__main__":
    main()
