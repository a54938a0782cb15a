"""Trains many models on saved graphs, several at once, each within a budget of time, and writes one JSON.

    PYTHONPATH=src python3 -m benchmarks.reproduce --graph graphs/HN-YG --models all --seconds-per-model 100 --jobs 6 \
        --device cuda --out hn-yg.json

Each model is a process of its own with its `MODEL-paper` preset; a crash is recorded with its last lines and ends
nothing else. The JSON is written after every model, so a call that is cut short leaves what it had; called again with
the same `--out`, it does only what is missing. Shortly before `--limit-seconds` are over, training ends wherever it is,
and rows are made of what there is. Validation on a sample of facts chooses the weights; test is read once.

`--graph` may be said several times, and so may `--job "graph=FOLDER models=a,b seconds=50 tasks=link"`, which overrides
the options of the same names; `set=key=value;key=value` and `name=…` are for that job alone. `seconds=whole` runs the
schedule out. `--evidence` adds to each row what papers leave out. `--models` takes names, `MODEL:PRESET`, `all`,
and `trivial` for trivial rows alone.
`--set MODEL:key=value` changes a setting of one model, `--set key=value` of all.

`--search N` tries N settings of the model's grid in the paper first, on validation and in as much time as the row then
takes, or in `--search-share` of it; what they reached stands in the row. `--try "MODEL:key=value;key=value"`, said once
for each, tries these changes instead; `--try MODEL:` is the preset as it is. `--fill-time`, or `fill=yes` in a job,
cuts or stretches the schedule to the time there is, so that a rate that is to fall to nothing does.

For a short budget on a large GPU the authors' batches are too small, so they are enlarged (`reproduce_budget`), and
rates with them: `--as-published` leaves presets as they are. What was changed stands in each row.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.result_file import ResultFile, Row, device_words, read_results, row_of_trial, this_commit

TRIVIAL = "trivial"
"""Among models: the rows that every graph gets, which nothing is trained for."""

LAST_LINES = 25
OF_A_JOB = ("graph", "models", "seconds", "tasks", "test_facts", "search", "fill", "set", "name")
GRACE_SECONDS = 240.0
"""A process may take its training time three times and this on top, for starting, validating and testing."""


SLOWEST_FIRST = ("gran", "stare", "hy-transformer", "hinge", "nalp", "tnalp", "neuinfer", "literale", "kbln")
"""These take longest to test or to start; begun first, they end with the rest."""


@dataclass
class Work:
    """One model on one graph."""

    graph: str
    model: str
    preset: str | None
    seconds: float | None  # None: the whole schedule
    tasks: str
    changes: list[str]
    validation_facts: int
    validations: int
    device: str
    compiled: bool
    seed: int
    batch_scale: float | None = None  # None: as `reproduce_budget` says
    test_facts: int | None = None
    search: int = 0  # how many settings of the paper's grid are tried first
    candidates: list[list[str]] = field(default_factory=list)  # or these changes
    fills_time: bool = False  # the schedule lasts just these seconds
    search_share: float = 1.0  # how long trying takes, in times of the row's own seconds
    evidence: bool = False  # whether calibration, breakdowns and outcomes stand in the row
    title: str | None = None  # of the row; None: graph, model and preset
    ends_in: float | None = None  # seconds from its beginning: what was trained till then is tested
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    began: float = 0.0
    processor_time: bool = False  # whether seconds are those of the processor, for a machine that is busy

    @property
    def name(self) -> str:
        return self.title or f"{Path(self.graph).name} {self.model}" + (f":{self.preset}" if self.preset else "")

    @property
    def longest_seconds(self) -> float:
        """After which something must be wrong."""
        if self.seconds is None:
            return float("inf")
        is_searched = self.search > 1 or bool(self.candidates)
        return (3 + is_searched * self.search_share) * self.seconds + GRACE_SECONDS

    @property
    def command(self) -> str:
        """What makes just this row."""
        model = f"{self.model}:{self.preset}" if self.preset else self.model
        seconds = "whole" if self.seconds is None else f"{self.seconds:g}"
        words = ["--graph", Path(self.graph).name, "--models", model, "--seconds-per-model", seconds]
        words += ["--tasks", self.tasks]
        words += ["--seeds", str(self.seed), "--device", self.device, "--validation-facts", str(self.validation_facts)]
        words += ["--validations", str(self.validations), *(["--compiled"] if self.compiled else [])]
        words += [] if self.batch_scale is None else ["--batch-scale", f"{self.batch_scale:g}"]
        words += [] if self.test_facts is None else ["--test-facts", str(self.test_facts)]
        words += ["--search", str(self.search)] if self.search else []
        words += ["--search-share", f"{self.search_share:g}"] if self.search or self.candidates else []
        words += [part for one in self.candidates for part in ("--try", f"{self.model}:{';'.join(one)}")]
        words += [part for change in self.changes for part in ("--set", change)]
        words += ["--fill-time"] * self.fills_time + ["--evidence"] * self.evidence
        words += ["--processor-time"] * self.processor_time
        words += [] if self.title is None else ["--title", self.title]
        return shlex.join(["python", "-m", "benchmarks.reproduce", *words, "--out", "FILE"])

    def mapping(self) -> dict[str, Any]:
        """Plain JSON, for the process that does it."""
        return {key: value for key, value in vars(self).items() if key not in ("process", "began")}


def said(text: str) -> None:
    """Prints at once: a call that is cut short must not swallow it."""
    print(text, flush=True)


def chosen_models(names: str) -> list[tuple[str, str | None]]:
    """(model, preset) of each; `all` is every model that learns by steps, `trivial` none but the trivial rows."""
    from hynt.models.registry import MODELS

    found: list[tuple[str, str | None]] = []
    for name in names.split(","):
        if name == "all":
            found += [(model, None) for model, entry in MODELS.items() if entry.learns]
            continue
        model, _, preset = name.partition(":")
        if name != TRIVIAL:
            MODELS.get(model)
        found.append((model, preset or None))
    return found


def work_list(given: argparse.Namespace) -> list[Work]:
    """Everything to be done, the slowest first."""
    jobs: list[dict[str, str]] = [{"graph": graph} for graph in given.graph]
    for text in given.job:
        pairs = dict(pair.split("=", 1) for pair in shlex.split(text))
        if set(pairs) - set(OF_A_JOB) or "graph" not in pairs or pairs.get("fill", "yes") not in ("yes", "no"):
            sys.exit(f"cannot read the job {text!r}: it takes {', '.join(f'{key}=' for key in OF_A_JOB)} (yes or no)")
        jobs.append(pairs)
    found = []
    for job in jobs:
        for model, preset in chosen_models(job.get("models", given.models)):
            own = [change.split(":", 1)[1] for change in given.set if change.startswith(f"{model}:")]
            changes = [change for change in given.set if ":" not in change.partition("=")[0]] + own
            changes += [change for change in job.get("set", "").split(";") if change]
            seconds = job.get("seconds", given.seconds_per_model)
            found += [
                Work(
                    job["graph"],
                    model,
                    preset,
                    None if seconds == "whole" else float(seconds),
                    job.get("tasks", given.tasks),
                    changes,
                    given.validation_facts,
                    given.validations,
                    given.device,
                    given.compiled,
                    seed,
                    1.0 if given.as_published else given.batch_scale,
                    int(job["test_facts"]) if "test_facts" in job else given.test_facts,
                    int(job.get("search", given.search)),
                    candidates_of(model, given.candidates),
                    job["fill"] == "yes" if "fill" in job else given.fill_time,
                    given.search_share,
                    given.evidence,
                    job.get("name", given.title),
                    processor_time=given.processor_time,
                )
                for seed in given.seeds
            ]
    refuse_strangers(given)
    order = {model: index for index, model in enumerate(SLOWEST_FIRST)}
    return sorted(found, key=lambda work: order.get(work.model, len(order)))


def refuse_strangers(given: argparse.Namespace) -> None:
    """A change for a model that does not exist would be passed over in silence."""
    from hynt.models.registry import MODELS

    of_models = [change for change in given.set if ":" in change.partition("=")[0]]
    for change in [*of_models, *given.candidates]:
        if change.partition(":")[0] not in MODELS:
            sys.exit(f"{change!r} is for no model. Known: {', '.join(MODELS)}")


def candidates_of(model: str, tried: list[str]) -> list[list[str]]:
    """The changes that each `--try MODEL:key=value;key=value` of a model names."""
    named = [text.split(":", 1)[1] for text in tried if text.startswith(f"{model}:")]
    return [[change for change in text.split(";") if change] for text in named]


def main() -> None:
    """Runs everything, or as a child one piece of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", default=[], help="a saved graph's folder")
    parser.add_argument("--job", action="append", default=[], help="a graph with options of its own")
    parser.add_argument("--models", default="all")
    parser.add_argument("--tasks", default="link,relation,number")
    parser.add_argument("--seconds-per-model", default="100", help="of training alone, or `whole` for all epochs")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="models trained at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch-scale", type=float, help="enlarge all batches by this, instead of as listed")
    parser.add_argument("--as-published", action="store_true", help="leave batches and rates as the presets have them")
    parser.add_argument("--set", action="append", default=[], metavar="[MODEL:]KEY=VALUE")
    parser.add_argument("--validation-facts", type=int, default=1000)
    parser.add_argument("--validations", type=int, default=6)
    parser.add_argument("--test-facts", type=int, help="ask about so many test facts only, drawn once")
    parser.add_argument("--search", type=int, default=0, help="first try so many settings of the paper's grid")
    parser.add_argument(
        "--try",
        action="append",
        default=[],
        dest="candidates",
        metavar="MODEL:CHANGES",
        help="first try these changes, separated by semicolons",
    )
    parser.add_argument("--search-share", type=float, default=1.0, help="time to choose settings, in times of a row's")
    parser.add_argument("--fill-time", action="store_true", help="cut or stretch each schedule to the time there is")
    parser.add_argument("--evidence", action="store_true", help="also calibration, breakdowns, and outcomes to compare")
    parser.add_argument("--processor-time", action="store_true", help="count seconds of the processor, not the clock")
    parser.add_argument("--title", help="what to call the row, for one model on one graph")
    parser.add_argument("--compiled", action="store_true", help="compile steps: faster, but half a minute before that")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="end everything after this")
    parser.add_argument("--seconds-for-test", type=float, default=40.0, help="before that, when all training ends")
    parser.add_argument("--share-gpu", action="store_true", help="let processes run side by side on the GPU (MPS)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        from benchmarks.reproduce_one import do_one

        do_one(json.loads(given.one), given.out)
        return
    if given.out is None or not (given.graph or given.job):
        parser.error("--out and a --graph or a --job are needed")
    Reproduction(given).run()


class Reproduction:
    """The processes at work and what they have found."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.began = given, time.monotonic()
        self.waiting = work_list(given)
        self.running: list[Work] = []
        self.result = ResultFile("Models on saved graphs, each within a budget of time, on test.")
        if given.out.exists():
            self.result = read_results(given.out, "move it away, or name another --out")
        done = {(row.name, run.seed) for row in self.result.rows for run in row.runs}
        self.waiting = [work for work in self.waiting if (work.name, work.seed) not in done]
        # More threads than cores that wait for one another by spinning are slower by far than one thread each.
        threads = str(max(1, (os.cpu_count() or 1) // max(given.jobs, 1)))
        self.environment = {**os.environ, "OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}

    def run(self) -> None:
        """Until all is done, or time is up."""
        with tempfile.TemporaryDirectory(prefix="reproduce-") as place:
            self.place = Path(place)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # `finally` ends the processes
            if self.given.share_gpu:
                from benchmarks.reproduce_one import shared_gpu

                self.environment |= shared_gpu(self.place)
            self._trivial()
            try:
                while self.waiting or self.running:
                    while self.waiting and len(self.running) < self.given.jobs and not self._time_is_up():
                        self._begin(self.waiting.pop(0))
                    self._collect()
                    if self._time_is_up():
                        break
                    time.sleep(0.5)
            finally:
                for work in self.running:
                    assert work.process is not None
                    work.process.kill()
                    work.process.wait()
                    self._keep_or_fail(work, "the time of the whole call was up")
                for work in self.waiting:
                    self._note(work, {"failed": "not begun: the time of the whole call was up"})
                self._write()
                if "CUDA_MPS_PIPE_DIRECTORY" in self.environment and self.given.share_gpu:
                    subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=self.environment, check=False)

    def _trivial(self) -> None:
        """Trivial rows of each graph, in processes of their own."""
        of_data = [change for change in self.given.set if change.startswith(("scale_on=", "train_on="))]
        graphs = {work.graph: None for work in self.waiting}
        self.waiting = [work for work in self.waiting if work.model != TRIVIAL]  # asked for or not, they are made
        for graph in graphs:
            if self.result.row(f"{Path(graph).name} frequency") is None:
                self.waiting.insert(
                    0, Work(graph, TRIVIAL, None, 0, self.given.tasks, of_data, 0, 1, self.given.device, False, 0)
                )

    def _begin(self, work: Work) -> None:
        if self.given.limit_seconds < float("inf"):
            left = self.given.limit_seconds - (time.monotonic() - self.began)
            work.ends_in = max(left - self.given.seconds_for_test, 0.0)
        log = (self._path(work, "log")).open("wb")
        command = [sys.executable, "-m", "benchmarks.reproduce", "--one", json.dumps(work.mapping())]
        command += ["--out", str(self._path(work, "json"))]
        work.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=self.environment)
        work.began = time.monotonic()
        self.running.append(work)
        said(f"{self._elapsed()} {work.name}: begun")

    def _collect(self) -> None:
        for work in list(self.running):
            assert work.process is not None
            code = work.process.poll()
            if code is None:
                if time.monotonic() - work.began < work.longest_seconds:
                    continue
                work.process.kill()
                work.process.wait()
                self._keep_or_fail(work, "took too long and was ended")
            else:
                self._keep_or_fail(work, f"ended with {code}")
            self.running.remove(work)
            self._write()

    def _keep_or_fail(self, work: Work, reason: str) -> None:
        """A row that was written counts, even if its evidence was not."""
        if self._path(work, "json").exists():
            self._keep(work, json.loads(self._path(work, "json").read_text(encoding="utf-8")))
        else:
            self._fail(work, reason)

    def _keep(self, work: Work, row: dict[str, Any]) -> None:
        graph, device = Path(work.graph).name, device_words(row.pop("environment"))
        more: dict[str, Any] = {"fingerprint": row.pop("fingerprint"), "commit": this_commit()}
        trials = row if work.model == TRIVIAL else {work.model: row}
        for model, trial in trials.items():
            name = f"{graph} {model}" if work.model == TRIVIAL else work.name
            made = row_of_trial(trial, name, graph, device, commands=[work.command], **more)
            self.result = self.result.with_row(made)
        if work.model == TRIVIAL:
            return
        test = row["test"]["realistic"]
        words = [f"{task} {next(iter(scope['all'].values()))}" for task, scope in test.items()]
        said(f"{self._elapsed()} {work.name}: {row['epochs']}/{row['schedule_epochs']} epochs, {', '.join(words)}")

    def _fail(self, work: Work, reason: str) -> None:
        lines = self._lines(work)
        self._note(work, {"failed": reason, "last_lines": lines})
        said(f"{self._elapsed()} {work.name}: {reason}; {lines[-1] if lines else 'no word'}")

    def _note(self, work: Work, measured: dict[str, Any]) -> None:
        """A row without runs says why; one that has runs keeps them."""
        before = self.result.row(work.name)
        if before is None or not before.runs:
            graph = Path(work.graph).name
            row = Row(work.name, [work.command], work.device, this_commit(), work.model, graph, measured=measured)
            self.result = self.result.with_row(row)

    def _lines(self, work: Work) -> list[str]:
        text = self._path(work, "log").read_text(encoding="utf-8", errors="replace")
        return text.splitlines()[-LAST_LINES:]

    def _path(self, work: Work, ending: str) -> Path:
        return self.place / f"{work.name.replace(' ', '_').replace(':', '-').replace('/', '-')}-{work.seed}.{ending}"

    def _write(self) -> None:
        self.result.write(self.given.out)

    def _time_is_up(self) -> bool:
        return bool(time.monotonic() - self.began > self.given.limit_seconds)

    def _elapsed(self) -> str:
        return f"[{time.monotonic() - self.began:6.1f} s]"


if __name__ == "__main__":
    main()
