"""Finding facts that look wrong: each is judged, component by component, by a model that did not see it. What comes out
are rows for people: one per fact, or one per component, most suspicious first.

    plan = planned("world", SettingsRequest(preset="world"), None)
    found = carried_out(plan, Path("audit-of-world"), torch.device("cpu"), SILENT, Stopper())
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from hynt import __version__
from hynt.auditing.folds import name_label
from hynt.auditing.judges import AuditFolder, Judges
from hynt.auditing.plan import AuditPart, AuditPlan, plan_audit
from hynt.auditing.verdicts import Verdicts, of_facts, verdicts
from hynt.errors import UsageError
from hynt.files import whole_file
from hynt.graph.fact import Fact, Number
from hynt.graph.fact_table import ENTITY_KIND, KIND_NAMES, NUMBER_KIND, component_starts, position_name
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.possible_numbers import PossibleNumbers
from hynt.graph.sentences import Sentences, format_quantity
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Ids
from hynt.interruption import Stopper
from hynt.markup import shown
from hynt.names import plural
from hynt.progress import Progress
from hynt.results import Table, arrow_table, box, more, notebook_table, pandas_or_refusal
from hynt.runs.elsewhere import on_graph
from hynt.runs.journal import Journal
from hynt.runs.opening import load_run
from hynt.runs.place import is_run, whole_run
from hynt.runs.run_folder import RunFolder
from hynt.training.resolve_settings import SettingsRequest

SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),  # of the fact, from 1; null where it was not judged
        ("score", pa.float64()),  # of the fact
        ("split", pa.string()),
        ("row", pa.int64()),  # in its split, from 0
        ("fact", pa.string()),  # in words
        ("head", pa.string()),  # ids as written
        ("relation", pa.string()),
        ("tail", pa.string()),
        ("component", pa.string()),  # head, relation, tail, value of qualifier 1, …
        ("kind", pa.string()),  # entity, relation or number
        ("component_score", pa.float64()),
        ("stored", pa.string()),  # in words
        ("stored_id", pa.string()),
        ("stored_value", pa.float64()),
        ("probability", pa.float64()),  # of the stored entity or relation
        ("place", pa.float64()),  # of the stored entity or relation among the candidates
        ("residual", pa.float64()),  # of the stored number, in radii of the interval
        ("said", pa.string()),  # what the model would have said, in words
        ("said_id", pa.string()),
        ("said_value", pa.float64()),
        ("said_probability", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("low_text", pa.string()),  # in words
        ("high_text", pa.string()),
        ("interval_from", pa.string()),
        ("judge", pa.string()),  # fold-1, …; run-1, … where the given run judged
        ("reason", pa.string()),  # why it was not judged
    ]
)
"""The columns of the file; null where a column does not apply."""

_ROWS_AT_ONCE = 20_000


class RowWriter:
    """Tells the facts and components of one audit."""

    def __init__(self, plan: AuditPlan, found: Verdicts, parts: list[AuditPart]) -> None:
        self.plan, self.found, self.parts = plan, found, parts
        self._sentences = Sentences(plan.graph)
        sizes = np.array([len(table) for table in plan.graph.splits.values()], dtype=np.int64)
        self._starts = np.cumsum(sizes) - sizes

    def rows(self, verdict: Ids, rank: Ids, score: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
        """(k,) these components, each with its fact's rank and score."""
        facts = self._facts(self.found.stored.row[verdict])
        for fact, index, place, value in zip(facts, verdict.tolist(), rank.tolist(), score.tolist(), strict=True):
            number = int(self.found.stored.row[index])
            yield {"rank": place, "score": value} | self._described(fact, number) | self._component(index, fact)

    def not_judged(self, facts: Ids) -> Iterator[dict[str, Any]]:
        """(k,) facts that nobody could judge, each with the reason."""
        for fact, number in zip(self._facts(facts), facts.tolist(), strict=True):
            yield self._described(fact, number) | {"reason": self.reason(number)}

    def reason(self, number: int) -> str:
        """Why a fact was not judged."""
        folds, graph = self.plan.folds, self.plan.graph
        if folds.is_judged[number]:
            return f"the model {self.plan.settings.model_name!r} answers none of its components"
        name = name_label(int(folds.missing[number]), graph.entity_labels, graph.relation_labels)
        if self.plan.in_training[number]:
            return f"{name!r} occurs nowhere else"
        return f"{name!r} occurs nowhere in training"

    def _facts(self, numbers: Ids) -> Iterator[Fact]:
        return self.plan.table.take(numbers).facts(self.plan.graph.vocabulary)

    def _described(self, fact: Fact, number: int) -> dict[str, Any]:
        split = int(self.plan.split[number])
        tail = fact.tail.literal if isinstance(fact.tail, Number) else fact.tail
        return {
            "split": tuple(self.plan.graph.splits)[split],
            "row": number - int(self._starts[split]),
            "fact": self._sentences.fact(fact),
            "head": fact.head,
            "relation": fact.relation,
            "tail": tail,
        }

    def _component(self, index: int, fact: Fact) -> dict[str, Any]:
        found, graph = self.found, self.plan.graph
        stored = found.stored
        kind = int(stored.kind[index])
        told: dict[str, Any] = {
            "component": position_name(int(stored.position[index])),
            "kind": KIND_NAMES[kind],
            "component_score": float(found.score[index]),
            "judge": self.parts[int(found.part[index])].name,
        }
        if kind == NUMBER_KIND:
            return told | self._number(index, fact)
        own = int(stored.entity[index] if kind == ENTITY_KIND else stored.relation[index])
        best = int(found.best[index])
        (own_id, own_name), (best_id, best_name) = _named(graph, kind, own), _named(graph, kind, best)
        return told | {
            "stored": own_name,
            "stored_id": own_id,
            "probability": math.exp(found.log_probability[index]),
            "place": float(found.place[index]),
            "said": best_name,
            "said_id": best_id,
            "said_probability": math.exp(found.best_log_probability[index]),
        }

    @cached_property
    def _possible(self) -> PossibleNumbers:
        """What a number is shown as: judged it is as the model said it."""
        return PossibleNumbers.of(self.plan.graph.vocabulary, [self.plan.learned])

    def _number(self, index: int, fact: Fact) -> dict[str, Any]:
        found = self.found
        relation = found.stored.relation[index : index + 1].astype(np.int64)
        unit = self.plan.graph.relations[int(relation[0])].unit
        stored = float(found.stored.number[index])
        said = float(self._possible.nearest(relation, found.predicted[index : index + 1])[0])
        low, high = float(found.low[index]), float(found.high[index])
        width = high - low if math.isfinite(high - low) else None
        told: dict[str, Any] = {
            "stored": self._sentences.words(fact)[int(found.stored.position[index])],
            "stored_value": stored,
            "said": format_quantity(said, unit, width),
            "said_value": said,
        }
        if width is not None:
            told |= {
                "residual": float(found.residual[index]),
                "low": low,
                "high": high,
                "low_text": format_quantity(low, unit, width),
                "high_text": format_quantity(high, unit, width),
                "interval_from": "this relation" if found.is_own[index] else "all relations with few values",
            }
        return told


def _named(graph: KnowledgeGraph, kind: int, index: int) -> tuple[str, str]:
    if kind == ENTITY_KIND:
        return graph.vocabulary.entities[index], graph.entity_labels[index]
    return graph.relations[index].name, graph.relation_labels[index]


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
        rows, total = self.rows(components=components), 0
        with whole_file(Path(out)) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
            while some := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_batch(pa.RecordBatch.from_pylist(some, SCHEMA))
                total += len(some)
        return total

    def to_arrow(self, *, components: bool = False) -> pa.Table:
        """An Arrow table with the columns of the file."""
        return arrow_table(self.rows(components=components), SCHEMA)

    def to_pandas(self, *, components: bool = False) -> Any:
        """A pandas data frame with the columns of the file."""
        return pandas_or_refusal().DataFrame(list(self.rows(components=components)), columns=SCHEMA.names)

    def __repr__(self) -> str:
        lines = [f"<audit of {self.plan.graph.name or 'a graph'}: {plural(len(self), 'fact')} judged>"]
        return shown("\n".join([*lines, *(f"{row['score']:.2f}  {row['fact']}" for row in self.top(_SHOWN))]))

    def _repr_html_(self) -> str:
        rows = [
            [str(row["rank"]), f"{row['score']:.2f}", row["fact"], f"{row['component']}: {row['stored']}", row["said"]]
            for row in self.top(2 * _SHOWN)
        ]
        columns = ["rank", "score", "fact", "looks wrong", "the model would have said"]
        title = f"audit of {self.plan.graph.name or 'a graph'}: {len(self):,} facts judged"
        return box(title, notebook_table(columns, rows, numbers=(0, 1)), more(len(self) - len(rows), "facts"))


_SHOWN = 10


def planned(
    source: KnowledgeGraph | str | os.PathLike[str], request: SettingsRequest, version: int | None, **options: Any
) -> AuditPlan:
    """The plan for a graph, or for the graph of a run with the run's settings; `options` are those of `plan_audit`.
    `version` takes the graph of a run as it was after so many updates, instead of all.
    """
    run = opened_run(source)
    if run is None:
        if version is not None:
            raise UsageError("a graph has no versions.", where="--as-of", advice="Name a run whose graph was updated.")
        graph = source if isinstance(source, KnowledgeGraph) else load_graph(source)
        return plan_audit(graph, request=request, **options)
    with whole_run():
        request = replace(request, model=request.model or run.settings().model_name)
        before = run.graph()
        graph = Journal(run.path).graph(before, version)
        trained_on = None if graph is before else before
        return plan_audit(graph, run, trained_on=trained_on, request=request, **options)


def carried_out(
    plan: AuditPlan, work: Path, device: torch.device, progress: Progress, stopper: Stopper, *, compiled: bool = True
) -> Audit:
    """Does all that a plan says, or what is left of it. A run that judges is loaded before anything is written."""
    given = None
    if plan.run is not None and any(part.by_run for part in plan.parts()):
        with whole_run():
            given = load_run(plan.run, device)
            if plan.is_updated:
                given = on_graph(given, plan.graph)
    folder = AuditFolder(work)
    folder.open({"hynt": __version__, **plan.identity()})
    judged = Judges(plan, folder, device, progress, stopper, compiled, given).judged()
    return Audit.of(plan, [part for part, _ in judged], verdicts(plan, judged).about(plan.wanted))


def opened_run(source: KnowledgeGraph | str | os.PathLike[str]) -> RunFolder | None:
    """The run at a path; None where there is a graph, or nothing at all."""
    if isinstance(source, KnowledgeGraph) or not is_run(source):
        return None
    with whole_run():
        return RunFolder.open(Path(source))
