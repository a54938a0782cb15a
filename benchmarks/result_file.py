"""The one form of every raw file of results in `docs/results/raw`: rows, each with what made it and what it came to.

    {"schema": 1, "what": "…", "rows": [
    {"name": "…", "commands": ["…"], "device": "…", …},
    …]}

A row is a model on a graph, with a run for each seed, or something else that was measured. A line of the file is a row,
and what a row has not is left out of it. Programs write these files by `ResultFile.write` and `write_measured`, and
read them by `read_results` and `read_measured`; a damaged, strange or missing file is refused in a sentence.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SCHEMA = 1
RAW = Path(__file__).resolve().parent.parent / "docs" / "results" / "raw"
TASKS = ("link", "relation", "number", "link_type_constrained")
METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "rmse", "mae", "crps", "vs_median", "count")
"""Of a task and scope; what else an evaluation tells is not kept."""

PLACES = re.compile(r"(^|[\s=\"'])(/(?:home|root|tmp|work|mnt|data|usr)/|~/)")
"""Paths of one machine, which say nothing to others."""

Metrics = dict[str, dict[str, dict[str, Any]]]  # by task, scope and metric


class DamagedResults(ValueError):
    """A file that is not of this form; the text says where."""


@dataclass(frozen=True)
class Run:
    """One training and what it answered, or one asking of what is not trained."""

    seed: int | None = None  # None: nothing is drawn, or several runs are asked as one
    metrics: dict[str, Metrics] = field(default_factory=dict)  # by split
    seconds: dict[str, float] = field(default_factory=dict)  # of `train`, `test` and others
    cost: dict[str, Any] = field(default_factory=dict)  # epochs, parameters, memory_bytes and the like
    curve: list[list[float]] = field(default_factory=list)  # epoch, seconds trained, value on validation
    per_relation: dict[str, dict[str, float]] = field(default_factory=dict)  # number errors in the graph's units
    breakdowns: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)  # by task and grouping
    calibration: dict[str, Any] = field(default_factory=dict)  # error of probabilities, coverage of intervals
    outcomes: dict[str, str] = field(default_factory=dict)  # by task, packed by `Outcomes`: for comparing in pairs

    def metric(self, split: str, task: str, scope: str, metric: str) -> float | None:
        """One figure; None where it was not asked for."""
        value = self.metrics.get(split, {}).get(task, {}).get(scope, {}).get(metric)
        return None if value is None else float(value)


@dataclass(frozen=True)
class Row:
    """One configuration, with a run for each seed."""

    name: str  # unique in its file
    commands: list[str]  # that make it, the earliest first; none where they were not kept
    device: str
    commit: str | None = None  # None: not kept
    model: str | None = None
    graph: str | None = None
    fingerprint: str | None = None  # of the graph's content; None: not kept
    split: str | None = None  # that the row is about
    preset: str | None = None
    changes: list[str] = field(default_factory=list)  # of settings of the preset, `key=value`
    settings: dict[str, Any] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)  # `link, head`
    note: str = ""
    runs: list[Run] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)  # what is no metric of a task

    def figure(self, task: str, scope: str, metric: str) -> Figure | None:
        """Over the seeds; None where the model is not asked, or not about qualifiers."""
        of_qualifiers = any(answer.startswith(f"{task}, qualifier") for answer in self.answers)
        if scope.startswith("all") and self.answers and not of_qualifiers:
            return None
        found = [run.metric(self.split or "test", task, scope, metric) for run in self.runs]
        known = [value for value in found if value is not None]
        return Figure.of(known) if known else None

    @property
    def is_cut_short(self) -> bool:
        """Whether time ended before the schedule did."""
        return any(run.cost.get("budget_limited") for run in self.runs)


class Figure(NamedTuple):
    """A mean over seeds."""

    mean: float
    deviation: float | None  # None for one seed
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class ResultFile:
    """What a file answers, and its rows."""

    what: str
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row | None:
        return next((one for one in self.rows if one.name == name), None)

    def with_row(self, row: Row) -> ResultFile:
        """The row is added, or takes the place of the one of its name; seeds it lacks are kept from that one."""
        old = self.row(row.name)
        if old is None:
            return ResultFile(self.what, [*self.rows, row])
        have = {run.seed for run in row.runs}
        runs = sorted([*(run for run in old.runs if run.seed not in have), *row.runs], key=lambda run: run.seed or 0)
        commands = list(dict.fromkeys([*(old.commands if len(runs) > len(row.runs) else []), *row.commands]))
        joined = Row(**{**_shallow(row), "runs": runs, "commands": commands})
        return ResultFile(self.what, [joined if one is old else one for one in self.rows])

    def write(self, path: Path) -> None:
        """Whole or not at all. What was measured is never refused here: `parsed` does that, in a test."""
        lines = [json.dumps(_plain(row), ensure_ascii=False, separators=(",", ":")) for row in self.rows]
        head = f'{{"schema": {SCHEMA}, "what": {json.dumps(self.what, ensure_ascii=False)}, "rows": [\n'
        text = head + ",\n".join(lines) + "\n]}\n"
        partial = path.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)


def read_results(path: Path, advice: str = "see benchmarks/result_file.py for the form") -> ResultFile:
    """The file, which must be of this form; ends the program where it is not."""
    try:
        return parsed(json.loads(path.read_text(encoding="utf-8")), path.name)
    except (OSError, ValueError) as problem:
        sys.exit(f"{path} cannot be read ({problem}): {advice}")


def parsed(content: Any, where: str) -> ResultFile:
    """Checks everything that can be checked without the graph."""
    whole = _mapping(content, where, {"schema", "what", "rows"}, {"schema", "what", "rows"})
    if whole["schema"] != SCHEMA:
        raise DamagedResults(f"{where}: the schema is {whole['schema']!r}, not {SCHEMA}")
    rows = [_row(row, f"{where}, row {index}") for index, row in enumerate(_list(whole["rows"], f"{where}.rows"), 1)]
    names = [row.name for row in rows]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise DamagedResults(f"{where}: several rows are called {sorted(doubled)[0]!r}")
    if not isinstance(whole["what"], str) or not whole["what"]:
        raise DamagedResults(f"{where}: it does not say what it is")
    return ResultFile(whole["what"], rows)


def _row(content: Any, where: str) -> Row:
    known = {one.name for one in fields(Row)}
    found = _mapping(content, where, known, {"name", "commands", "device"})
    where = f"{where} ({found['name']})"
    for name in ("name", "device"):
        if not isinstance(found[name], str) or not found[name]:
            raise DamagedResults(f"{where}: {name} is empty")
    for command in _list(found["commands"], f"{where}.commands"):
        if not isinstance(command, str) or not command or PLACES.search(command):
            raise DamagedResults(f"{where}: {command!r} is no command that others could give")
    commit = found.get("commit")
    if commit is not None and not re.fullmatch(r"[0-9a-f]{7,40}( to [0-9a-f]{7,40})?", commit):
        raise DamagedResults(f"{where}: {commit!r} is no commit")
    runs = [_run(run, f"{where}, run {index}") for index, run in enumerate(found.get("runs", []))]
    if not runs and not found.get("measured"):
        raise DamagedResults(f"{where}: nothing was run or measured")
    _finite(found.get("measured", {}), f"{where}.measured")
    seeds = [run.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        raise DamagedResults(f"{where}: a seed has several runs")
    return Row(**{**found, "runs": runs})


def _run(content: Any, where: str) -> Run:
    found = _mapping(content, where, {one.name for one in fields(Run)}, set())
    for split, tasks in found.get("metrics", {}).items():
        for task, scopes in _mapping(tasks, f"{where}.{split}", set(TASKS), set()).items():
            for scope, metrics in _mapping(scopes, f"{where}.{task}", None, set()).items():
                _mapping(metrics, f"{where}.{task}.{scope}", set(METRICS), set())
    for name, value in found.get("seconds", {}).items():
        if not isinstance(value, int | float) or value < 0:
            raise DamagedResults(f"{where}: {name} took {value!r} seconds")
    for task, packed in found.get("outcomes", {}).items():
        if len({len(column) for column in Outcomes.unpacked(packed)}) > 1:
            raise DamagedResults(f"{where}: outcomes of {task} are of different lengths")
    _finite(found, where)
    return Run(**found)


def _mapping(content: Any, where: str, known: set[str] | None, needed: set[str]) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise DamagedResults(f"{where}: a mapping is wanted, not {type(content).__name__}")
    if missing := needed - set(content):
        raise DamagedResults(f"{where}: {', '.join(sorted(missing))} is missing")
    if known is not None and (strange := set(content) - known):
        raise DamagedResults(f"{where}: nothing is called {', '.join(sorted(strange))}")
    return content


def _list(content: Any, where: str) -> list[Any]:
    if not isinstance(content, list):
        raise DamagedResults(f"{where}: a list is wanted, not {type(content).__name__}")
    return content


def _finite(content: Any, where: str) -> None:
    if isinstance(content, dict):
        for key, value in content.items():
            _finite(value, f"{where}.{key}")
    elif isinstance(content, list):
        for value in content:
            _finite(value, where)
    elif isinstance(content, float) and not math.isfinite(content):
        raise DamagedResults(f"{where}: {content} is no figure")


def _shallow(one: Row | Run) -> dict[str, Any]:
    return {each.name: getattr(one, each.name) for each in fields(one)}


def _plain(one: Any) -> Any:
    """For JSON: without what is empty, and numbers with eight digits that count."""
    if isinstance(one, Row | Run):
        kept = {name: value for name, value in _shallow(one).items() if value not in (None, "", [], {})}
        if isinstance(one, Row):
            kept["commands"] = [_word(command) for command in one.commands]
        return {name: _plain(value) for name, value in kept.items()}
    if isinstance(one, Mapping):
        return {str(key): _plain(value) for key, value in one.items()}
    if isinstance(one, list | tuple):
        return [_plain(value) for value in one]
    if isinstance(one, float):
        return None if not math.isfinite(one) else float(f"{one:.8g}")
    return one


class Outcomes(NamedTuple):
    """What came of each question of a task, so that two rows can be compared in pairs: a few kilobytes."""

    fact: NDArray[np.int64]  # (n,) the row of the split
    in_triplet: NDArray[np.bool_]  # (n,) whether a component of the primary triplet was asked for
    value: NDArray[np.float64]  # (n,) the rank, or the error on the scaled value

    def packed(self) -> str:
        ranks = bool(len(self.value)) and bool((self.value >= 1).all()) and bool((2 * self.value % 1 == 0).all())
        value = (2 * self.value).astype("<u4") if ranks else self.value.astype("<f4")
        parts = [np.diff(self.fact, prepend=0).astype("<i4"), self.in_triplet.astype("<u1"), value]
        content = b"".join(
            np.frombuffer(one.tobytes(), np.uint8).reshape(-1, one.itemsize).T.tobytes() for one in parts
        )
        head = f"{'r' if ranks else 'e'}{len(self.fact)} ".encode()
        return base64.b85encode(zlib.compress(head + content, 9)).decode()

    @classmethod
    def unpacked(cls, text: str) -> Outcomes:
        try:
            head, _, content = zlib.decompress(base64.b85decode(text)).partition(b" ")
            count = int(head[1:])
            columns = []
            for kind in ("<i4", "<u1", "<u4" if head[:1] == b"r" else "<f4"):
                size = count * np.dtype(kind).itemsize
                planes = np.frombuffer(content[:size], np.uint8).reshape(np.dtype(kind).itemsize, count)
                columns.append(np.ascontiguousarray(planes.T).view(kind).reshape(-1))
                content = content[size:]
        except (ValueError, zlib.error) as problem:
            raise DamagedResults(f"outcomes cannot be unpacked: {problem}") from problem
        value = columns[2].astype(np.float64) / (2 if head[:1] == b"r" else 1)
        return cls(np.cumsum(columns[0]).astype(np.int64), columns[1].astype(np.bool_), value)


def kept_metrics(tasks: Mapping[str, Any]) -> Metrics:
    """Of what an evaluation tells by task and scope, the metrics that raw files hold."""
    return {
        task: {
            scope: {name: metrics[name] for name in METRICS if metrics.get(name) is not None}
            for scope, metrics in scopes.items()
            if isinstance(metrics, Mapping) and metrics.get("count", 1)
        }
        for task, scopes in tasks.items()
        if task in TASKS
    }


def kept_relations(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, dict[str, float]]:
    """Number errors of each relation, in the graph's units."""
    return {row["relation"]: {name: row[name] for name in ("rmse", "mae", "count")} for row in rows or ()}


def kept_breakdowns(found: Mapping[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By task and grouping, a list of groups with the metrics that raw files hold."""
    return {
        task: {
            grouping: [{name: one[name] for name in ("group", *METRICS) if one.get(name) is not None} for one in groups]
            for grouping, groups in groupings.items()
        }
        for task, groupings in found.items()
    }


COSTS = {
    "epochs": "epochs",
    "schedule_epochs": "planned_epochs",
    "budget_limited": "budget_limited",
    "weights_of_epoch": "weights_of_epoch",
    "parameters": "parameters",
    "facts": "facts",
    "facts_per_second": "facts_per_second",
    "batch_size": "batch_size",
    "peak_memory_bytes": "memory_bytes",
    "reads": "reads",
    "best": "best",
}
"""What a trial tells of its cost, and how rows call it."""


def row_of_trial(trial: Mapping[str, Any], name: str, graph: str, device: str, **more: Any) -> Row:
    """A row of what `hynt.comparison.trial.run_trial` tells of one seed, or `trivial_rows` of a trivial model."""
    facts = trial.get("protocol", {}).get("test_facts", "all")
    cost = {to: trial[name] for name, to in COSTS.items() if trial.get(name) is not None}
    valid = {"valid": kept_metrics(trial["valid"])} if "valid" in trial else {}
    run = Run(
        trial.get("seed"),
        {"test": kept_metrics(trial["test"]["realistic"])} | valid,
        {to: trial[key] for key, to in (("train_seconds", "train"), ("test_seconds", "test")) if key in trial},
        cost | ({} if facts == "all" else {"test_facts": facts}),
        [[one["epoch"], one["trained_seconds"], one["value"]] for one in trial.get("curve", [])],
        kept_relations(trial.get("per_relation")),
        kept_breakdowns(trial.get("breakdowns", {})),
        trial.get("calibration", {}),
        trial.get("outcomes", {}),
    )
    searched = {"searched": trial["searched"]} if "searched" in trial else {}
    return Row(
        name,
        more.pop("commands", []),
        device,
        model=trial["model"],
        graph=graph,
        split="test",
        preset=trial.get("preset"),
        changes=list(trial.get("changes", [])),
        settings=dict(trial.get("settings", {})),
        answers=list(trial.get("answers", [])),
        runs=[run],
        measured=searched | more.pop("measured", {}),
        **more,
    )


def trial_of_row(row: Row, run: Run) -> dict[str, Any]:
    """What the tables of `hynt compare` want to know of a row."""
    told = {name: run.cost.get(to) for name, to in COSTS.items()}
    told |= {"model": row.model, "preset": row.preset, "answers": row.answers, "seed": run.seed}
    told |= {"train_seconds": run.seconds.get("train"), "test": {"realistic": run.metrics.get("test", {})}}
    return told | ({"valid": run.metrics["valid"]} if "valid" in run.metrics else {})


def device_words(environment: Mapping[str, Any]) -> str:
    """`NVIDIA H200, torch 2.11.0`, of what `describe_environment` tells."""
    place = environment.get("gpu") or f"{environment.get('device', 'cpu')}, {environment.get('threads', '?')} threads"
    return f"{place}, torch {environment.get('torch', '?')}"


def this_device(name: str = "auto") -> str:
    """In words, of a device that is named as on the command line."""
    from hynt.kernels.device import chosen_device
    from hynt.runs.run_folder import describe_environment

    return device_words(describe_environment(chosen_device(name)))


def this_command(arguments: Iterable[str] | None = None) -> str:
    """The command of this process, without the folders of this machine."""
    import shlex

    program = Path(sys.argv[0])
    name = program.stem if program.stem != "__main__" else program.parent.name
    place = program.parent.name if program.stem != "__main__" else program.parent.parent.name
    words = [_word(one) for one in (sys.argv[1:] if arguments is None else arguments)]
    return shlex.join(["python", "-m", f"{place}.{name}" if place in ("benchmarks", "tools") else name, *words])


def _word(word: str) -> str:
    return re.sub(r"(?<![\w.])(/|~/)[^\s=,;\"']*/([^\s/=,;\"']+)", r"\2", word)


def this_commit() -> str | None:
    """Of the sources in use, where git can tell; a copy without history names it in HYNT_COMMIT."""
    if named := os.environ.get("HYNT_COMMIT"):
        return named
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def graph_fingerprint(graph: Any) -> str:
    """Sixteen digits that change with anything in a graph."""
    import hashlib

    from hynt.graph.content_hash import graph_fingerprints

    return hashlib.sha256(json.dumps(graph_fingerprints(graph), sort_keys=True).encode()).hexdigest()[:16]


def write_measured(path: Path, measured: Mapping[str, Any], what: str, device: str | None = None, **more: Any) -> None:
    """A file of one row, for programs that measure something of their own. `what` may be their docstring."""
    kept = {name: value for name, value in measured.items() if name not in ("command", "environment")}
    where = device or (device_words(measured["environment"]) if "environment" in measured else this_device())
    row = Row(path.stem, [this_command()], where, this_commit(), measured=kept, **more)
    ResultFile(what.strip().splitlines()[0], [row]).write(path)


def read_measured(
    path: Path, *parts: str, advice: str = "see benchmarks/result_file.py for the form"
) -> dict[str, Any]:
    """What the one row of a file measured, which must have these parts."""
    rows = read_results(path, advice).rows
    found = rows[0].measured if len(rows) == 1 else {}
    if missing := [part for part in parts if part not in found]:
        sys.exit(f"{path} is another kind of file, it has no {', '.join(missing)}: {advice}")
    return found
