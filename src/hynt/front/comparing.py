"""Models trained on one graph for the same time, in one table and one picture."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError, located
from hynt.files import check_new_folder, write_whole
from hynt.front.jobs import TemporaryFolder, Watching, watched
from hynt.front.run import Run
from hynt.front.training import AnyGraph, opened_graph, say_hint
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.results import FoundValues, Table, arrow_table, box, notebook_table, quiet, text_rows

if TYPE_CHECKING:
    import pyarrow as pa

MINUTES_WORTH_COMPILING = 5.0
"""On a GPU, compiling a model's steps takes half a minute or more."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(FoundValues, Table):
    """What each model reached, beside trivial ones: a table with a row per model and seed. Its plain values are rows,
    trivial, failed, files, and what was asked.
    """

    folder: Path
    kept: TemporaryFolder | None  # where nobody said where to keep it

    @property
    def failed(self) -> Mapping[str, str]:
        """Models that came to no end, and why."""
        failed: Mapping[str, str] = self.found["failed"]
        return failed

    def run(self, model: str, seed: int = 0) -> Run:
        """The run of a model, to be asked."""
        return Run(self.folder / "runs" / f"{model}-{seed}")

    def to_arrow(self) -> pa.Table:
        """An Arrow table: model, seed, what it cost, and the metrics of the test split; null where it answers not."""
        import pyarrow as pa

        from hynt.comparison.table import COLUMNS

        rows = [*self.found["rows"], *self.found["trivial"].values()]
        cells = [
            {name: row.get(name) for name in ("model", "seed", "parameters", "epochs", "train_seconds")}
            | {
                title: row["test"]["realistic"].get(task, {}).get(scope, {}).get(metric)
                for title, (task, scope, metric, _) in COLUMNS.items()
            }
            for row in rows
        ]
        counts = [(name, pa.int64()) for name in ("seed", "parameters", "epochs")]
        numbers = [(name, pa.float64()) for name in ("train_seconds", *COLUMNS)]
        return arrow_table(cells, pa.schema([("model", pa.string()), *counts, *numbers]))

    def __repr__(self) -> str:
        from hynt.comparison.table import quality_table

        cells = quality_table(self.found)
        lines = text_rows(cells.columns, cells.rows)
        best = self.found.get("recommended")
        return "\n".join([*lines, best["sentence"]] if best else lines)

    def _repr_html_(self) -> str:
        from hynt.comparison.table import cost_table, quality_table

        parts = [
            notebook_table(cells.columns, cells.rows) for cells in (quality_table(self.found), cost_table(self.found))
        ]
        failed = [f"{name} failed: {why}" for name, why in self.failed.items()]
        return box(f"models on {self.found['graph'] or 'the graph'}", *parts, quiet(*failed))


def compare(
    graph: AnyGraph,
    models: str | Sequence[str] = "all",
    out: str | os.PathLike[str] | None = None,
    *,
    minutes_per_model: float = 2.0,
    seeds: Iterable[int] = (0,),
    tasks: str | Sequence[str] = ("link", "relation", "number"),
    device: str = "auto",
    processor_time: bool = False,
    progress: Watching = None,
    note: Callable[[str], None] | None = None,
) -> ModelComparison:
    """Trains models on a graph for the same time each, tests them, and lists them beside each other and beside trivial
    ones.

    Rows, runs, table and picture are kept in the folder `out`; the same call resumes what was stopped. The minutes are
    of training alone; with `processor_time` they are processor time, for a machine with other work to do.

    >>> found = hynt.compare(graph, ["transea"], minutes_per_model=0.01, tasks=["link"])
    >>> found.to_arrow()["model"].to_pylist()[:2]
    ['transea', 'frequency']
    """
    from hynt.comparison.comparing import Comparison, model_names, trial_for
    from hynt.comparison.table import recommended
    from hynt.comparison.trial import TrialPlace, training_clock
    from hynt.evaluation.metrics import checked_tasks
    from hynt.interruption import stopping_on_signals
    from hynt.kernels.device import chosen_device
    from hynt.runs.checkpoint import Interrupted
    from hynt.runs.run_folder import describe_environment

    with located("models"):
        names = model_names(models if isinstance(models, str) else ",".join(models))
    asked = checked_tasks(tasks)
    target = chosen_device(device)
    loaded, source = opened_graph(graph)
    _check_splits(loaded)
    kept = TemporaryFolder("hynt-compare-") if out is None else None
    folder = Path(kept.path if kept is not None else out or "")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", where="out", advice="Give a folder.")
    check_new_folder(folder / "rows", "out")
    clock = time.process_time if processor_time else training_clock
    is_long = minutes_per_model >= MINUTES_WORTH_COMPILING
    place = TrialPlace(loaded, target, source, asked, compiled=is_long, clock=clock)
    numbers = list(dict.fromkeys(seeds))
    trials = [trial_for(name, loaded, target, seed, 60 * minutes_per_model) for name in names for seed in numbers]
    with watched(progress, pause=10.0) as shown, stopping_on_signals() as stopper:
        stopper.say = shown.say
        say_hint(loaded, note or shown.note)
        try:
            found = Comparison(folder, place, trials).run(shown, stopper)
        except Interrupted as stopped:
            raise Interrupted(stopped.what, advice="Go on with the same command.") from None
    result = {
        "graph": loaded.name,
        "minutes_per_model": minutes_per_model,
        "clock": "processor" if processor_time else "wall",
        "environment": describe_environment(target),
        **found,
    }
    named = "GRAPH" if isinstance(graph, KnowledgeGraph) else str(graph)
    result["recommended"] = recommended(result, named)
    return ModelComparison(result | {"files": _written(folder, result)}, folder, kept)


def _written(out: Path, result: Mapping[str, Any]) -> list[str]:
    """Writes the whole comparison, its tables as a page, and the picture where it can be drawn; says which files."""
    from hynt.comparison.table import SHORT_IN_WORDS, cost_table, markdown, minutes_text, quality_table

    write_whole(out / "comparison.json", (json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    page = f"{markdown(quality_table(result))}\n{markdown(cost_table(result))}\n{SHORT_IN_WORDS}\n"
    if result["recommended"] is not None:
        page += f"\n{result['recommended']['sentence']}\n"
    write_whole(out / "comparison.md", page.encode())
    files = ["comparison.json", "comparison.md"]
    if find_spec("matplotlib") is not None and result["rows"]:
        from hynt.comparison.table import compare_figure
        from hynt.reporting.scales import picture

        time_of = "processor time" if result["clock"] == "processor" else "training"
        title = f"{result['graph'] or 'the graph'}: {minutes_text(result['minutes_per_model'])} of {time_of} each"
        for suffix in (".png", ".svg"):
            write_whole(out / f"comparison{suffix}", picture(compare_figure(result, title), suffix))
            files.append(f"comparison{suffix}")
    return [str(out / name) for name in files]


def _check_splits(graph: KnowledgeGraph) -> None:
    for split in ("train", "valid", "test"):
        if not len(graph.splits.get(split, ())):
            raise UsageError(
                f"the graph has no {split} split, and a comparison needs train, valid and test.",
                where="graph",
                advice="Import it with --split 8:1:1, or with files for all three.",
            )
