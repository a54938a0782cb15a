"""`hynt audit`: which facts of a graph look wrong, and what would have been expected instead."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.options import AsOf, Device, argument, option, said
from hynt.cli.output import Output, note_to_person, print_table
from hynt.progress import duration, visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.auditing.auditing import Audit


@dataclass(frozen=True)
class AuditOptions:
    """What is judged, and by which models."""

    out: Path = option(..., "The Parquet file to write.", metavar="FILE")
    splits: str = option(
        "all",
        "Which facts to judge: all, or some of train, valid, test, added (by updates), separated by commas.",
        "--split",
    )
    version: AsOf = None
    folds: int = option(5, "How many parts the facts are divided into.", min=2)
    fold_by: str = option("fact", "What stays together: fact, or head,relation for time series.")
    model: str | None = option(None, "Which model judges: the run's own, or hynt.", metavar="M")
    preset: str | None = option(None, "Named settings to start from.", metavar="P")
    epochs: int | None = option(None, "How many epochs per fold.", min=1)
    seed: int | None = option(None, "The seed of everything random.", min=0, max=LARGEST_SEED)
    device: Device = option("auto", "Where to train and judge.")
    changes: list[str] | None = option(None, "Change a setting. Repeatable.", "--set", metavar="KEY=VALUE")
    components: bool = option(False, "Write a row per component, not only the worst of each fact.")
    work: Path | None = option(None, "Keep the folds' models here, not in FILE.work, which is removed.", metavar="DIR")


def audit(
    source: str = argument(..., "A saved graph, the built-in one (world), or a run folder.", metavar="GRAPH|RUN"),
    *,
    options: AuditOptions,
    top: int = option(20, "How many suspicious facts to print.", min=0),
    output: Output,
) -> None:
    """Rank the facts of GRAPH, or of RUN's graph, by how wrong they look to models that did not see them.

    The same command resumes an audit that was stopped.
    """
    from hynt.front.auditing import audit as audited
    from hynt.runs.place import is_packaged, run_place

    if is_packaged(run_place(source)):
        note_to_person(
            "this judges the graph world by new models; the run that comes with hynt judges it without training: "
            f"hynt update {source} --out RUN, then hynt audit RUN"
        )
    started = time.monotonic()
    asked = said(options) | {"splits": [part.strip() for part in options.splits.split(",")]}
    found = audited(source, progress=True, **asked)
    rows = (len(found.found.score) if options.components else len(found)) + len(found.not_judged)
    result = _summary(found, options.out, rows, top, time.monotonic() - started)
    output.deliver(result, lambda console: _print(console, result))


def _summary(found: Audit, out: Path, rows: int, top: int, seconds: float) -> dict[str, Any]:
    plan = found.plan
    return {
        "graph": plan.graph.name,
        "judges": plan.judges(),
        "model": plan.settings.model_name,
        "splits": plan.described["splits"],
        "folds": plan.described["folds"],
        "fold_by": plan.described["fold_by"],
        "seed": plan.settings.seed,
        "epochs": plan.settings.schedule.epochs,
        "facts": int(plan.wanted.sum()),
        "judged": len(found),
        "not_judged": found.reasons(),
        "components": len(found.found.score),
        "not_asked": found.not_asked(),
        "out": str(out),
        "rows": rows,
        "seconds": round(seconds, 3),
        "suspicious": found.top(top),
    }


def _print(console: Console, result: dict[str, Any]) -> None:
    console.print(visible(result["judges"]))
    rows = [
        (
            str(row["rank"]),
            f"{row['score']:.2f}",
            row["fact"],
            f"{row['component']}: {row['stored']}{_doubt(row)}",
            _said(row),
        )
        for row in result["suspicious"]
    ]
    if rows:
        print_table(console, ("rank", "score", "fact", "looks wrong", "the model would have said"), rows)
    console.print(
        f"{result['judged']:,} of {result['facts']:,} facts judged in {duration(result['seconds'])}, "
        f"ranked in {result['out']}"
    )
    for reason, count in result["not_judged"].items():
        console.print(f"{count:,} not judged: {reason}")
    if result["not_asked"]:
        console.print(f"{result['not_asked']:,} components were not asked: the model does not answer them")


def _doubt(row: dict[str, Any]) -> str:
    from hynt.graph.sentences import format_multiple

    if row["kind"] == "number":
        return "" if "residual" not in row else f" ({format_multiple(row['residual'])} times its interval off)"
    return f" ({_percent(row['probability'])})"


def _said(row: dict[str, Any]) -> str:
    if row["kind"] != "number":
        return f"{row['said']} ({_percent(row['said_probability'])})"
    return row["said"] if "low_text" not in row else f"{row['said']} ({row['low_text']} to {row['high_text']})"


def _percent(share: float) -> str:
    """Nothing that a model says is certain."""
    return "under 0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.9995 else "over 99.9%"
