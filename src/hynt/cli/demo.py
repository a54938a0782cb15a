"""`hynt demo`: the whole way on the embedded graph, in about a minute: train, evaluate, ask."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.evaluate import print_evaluation, references_of
from hynt.cli.output import console as standard_output
from hynt.cli.progress import QuestionProgress, TrainingProgress, duration
from hynt.errors import UsageError
from hynt.files import check_new_folder

if TYPE_CHECKING:
    from rich.console import Console

# Facts of the test split, which the model has not seen, with one part left out and the answer that the graph holds.
QUESTIONS: tuple[tuple[tuple[Any, ...], str], ...] = (
    (("Austria", "language spoken", "?", [("role", "official"), ("share", "97")]), "German"),
    (("Brazil", "?", "Brazilian Real", [("start time", "1994-07-01")]), "currency"),
    (("Austria", "life expectancy", "?", [("point in time", "2024"), ("sex", "female")]), "85.4 years"),
)


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="RUN", help="Keep the run here, or use the one that is here. Else it is dropped."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Fewer, for a quicker look.")] = None,
) -> None:
    """Train HyNT on the embedded graph `world`, evaluate it beside trivial models, and ask it three questions."""
    console = standard_output()
    with tempfile.TemporaryDirectory(prefix="hynt-demo-") as folder:
        path = Path(folder) / "run" if out is None else out
        _train(console, path, epochs)
        _evaluate(console, path)
        _ask(console, path)
        if out is not None:
            console.print(f"\nThe run is kept in {out}. Ask it yourself:")
            console.print(
                f"  hynt predict {out} --head Brazil --relation 'total fertility rate' --tail '?' "
                "--qualifier 'point in time=1995'"
            )


def _train(console: Console, path: Path, epochs: int | None) -> None:
    from hynt.graph.storage import load_graph
    from hynt.interruption import stopping_on_signals
    from hynt.runs.hashed_files import INDEX_NAME
    from hynt.runs.run_folder import RunFolder
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import chosen_device, start, train

    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        if not (path / INDEX_NAME).exists():
            raise UsageError(f"{path} is there and is no run.", where="--out", advice="Choose another folder.")
        if not RunFolder.open(path).is_finished:
            raise UsageError(f"{path} holds an unfinished run.", where="--out", advice="Choose another folder.")
        console.print(f"Using the run in {path}.")
        return
    check_new_folder(path, "--out")
    graph, device = load_graph("world"), chosen_device("cpu")
    facts = ", ".join(f"{len(table):,} {name}" for name, table in graph.splits.items())
    console.print(f"world: {facts} facts about {graph.vocabulary.entity_count:,} entities. Training HyNT on them.")
    settings = resolve_settings(SettingsRequest("hynt", "world", epochs), graph, on_gpu=False)
    with TrainingProgress() as progress, stopping_on_signals() as stopper:
        run = train(start(graph, settings, path, device, None), device, progress, stopper)
    console.print(f"Trained in {duration(run.manifest['training']['seconds'])}.")


def _evaluate(console: Console, path: Path) -> None:
    from hynt.evaluation.evaluator import Evaluator
    from hynt.runs.opening import load_run

    loaded = load_run(path)
    described = loaded.described() | {"reads_of_split": loaded.run.count_read("test")}
    evaluator = Evaluator(loaded.graph, loaded.scaling, described=described)
    with QuestionProgress("evaluating") as progress:
        result = evaluator.evaluate(loaded.model, progress).to_mapping()
    result["references"] = references_of(evaluator, loaded)
    console.print()
    print_evaluation(console, result)


def _ask(console: Console, path: Path) -> None:
    from hynt.asking.predictor import load

    predictor = load(path, "cpu")
    for question, truth in QUESTIONS:
        answers = predictor.predict(question, top=3)
        console.print(f"\n{answers}")
        console.print(f"  the graph says: {truth}", style="dim")
