"""`hynt evaluate` and `hynt calibrate`: a run's answers to every question of a held-out split, by the one protocol, and
how far its probabilities and intervals can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.options import RunArgument, ScoringDevice, done_in_processes, option, said
from hynt.cli.output import SavedOutput, note_to_person, print_table
from hynt.evaluation.tables import GROUPINGS
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.evaluation.tables import TextTable
    from hynt.front.evaluating import CalibrationReport


@dataclass(frozen=True)
class EvaluationOptions:
    """What is asked, and what is reported of the answers."""

    split: str = option("test", "Which split to ask.")
    tasks: str = option(
        "link,relation,number", "Some of link, relation, number, separated by commas.", "--task", metavar="TASKS"
    )
    ties: Literal["realistic", "hynt"] = option(
        "realistic", "How ties rank; hynt rounds down, as the published script does."
    )
    type_constrained: bool = option(False, "Also rank among entities that train has at that place.")
    references: bool = option(True, "Whether to show trivial models beside the run.", "--references/--no-references")
    intervals: bool = option(False, "Add 95 % bootstrap intervals, drawn over facts.")
    breakdown: str = option("", f"Some of {', '.join(GROUPINGS)}, separated by commas.", metavar="BY")
    compare: Path | None = option(None, "Another run, compared question by question.", metavar="RUN")
    questions: Path | None = option(None, "Write each question's result as Parquet.", metavar="FILE")
    observed: str | None = option(None, "Read the training facts of this graph instead.", metavar="GRAPH")
    asked: str | None = option(None, "Ask about the split of this graph.", metavar="GRAPH")
    without_duplicates: bool = option(False, "Leave out observed facts that equal an asked one.")
    shuffle_literals: bool = option(False, "Shuffle the numbers that are read: do they help links?")


def evaluate(
    run: RunArgument,
    options: EvaluationOptions,
    device: ScoringDevice = "auto",
    processes: int = option(1, "Ask in N processes, one per GPU with --device cuda.", min=1, metavar="N"),
    *,
    output: SavedOutput,
) -> None:
    """Ask RUN every question of a split and print how well it answered. Readings of a split are counted in the run."""
    if done_in_processes(processes, "the evaluation stopped.", "Say the same command again."):
        return
    from hynt.front.run import Run
    from hynt.front.training import is_first_process

    asked = said(options) | {"breakdown": [name.strip() for name in options.breakdown.split(",") if name.strip()]}
    found = Run(run, device).evaluate(progress=True, **asked)
    if is_first_process():
        result = found.to_dict()
        output.deliver(result, lambda console: print_evaluation(console, result))


def print_evaluation(console: Console, result: Mapping[str, Any]) -> None:
    """Everything that was asked for."""
    from hynt.evaluation import tables

    console.print(visible(tables.headline(result)))
    for table in tables.metric_tables(result):
        _print(console, table)
    for remark in tables.remarks(result):
        console.print(remark, style="dim")
    for note in result.get("notes", ()):
        console.print(note[0].upper() + note[1:], style="bold")
    for table in (*tables.breakdown_tables(result), *tables.comparison_tables(result)):
        _print(console, table)


def _print(console: Console, cells: TextTable) -> None:
    # A comparison stands in the middle of its title, a breakdown at its beginning.
    print_table(console, cells.columns, cells.rows, cells.title, "left" if " by " in cells.title else "center")


def calibrate(
    run: RunArgument,
    split: str | None = option(None, "Measure on this split as well, such as test; the reading is counted."),
    device: ScoringDevice = "auto",
    *,
    output: SavedOutput,
) -> None:
    """Fit RUN's probabilities and intervals on the validation split, once, and say how well they fit."""
    from hynt.front.run import Run

    found = Run(run, device, note_to_person).calibrate(split)
    result = {"run": str(run), **found.to_dict()}
    output.deliver(result, lambda console: _print_calibration(console, found))


def _print_calibration(console: Console, report: CalibrationReport) -> None:
    from hynt.front.evaluating import CALIBRATION

    found, measured = report["calibration"], report.to_dict().get("measured")
    if not report.calibrated:
        console.print(f"not calibrated: {found['reason']}")
        return
    print_table(console, CALIBRATION, report.rows())
    if "number" in found:
        own = sum("0.9" in entry["own"] for entry in found["number"].values())
        console.print(f"intervals: {own} of {len(found['number'])} relations have their own at 90%, the others share")
    if measured and "number" in measured:
        asked, rows = f"{measured['number']['questions']:,}", []
        for level, part in measured["number"]["levels"].items():
            told = (part[name] for name in ("coverage", "mean_width", "median_width"))
            cells = ("-" if value is None else f"{value:.4f}" for value in told)
            rows.append((f"{float(level):.0%}", *cells, asked))
        print_table(console, ("level", "coverage", "mean width (scaled)", "median width", "questions"), rows)
