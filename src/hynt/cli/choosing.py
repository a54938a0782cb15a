"""`hynt models`, `hynt compare` and `hynt sweep`: which model to train, and with which settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.options import GraphArgument, TrainingDevice, argument, option, said
from hynt.cli.output import Output, SavedOutput, note_to_person, print_table
from hynt.errors import DataError, UsageError
from hynt.progress import visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console


def models(output: Output) -> None:
    """List the models: what each reads, what it is trained on, and what it can be asked."""
    from hynt.front.graphs import models_and_problems

    found, problems = models_and_problems()
    for problem in problems.values():
        note_to_person(problem)
    result = {"models": found, "problems": problems}
    output.deliver(result, lambda console: _print_models(console, found))


def _print_models(console: Console, found: dict[str, Any]) -> None:
    for name, model in found.items():
        console.print(f"{name}: {model['summary']}")
        console.print(f"  reads    {', '.join(model['reads'])}")
        answers = [f"{task} ({', '.join(positions)})" for task, positions in model["answers"].items() if positions]
        console.print(f"  answers  {'; '.join(answers)}")
        console.print(f"  trained  {model['trained_on']}")


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared, and within which time."""

    out: Path = option(..., "The folder for rows, runs, table and picture.", metavar="DIR")
    models: str = option("all", "Names from `hynt models`, or all.", metavar="M,M…")
    minutes_per_model: float = option(2.0, "Of training; testing is extra.", min=0.001, max=1e6)
    seeds: str = option("0", "Each model is trained once per seed.", metavar="S,S…")
    tasks: str = option(
        "link,relation,number", "Some of link, relation, number, separated by commas.", "--task", metavar="TASKS"
    )
    device: TrainingDevice = "auto"
    processor_time: bool = option(False, "Count processor time, for a machine that is shared.")


def compare(
    options: ComparisonOptions,
    graph: str | None = argument(None, "A graph folder, or a built-in name; world if none is given.", metavar="GRAPH"),
    graph_option: str | None = option(None, "The same, as an option.", "--graph", metavar="GRAPH"),
    *,
    output: Output,
) -> None:
    """Train models on GRAPH for the same time, test them, and set them beside each other and beside trivial ones.

    The same command resumes what was stopped; finished rows are kept.
    """
    from hynt.front.comparing import compare as compared

    if graph is not None and graph_option not in (None, graph):
        raise UsageError(
            f"two graphs were given: {graph} and {graph_option}.", where="--graph", advice="Leave one out."
        )
    asked = said(options) | {"seeds": _seeds(options.seeds)}
    found = compared(graph or graph_option or "world", progress=True, note=note_to_person, **asked)
    result = found.to_dict()
    output.deliver(result, lambda console: _print_comparison(console, result))
    if found.failed:
        raise DataError(
            f"{', '.join(found.failed)} failed; the others are in the table.",
            where=str(options.out),
            advice="The same command tries them again.",
        )


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise UsageError(
            f"{text!r} is not a list of seeds.", where="--seeds", advice="Say, for example, --seeds 0,1,2."
        )
    return list(dict.fromkeys(int(part) for part in parts))


def _print_comparison(console: Console, result: dict[str, Any]) -> None:
    from hynt.comparison.table import SHORT_IN_WORDS, abilities, minutes_text, told_tables

    console.print(
        f"{visible(result['graph']) or 'the graph'}, test split; {minutes_text(result['minutes_per_model'])} of "
        f"{'processor' if result['clock'] == 'processor' else 'training'} time per model; ties realistic"
    )
    for cells in told_tables(result):
        print_table(console, cells.columns, cells.rows, numbers=range(1, len(cells.columns)))
    console.print("what they read, and what they answer:")
    for line in abilities(result):
        console.print(line)
    console.print(SHORT_IN_WORDS)
    if not any(file.endswith(".png") for file in result["files"]):
        console.print("no picture: install matplotlib with pip install 'hynt[plot]'")
    console.print(f"kept in {', '.join(result['files'])}")
    if result["recommended"] is not None:
        command = result["recommended"]["command"]  # on a line of its own, to be copied
        console.print(result["recommended"]["sentence"].removesuffix(command).rstrip())
        console.print(f"  {command}")


@dataclass(frozen=True)
class SweepOptions:
    """What is tried, and how it is judged."""

    out: Path = option(..., "The folder of the sweep.", metavar="DIR")
    trials: int = option(..., "How many settings to try, in all.", min=1)
    model: str = option("hynt", "Which model: see `hynt models`.", metavar="M")
    space: str | None = option(None, "A TOML file, or a space that hynt has; by default the model's.", metavar="S")
    metric: str = option("link.all.mrr", "What to judge by, on valid.")
    preset: str | None = option(None, "Settings to start from.", metavar="P")
    epochs: int | None = option(None, "How many epochs per trial.", min=1)
    changes: list[str] | None = option(None, "Fix a setting at a value. Repeatable.", "--set", metavar="KEY=VALUE")
    storage: str | None = option(
        None,
        "A SQLite file or a postgresql:// URL; by default a file in DIR.",
        metavar="WHERE",
        envvar="HYNT_SWEEP_STORAGE",
    )
    name: str = option("sweep", "The sweep's name in its storage.")
    workers: int = option(1, "Processes on this machine.", min=1)
    pruner: Literal["hyperband", "none"] = option("hyperband", "Whether to end poor trials early.")
    sampler: Literal["tpe", "random", "grid"] = option("tpe", "How to choose what to try.")
    seed: int = option(0, "Decides what is tried, and seeds each run.", min=0, max=LARGEST_SEED)
    resume: bool = option(False, "Resume the sweep of this name, or join it.")
    device: TrainingDevice = "auto"


def sweep(graph: GraphArgument, options: SweepOptions, *, output: SavedOutput) -> None:
    """Try settings of MODEL on GRAPH, judged on its validation split. The test split is never read."""
    from hynt.front.sweeping import sweep as swept

    result = swept(graph, progress=True, **said(options)).to_dict()
    output.deliver(result, lambda console: _print_sweep(console, result, graph))


def _print_sweep(console: Console, result: dict[str, Any], graph: str) -> None:
    trials, best = result["trials"], result["best"]
    told = ", ".join(f"{count} {word}" for word, count in trials.items() if count)
    console.print(f"sweep {result['sweep']!r} of {result['model']}: {told or 'no trials'}")
    for problem in result["problems"]:
        console.print(f"failed: {visible(problem)}")
    console.print(f"best on validation: {result['metric']} {best['value']:.4f}, trial {best['trial']}")
    for path, value in best["settings"].items():
        console.print(f"  {path} = {value}")
    console.print(f"next: hynt train {graph} --model {result['model']} --preset {result['preset']} --out RUN")
