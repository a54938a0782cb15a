"""`hynt demo`: the run that comes with hynt answers, then the whole way: train, ask, evaluate."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.evaluate import print_evaluation
from hynt.cli.options import option
from hynt.cli.output import console as standard_output
from hynt.errors import UsageError
from hynt.files import MANIFEST_NAME, check_new_folder
from hynt.progress import duration

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.front.run import Run


def demo(
    out: Path | None = option(
        None, "Keep the run here, or use the one that is already there; by default it is not kept.", metavar="RUN"
    ),
    epochs: int | None = option(None, "Fewer, for a quicker look.", min=1),
) -> None:
    """Ask the run that comes with hynt; then train HyNT on its graph `world`, ask it held-out questions too, and
    evaluate it beside trivial models.
    """
    console = standard_output()
    run = _kept(console, out) or _trained(console, out, epochs)
    _ask(console, run)
    console.print("\nOn the validation split, which also chose the weights; the test split is left unread:")
    print_evaluation(console, run.evaluate("valid", progress=True).to_dict())
    asked = "--head Brazil --relation 'total fertility rate' --tail '?' --qualifier 'point in time=1995'"
    if out is None:
        console.print("\nTwo things to try:")
        commands = ["hynt serve world", "hynt demo --out runs/world"]
    else:
        console.print(f"\nThe run is kept in {out}. Two things to try:")
        commands = [f"hynt serve {shlex.quote(str(out))}", f"hynt predict {shlex.quote(str(out))} {asked}"]
    for command in commands:
        console.print(f"  {command}")


def _ask(console: Console, run: Run) -> None:
    for question in _questions(run):
        console.print(f"\n{run.predict(question, top=3)}")


def _questions(run: Run) -> list[list[Any]]:
    """Held-out facts with one part left out, of the relations that the run answers best."""
    from hynt.asking.examples import held_out_examples
    from hynt.calibration.held_out import SPLIT

    facts, found = run.graph.split(SPLIT).facts(run.graph.vocabulary), []
    listed = list(facts)
    for example in held_out_examples(run):
        parts: list[Any] = list(listed[example.row])
        parts[example.position] = "?"
        found.append(parts)
    return found


def _kept(console: Console, out: Path | None) -> Run | None:
    """The run that is there."""
    from hynt.front.run import Run

    if out is None or not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    if not (out / MANIFEST_NAME).exists():
        raise UsageError(f"{out} is there and is not a run.", where="--out", advice="Choose another folder.")
    run = Run(out, "cpu")
    if "training" not in run.manifest:
        raise UsageError(f"{out} holds an unfinished run.", where="--out", advice="Choose another folder.")
    console.print(f"Using the run in {out}.")
    return run


def _trained(console: Console, out: Path | None, epochs: int | None) -> Run:
    """A new run, once the place for it is sure and the run that comes with hynt has answered."""
    from hynt.front.run import Run
    from hynt.front.training import train
    from hynt.graph.storage import load_graph

    if out is not None:
        check_new_folder(out, "--out")
    console.print("The run that comes with hynt answers at once, as `hynt predict world` does:")
    _ask(console, Run("world", "cpu"))
    console.print("\nNow one of your own.")
    graph = load_graph("world")
    facts = ", ".join(f"{len(table):,} {name}" for name, table in graph.splits.items())
    console.print(f"world: {facts} facts about {graph.vocabulary.entity_count:,} entities. Training HyNT on them.")
    run = train(graph, "hynt", "world", out, epochs=epochs, device="cpu", progress=True, with_statistics=True)
    console.print(f"Trained in {duration(run.manifest['training']['seconds'])}.")
    return run
