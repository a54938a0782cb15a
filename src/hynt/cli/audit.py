"""`hynt audit`: which facts of a graph look wrong, and what would have been expected instead."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import AsOf, Device
from hynt.cli.output import Output, print_table
from hynt.progress import duration
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.auditing.auditing import Audit


def audit(
    source: Annotated[
        str, typer.Argument(metavar="GRAPH|RUN", help="A saved graph, the built-in one (world), or a run folder.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The Parquet file to write.")],
    split: Annotated[
        str,
        typer.Option(
            "--split",
            help="Which facts to judge: all, or some of train, valid, test, added (by updates), separated by commas.",
        ),
    ] = "all",
    as_of: AsOf = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="How many parts the facts are divided into.")] = 5,
    fold_by: Annotated[
        str, typer.Option("--fold-by", help="What stays together: fact, or head,relation for time series.")
    ] = "fact",
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="Which model judges: the run's own, or hynt.")
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", metavar="P", help="Named settings to start from.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="How many epochs per fold.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=LARGEST_SEED, help="The seed of everything random.")
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to train and judge.")] = "auto",
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting. Repeatable.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many suspicious facts to print.")] = 20,
    components: Annotated[
        bool, typer.Option("--components", help="Write a row per component, not only the worst of each fact.")
    ] = False,
    work: Annotated[
        Path | None,
        typer.Option("--work", metavar="DIR", help="Keep the folds' models here, not in FILE.work, which is removed."),
    ] = None,
    *,
    output: Output,
) -> None:
    """Rank the facts of GRAPH, or of RUN's graph, by how wrong they look to models that did not see them.

    The same command resumes an audit that was stopped.
    """
    from hynt.front.auditing import audit as audited

    started = time.monotonic()
    found = audited(
        source,
        out,
        splits=[part.strip() for part in split.split(",")],
        folds=folds,
        fold_by=fold_by,
        model=model,
        preset=preset,
        epochs=epochs,
        seed=seed,
        changes=changes or (),
        device=device,
        work=work,
        components=components,
        version=as_of,
        progress=True,
    )
    rows = (len(found.found.score) if components else len(found)) + len(found.not_judged)
    result = _summary(found, out, rows, top, time.monotonic() - started)
    output.deliver(result, lambda console: _print(console, result))


def _summary(found: Audit, out: Path, rows: int, top: int, seconds: float) -> dict[str, Any]:
    plan = found.plan
    return {
        "graph": plan.graph.name,
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
        f"ranked in {result['out']}",
        soft_wrap=True,
    )
    for reason, count in result["not_judged"].items():
        console.print(f"{count:,} not judged: {reason}", soft_wrap=True)
    if result["not_asked"]:
        console.print(f"{result['not_asked']:,} components were not asked: the model does not answer them")


def _doubt(row: dict[str, Any]) -> str:
    if row["kind"] == "number":
        return "" if "residual" not in row else f" ({row['residual']:.1f} times its interval off)"
    return f" ({_percent(row['probability'])})"


def _said(row: dict[str, Any]) -> str:
    if row["kind"] != "number":
        return f"{row['said']} ({_percent(row['said_probability'])})"
    return row["said"] if "low_text" not in row else f"{row['said']} ({row['low_text']} to {row['high_text']})"


def _percent(share: float) -> str:
    """Nothing that a model says is certain."""
    return "under 0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.9995 else "over 99.9%"
