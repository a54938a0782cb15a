"""Which model suits which graph and which budget of time: every model that answers, on parts of graphs, in one table.

A part is cut as `benchmarks.own_graph` cuts it, so many facts about some entities; a smaller graph is taken whole.
Each model trains for the same minutes of processor time as `hynt compare` has it, with statistics beside it. Rows that
are there are passed over, so the command goes on with what was stopped, and the file says what was not run.

python -m benchmarks.laptop_study run --graph world=world --facts 2000 --minutes 1 --out study.json
python -m benchmarks.laptop_study run --rows "world 2000,10000 1,3 all" --jobs 8 --limit-seconds 600 --out study.json
python -m benchmarks.laptop_study join --from study.json --out docs/results/raw/laptop-study.json
python -m benchmarks.laptop_study table --out study.json
python -m benchmarks.laptop_study default --out docs/results/raw/laptop-study.json

The table names for each part and budget what validation places first among the models that answer most tasks, and shows
its figures on test. `default` writes these choices where `hynt train --minutes` reads them, and `page` prints the table
of docs/results/laptop.md.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.own_graph import cut, described
from benchmarks.pinned_jobs import Job, last_cores, run_pinned
from benchmarks.result_file import (
    ResultFile,
    Row,
    Run,
    graph_fingerprint,
    read_results,
    row_of_trial,
    this_commit,
    this_device,
    trial_of_row,
)
from hynt.comparison.comparing import FACTS_VALIDATED, model_names, trial_for
from hynt.comparison.table import MARKS, recommended
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import load_graph
from hynt.training.default_model import USUAL, Case

WHAT = "Which model suits which graph and which budget of time."
DEFAULTS = Path(__file__).resolve().parent.parent / "src" / "hynt" / "training" / "default_models.json"
PLAN = "plan"
"""The row of what was to be run, and of the parts' sizes."""
ROWS = "Instead of the three options above, for many at once, with commas between; earlier ones come first. Repeatable."
SHIPPED = ("mrr", "hits@10", "rmse", "mae")
BESIDE, STARTING = 1.15, 25.0
"""How long a row takes in all: its minutes so many times, and seconds for starting and for questions."""


def part_of(source: str, facts: int) -> KnowledgeGraph:
    """A graph whole, or so many of its facts split anew."""
    graph = load_graph(source)
    return graph if sum(map(len, graph.splits.values())) <= facts else cut(graph, "heads", facts, seed=0)


def row_of(graph: KnowledgeGraph, model: str, minutes: float, device: str, changes: Sequence[str]) -> dict[str, Any]:
    """One model within the time: what `hynt compare` tells of it."""
    import torch

    from hynt.comparison.trial import TrialPlace, run_trial

    target = torch.device(device)
    clock = time.process_time if device == "cpu" else time.monotonic
    trial = trial_for(model, graph, target, 0, 60 * minutes)
    trial = replace(trial, changes=(*trial.changes, *changes))
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        return run_trial(TrialPlace(graph, target, clock=clock, compiled=minutes >= 4), trial, Path(folder) / "run")


class Wanted(NamedTuple):
    """A row to be run."""

    graph: str
    facts: int
    minutes: float
    model: str

    @property
    def part(self) -> str:
        return f"{self.graph} {self.facts}"

    def key(self, device: str, changes: Sequence[str]) -> str:
        """The row's name."""
        return " ".join([self.part, f"{self.minutes:g}", device, self.model, *changes])

    def options(self, source: str, device: str, changes: Sequence[str]) -> list[str]:
        """Those of `laptop_study run` that make this row alone."""
        graph = ["--graph", f"{self.graph}={source}", "--facts", f"{self.facts}", "--minutes", f"{self.minutes:g}"]
        return [*graph, "--models", self.model, "--device", device, *(f"--set={change}" for change in changes)]


def rows_wanted(graphs: Iterable[str], sizes: str, budgets: str, models: str) -> list[Wanted]:
    """Smallest first; of each part, the models in their order."""
    facts, minutes = [int(one) for one in sizes.split(",")], [float(one) for one in budgets.split(",")]
    places, names = product(facts, minutes, graphs), model_names(models)
    return [Wanted(graph, size, budget, model) for size, budget, graph in places for model in names]


def study(
    graphs: Mapping[str, str], wanted: Sequence[Wanted], device: str, changes: Sequence[str], out: Path
) -> Iterator[str]:
    """Runs what is missing, in this order, and writes after each row; a line for each."""
    found, where = begun(out, wanted, device, changes), this_device(device)
    for (name, size), rows in groupby(missing(found, wanted, device, changes), lambda one: (one.graph, one.facts)):
        graph, part = part_of(graphs[name], size), f"{name} {size}"
        plan = found.row(PLAN)
        assert plan is not None
        plan.measured["graphs"][part] = described(graph)
        fingerprint = graph_fingerprint(graph)
        for one in rows:
            key, commands = one.key(device, changes), [_command_words(one, device, changes, out)]
            measured: dict[str, Any] = {"minutes": one.minutes, "on": device, "processor": processor()}
            measured |= {"set": [*changes]} if changes else {}
            try:
                trial = row_of(graph, one.model, one.minutes, device, changes)
                more = {"commands": commands, "commit": this_commit(), "fingerprint": fingerprint, "measured": measured}
                row = row_of_trial(trial, key, part, where, **more)
            except (RuntimeError, ValueError, MemoryError, AssertionError) as problem:
                measured["failed"] = str(problem) or type(problem).__name__
                row = Row(key, commands, where, this_commit(), one.model, part, fingerprint, measured=measured)
            found = found.with_row(row)
            found.write(out)
            yield f"{key}: {told(row)}"


def study_at_once(
    graphs: Mapping[str, str],
    wanted: Sequence[Wanted],
    changes: Sequence[str],
    out: Path,
    jobs: int,
    limit: float = math.inf,
) -> Iterator[str]:
    """The same on a CPU with so many rows at once: a process for each, with one thread on a core of its own. It ends
    after `limit` seconds with what there is; the same call goes on.
    """
    found, rows = begun(out, wanted, "cpu", changes), dict[str, Wanted]()
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        work = []
        for index, one in enumerate(missing(found, wanted, "cpu", changes)):
            rows[str(index)] = one
            (Path(folder) / f"{index}").mkdir()
            place = ["--out", str(Path(folder) / f"{index}" / out.name)]
            command = [sys.executable, "-m", "benchmarks.laptop_study", "run"]
            command += [*one.options(graphs[one.graph], "cpu", changes), *place]
            work.append(Job(str(index), command, 60 * one.minutes * BESIDE + STARTING))
        for ended in run_pinned(work, last_cores(jobs), limit):
            one, file = rows[ended.key], Path(folder) / ended.key / out.name
            key = one.key("cpu", changes)
            made = read_results(file) if file.exists() else ResultFile(WHAT)
            if (row := made.row(key)) is None:
                said = ended.said.splitlines()[-1:] or ["it said nothing"]
                measured = {"minutes": one.minutes, "on": "cpu", "failed": f"ended with {ended.code}: {said[0]}"}
                commands = [_command_words(one, "cpu", changes, out)]
                row = Row(key, commands, "cpu", this_commit(), one.model, one.part, measured=measured)
                made = made.with_row(row)
            found = joined(found, made)
            found.write(out)
            yield f"{key}: {told(row)}, {ended.seconds:.0f} s in all"


def _command_words(one: Wanted, device: str, changes: Sequence[str], out: Path) -> str:
    options = " ".join(one.options(one.graph, device, changes)).replace("--set=", "--set ")
    return f"python -m benchmarks.laptop_study run {options} --out {out.name}"


def begun(out: Path, wanted: Sequence[Wanted], device: str, changes: Sequence[str]) -> ResultFile:
    """What is there, with these rows in its plan: written, so that a study which ends no row says what it lacks."""
    found = read_results(out) if out.exists() else ResultFile(WHAT)
    plan = found.row(PLAN) or Row(PLAN, [], this_device(device), measured={"planned": [], "graphs": {}})
    plan.measured["planned"] = sorted({*plan.measured["planned"], *(one.key(device, changes) for one in wanted)})
    found = found.with_row(plan)
    found.write(out)
    return found


def missing(found: ResultFile, wanted: Sequence[Wanted], device: str, changes: Sequence[str]) -> list[Wanted]:
    """Each row once that is not there."""
    done = {row.name for row in found.rows}
    return [one for one in dict.fromkeys(wanted) if one.key(device, changes) not in done]


def joined(found: ResultFile, other: ResultFile) -> ResultFile:
    """With the rows and the plan of another file, whose rows take the place of those of their names."""
    plan, more = found.row(PLAN), other.row(PLAN)
    if plan is not None and more is not None:
        plan.measured["planned"] = sorted({*plan.measured["planned"], *more.measured["planned"]})
        plan.measured["graphs"] |= more.measured["graphs"]
    for row in other.rows:
        if row.name != PLAN or plan is None:
            found = found.with_row(row)
    return found


def shortened(found: ResultFile) -> ResultFile:
    """For the file that is shipped, which holds hundreds of rows: without settings, which follow from preset, changes
    and commit, single relations, curves, and metrics beside the main ones.
    """

    def short(run: Run) -> Run:
        metrics = {
            split: {
                task: {scope: {name: one[name] for name in SHIPPED if name in one} for scope, one in scopes.items()}
                for task, scopes in tasks.items()
            }
            for split, tasks in run.metrics.items()
        }
        return replace(run, metrics=metrics, per_relation={}, curve=[])

    return replace(found, rows=[replace(row, settings={}, runs=[short(run) for run in row.runs]) for row in found.rows])


def processor() -> str:
    """What the system calls the processor, since seconds of one are not those of another."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def told(row: Row, split: str = "valid") -> str:
    """`link MRR 0.3, relation MRR 0.9`."""
    if "failed" in row.measured:
        return f"failed: {row.measured['failed']}"
    cells = [(words, row.runs[0].metric(split, task, "triplet", metric)) for task, (metric, words, _) in MARKS.items()]
    return ", ".join(f"{words} {value:.3f}" for words, value in cells if value is not None)


def placed(found: ResultFile) -> Iterator[tuple[str, float, str, list[Row], Row]]:
    """For each part, budget and device: the rows of single models, and the one that validation places first."""
    groups: dict[tuple[str, float, str], list[Row]] = {}
    for row in found.rows:
        if row.runs and not row.measured.get("several_as_one") and not row.measured.get("set"):
            groups.setdefault((str(row.graph), row.measured["minutes"], row.measured["on"]), []).append(row)
    for (graph, minutes, device), rows in groups.items():
        trials = [trial_of_row(row, row.runs[0]) for row in rows]
        best = recommended({"rows": trials, "minutes_per_model": minutes}, graph)
        if best is not None:
            yield graph, minutes, device, rows, next(row for row in rows if row.model == best["model"])


def table(found: ResultFile) -> str:
    """A row per part and budget: what to train there, what it reaches, and who was tried; then what was not run."""
    lines = ["| graph, facts | minutes | device | model | on test, triplets | tried |", "|---|---|---|---|---|---|"]
    for graph, minutes, device, rows, chosen in placed(found):
        tried = ", ".join(str(row.model) for row in rows)
        lines.append(f"| {graph} | {minutes:g} | {device} | {chosen.model} | {told(chosen, 'test')} | {tried} |")
    plan = found.row(PLAN)
    missing = sorted({*(plan.measured.get("planned", []) if plan else [])} - {row.name for row in found.rows})
    return "\n".join([*lines, "", f"not run: {', '.join(missing) or 'nothing'}"])


INDUCTIVE, TWO = "hynt-inductive", "hynt and hynt-inductive"
"""Asked as one, each trained for half the time."""


def page(found: ResultFile) -> str:
    """The table of docs/results/laptop.md: link MRR on test in all positions, of the models that are defaults, of the
    other one that validation places first at links, and of two as one.
    """
    plan, known = found.row(PLAN), {(case["graph"], case["minutes"]): case for case in defaults(found)}
    sizes = plan.measured["graphs"] if plan else {}
    lines = []
    for graph, minutes, device, rows, _ in placed(found):
        if device != "cpu" or (case := known.get((graph, minutes))) is None:
            continue
        by_model = {str(row.model): row for row in rows}
        others = {model: row for model, row in by_model.items() if model not in (USUAL, INDUCTIVE)}
        best = max(
            others, key=lambda model: others[model].runs[0].metric("valid", "link", "triplet", "mrr") or 0.0, default=""
        )
        two = next(
            (
                row
                for row in found.rows
                if (row.graph, row.model) == (graph, TWO) and row.measured["minutes"] == minutes
            ),
            None,
        )
        cells = [_link(by_model.get(model), bold=model == case["model"]) for model in (USUAL, INDUCTIVE)]
        cells += [f"`{best}` {_link(others[best], bold=best == case['model'])}" if best else "–", _link(two)]
        facts = sum(sizes[graph]["splits"].values())
        name = graph.rpartition(" ")[0]
        place = f"{name}, {facts:,} | {case['numbers']:.2f} | {minutes:g}".replace("world", "`world`")
        lines.append((facts, f"| {place} | {' | '.join(cells)} | {len(by_model)} |"))
    head = [
        "| graph, facts | numbers | minutes | `hynt` | `hynt-inductive` | best other | two as one | tried |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(line for _, line in sorted(lines))])


def _link(row: Row | None, *, bold: bool = False) -> str:
    value = None if row is None else row.runs[0].metric("test", "link", "all", "mrr")
    text = "–" if value is None else f"{value:.3f}"[1:]
    return f"**{text}**" if bold else text


BY_CHANCE = 0.25
"""How far apart two models rank an answer, as the standard deviation of reciprocal ranks (.18 to .37 in four pairs of
runs): means over n questions may differ by this over the root of n without either being better.
"""


def defaults(found: ResultFile) -> list[dict[str, Any]]:
    """For each part and budget for which several models were tried, the first, or hynt where that is not clearly worse
    at links, which runs are judged by.
    """
    plan = found.row(PLAN)
    sizes = plan.measured["graphs"] if plan else {}
    cases = []
    for graph, minutes, device, rows, chosen in placed(found):
        if len(rows) > 1 and graph in sizes:
            facts = sizes[graph]["splits"]["train"]
            numbers = round(sizes[graph]["number_tails"] / facts, 3)
            links = {row.model: row.runs[0].metric("valid", "link", "triplet", "mrr") or 0.0 for row in rows}
            questions = 2 * min(sizes[graph]["splits"]["valid"], FACTS_VALIDATED)
            lead = links[chosen.model] - links.get(USUAL, 0.0)
            model = str(chosen.model) if lead > BY_CHANCE / math.sqrt(questions) else USUAL
            whole = int(minutes) if minutes == int(minutes) else minutes
            cases.append(Case(graph, device, whole, facts, numbers, model)._asdict())
    return cases


def write_defaults(found: ResultFile, path: Path = DEFAULTS) -> None:
    """What `hynt train --minutes` reads."""
    cases = [json.dumps(case) for case in defaults(found)]
    path.write_text("[\n" + ",\n".join(sorted(cases)) + "\n]\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "join", "table", "default", "page"])
    parser.add_argument("--graph", action="append", metavar="NAME=FOLDER", default=None, help="Repeatable.")
    parser.add_argument("--facts", default="2000,10000,60000,170000", help="Sizes of the parts.")
    parser.add_argument("--minutes", default="3,10,30", help="Of training, for each model.")
    parser.add_argument("--models", default="all")
    parser.add_argument("--rows", action="append", metavar="'GRAPHS FACTS MINUTES MODELS'", default=[], help=ROWS)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="A setting of all. Repeatable.")
    parser.add_argument("--jobs", type=int, default=0, help="Rows at once, each on a core of its own (the last ones).")
    parser.add_argument("--limit-seconds", type=float, default=math.inf, help="With --jobs: end before that.")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="other", help="With join: whose rows to take.")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "run":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped: what was done is kept"))
        graphs = dict(one.split("=", 1) for one in given.graph or ["world=world"])
        wanted = [] if given.rows else rows_wanted(graphs, given.facts, given.minutes, given.models)
        for names, *rest in (one.split() for one in given.rows):
            wanted += rows_wanted(names.split(","), *rest)
        at_once = given.jobs, given.limit_seconds
        for line in (
            study_at_once(graphs, wanted, given.set, given.out, *at_once)
            if given.jobs
            else study(graphs, wanted, given.device, given.set, given.out)
        ):
            print(line, flush=True)
    found = read_results(given.out, "run it first: laptop_study run")
    if given.verb == "join":
        found = shortened(joined(found, read_results(given.other)))
        found.write(given.out)
    if given.verb == "default":
        write_defaults(found)
    print(page(found) if given.verb == "page" else table(found))


if __name__ == "__main__":
    main()
