"""Finding facts that look wrong: each is judged, component by component, by a model that did not see it.

found = audit("world", work="audit-of-world", preset="world")
found.to_pandas().head()
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from hynt import __version__
from hynt.auditing.judges import AuditFolder, Judges
from hynt.auditing.plan import ALL, AuditPart, AuditPlan, plan_audit
from hynt.auditing.rows import SCHEMA, RowWriter, write_rows
from hynt.auditing.verdicts import Verdicts, of_facts, verdicts
from hynt.graph.fact_table import component_starts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import BUILT_IN, load_graph
from hynt.graph.vocabulary import Ids
from hynt.interruption import Stopper
from hynt.markup import shown
from hynt.notebook import box, more, table
from hynt.progress import SILENT, Progress
from hynt.runs.opening import load_run
from hynt.runs.place import whole_run
from hynt.runs.run_folder import CONFIG, SCALING, RunFolder
from hynt.tables import Table, arrow_table, pandas_or_refusal
from hynt.training.resolve_settings import SettingsRequest
from hynt.training.run import chosen_device


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Table):
    """Every judged component and fact: a table with a row per fact, most suspicious first."""

    plan: AuditPlan
    parts: list[AuditPart]
    found: Verdicts
    fact: Ids  # (f,) the facts that were judged, most suspicious first
    score: NDArray[np.float64]  # (f,) falling
    worst: Ids  # (f,) the most suspicious component of each, by its number in `found`

    @classmethod
    def of(cls, plan: AuditPlan, parts: list[AuditPart], found: Verdicts) -> Audit:
        fact, score, worst = of_facts(found.score, found.stored.row)
        order = np.lexsort((fact, -score))
        return cls(plan, parts, found, fact[order], score[order], worst[order])

    def __len__(self) -> int:
        return len(self.fact)

    @cached_property
    def not_judged(self) -> Ids:
        """The facts that were to be judged and could not be."""
        left = self.plan.wanted.copy()
        left[self.fact] = False
        return np.flatnonzero(left).astype(np.int64)

    @cached_property
    def _writer(self) -> RowWriter:
        return RowWriter(self.plan, self.found, self.parts)

    def reasons(self) -> dict[str, int]:
        """Why facts were not judged, and how many for each sort of reason."""
        told = Counter(
            "an entity or relation occurs nowhere else"
            if not judged and trained
            else "an entity or relation occurs nowhere in training"
            if not judged
            else "the model answers none of its components"
            for judged, trained in zip(
                self.plan.folds.is_judged[self.not_judged].tolist(),
                self.plan.in_training[self.not_judged].tolist(),
                strict=True,
            )
        )
        return dict(told)

    def not_asked(self) -> int:
        """How many components of the judged facts the model does not answer."""
        return int(np.diff(component_starts(self.plan.table))[self.fact].sum()) - len(self.found.score)

    def top(self, count: int) -> list[dict[str, Any]]:
        """The most suspicious facts, as `write` writes them; what does not apply is left out."""
        rank = np.arange(1, len(self) + 1)[:count]
        return list(self._writer.rows(self.worst[:count], rank, self.score[:count]))

    def rows(self, *, components: bool = False) -> Iterator[dict[str, Any]]:
        """A row per fact, or per component, most suspicious facts first; then the facts that were not judged."""
        rank = np.arange(1, len(self) + 1)
        if components:
            place = np.zeros(len(self.plan.table), dtype=np.int64)
            place[self.fact] = rank
            of_fact = place[self.found.stored.row]
            order = np.lexsort((self.found.stored.position, -self.found.score, of_fact)).astype(np.int64)
            yield from self._writer.rows(order, of_fact[order], self.score[of_fact[order] - 1])
        else:
            yield from self._writer.rows(self.worst, rank, self.score)
        yield from self._writer.not_judged(self.not_judged)

    def write(self, out: str | os.PathLike[str], *, components: bool = False) -> int:
        """Parquet, whole or not at all; returns how many rows it has."""
        return write_rows(self.rows(components=components), Path(out))

    def to_arrow(self, *, components: bool = False) -> pa.Table:
        """An Arrow table with the columns of the file."""
        return arrow_table(self.rows(components=components), SCHEMA)

    def to_pandas(self, *, components: bool = False) -> Any:
        """A pandas data frame with the columns of the file."""
        return pandas_or_refusal().DataFrame(list(self.rows(components=components)), columns=SCHEMA.names)

    def __repr__(self) -> str:
        lines = [f"<audit of {self.plan.graph.name or 'a graph'}: {len(self):,} facts judged>"]
        return shown("\n".join([*lines, *(f"{row['score']:.2f}  {row['fact']}" for row in self.top(_SHOWN))]))

    def _repr_html_(self) -> str:
        rows = [
            [str(row["rank"]), f"{row['score']:.2f}", row["fact"], f"{row['component']}: {row['stored']}", row["said"]]
            for row in self.top(2 * _SHOWN)
        ]
        columns = ["rank", "score", "fact", "looks wrong", "the model would have said"]
        title = f"audit of {self.plan.graph.name or 'a graph'}: {len(self):,} facts judged"
        return box(title, table(columns, rows, numbers=(0, 1)), more(len(self) - len(rows), "facts"))


_SHOWN = 10


def audit(
    source: KnowledgeGraph | str | os.PathLike[str],
    *,
    splits: Sequence[str] = (ALL,),
    folds: int = 5,
    fold_by: str = "fact",
    model: str | None = None,
    preset: str | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    changes: Sequence[str] = (),
    device: str = "auto",
    work: str | os.PathLike[str] | None = None,
    progress: Progress = SILENT,
    stopper: Stopper | None = None,
    compiled: bool = True,
) -> Audit:
    """Audits a graph, or the graph of a run with the run's settings. `work` is a folder that keeps what is done, so
    that an audit that was stopped goes on; without it, a temporary one is used.
    """
    target = chosen_device(device)
    run = opened_run(source)
    request = SettingsRequest(model, preset, epochs, seed, None, None, tuple(changes))
    options: dict[str, Any] = {"splits": splits, "folds": folds, "fold_by": fold_by, "on_gpu": target.type == "cuda"}
    if run is None:
        graph = source if isinstance(source, KnowledgeGraph) else load_graph(source)
        plan = plan_audit(graph, request=request, **options)
    else:
        with whole_run():
            request = replace(request, model=model or run.settings().model_name)
            plan = plan_audit(run.graph(), run, request=request, **options)
    if work is not None:
        return carried_out(plan, Path(work), target, progress, stopper or Stopper(), compiled=compiled)
    with tempfile.TemporaryDirectory(prefix="hynt-audit-") as folder:
        return carried_out(plan, Path(folder), target, progress, stopper or Stopper(), compiled=compiled)


def carried_out(
    plan: AuditPlan, work: Path, device: torch.device, progress: Progress, stopper: Stopper, *, compiled: bool = True
) -> Audit:
    """Does all that a plan says, or what is left of it. A run that judges is loaded before anything is written."""
    given = None
    if plan.run is not None and any(part.by_run for part in plan.parts()):
        with whole_run():
            given = load_run(plan.run, device)
    folder = AuditFolder(work)
    folder.open({"hynt": __version__, **plan.identity()})
    judged = Judges(plan, folder, device, progress, stopper, compiled, given).judged()
    return Audit.of(plan, [part for part, _ in judged], verdicts(plan, judged))


def opened_run(source: KnowledgeGraph | str | os.PathLike[str]) -> RunFolder | None:
    """The run at a path; None where there is a graph, or nothing at all. A run is told by its own files, or by what is
    left of them.
    """
    if isinstance(source, KnowledgeGraph):
        return None
    path = Path(source)
    if str(source) in BUILT_IN or not any((path / name).is_file() for name in (CONFIG, SCALING)):
        return None
    with whole_run():
        return RunFolder.open(path)
