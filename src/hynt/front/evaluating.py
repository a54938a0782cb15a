"""How good a run is, and how far it can be trusted. An evaluation from start to end: asked, set beside trivial models,
broken down, compared, told; and a calibration, fitted once and measured where asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hynt.asking.predictor import Predictor
from hynt.errors import UsageError
from hynt.evaluation.tables import GROUPINGS, evaluation_tables, headline, row_name, worse_than_trivial
from hynt.front.jobs import Watching, in_processes, options, watched
from hynt.front.recorded_run import RecordedRun
from hynt.names import advice_on
from hynt.results import FoundValues, Table, arrow_table, box, notebook_table, quiet, text_rows

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from hynt.distributed.worker_group import SingleProcess
    from hynt.evaluation.evaluator import Evaluator
    from hynt.evaluation.metrics import TaskName, Ties
    from hynt.front.run import Run
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.runs.opening import LoadedRun

    GivenGraph: TypeAlias = KnowledgeGraph | str | os.PathLike[str]

METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "rmse", "mae", "vs_median", "count")


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationReport(FoundValues, Table):
    """How well a run answers a split, by task and scope: a table with a row for the run and for each trivial model."""

    def metric(self, path: str) -> float:
        """One number by its path, such as "link.all.mrr"; NaN where no question gives it."""
        value: Any = self.found
        for part in path.split("."):
            value = value[part]
        return float("nan") if value is None else float(value)

    def rows(self) -> list[dict[str, Any]]:
        """Task, scope, model and metrics, a row each."""
        own = {row_name(self.found): self.found, **self.found.get("members", {})}
        return [
            {"task": task, "scope": scope, "model": model, **{name: metrics.get(name) for name in METRICS}}
            for model, tasks in (own | dict(self.found.get("references", {}))).items()
            for task in ("link", "relation", "number", "link_type_constrained")
            for scope, metrics in (tasks.get(task) or {}).items()
            if isinstance(metrics, Mapping)
        ]

    def to_arrow(self) -> pa.Table:
        """An Arrow table of `rows`."""
        import pyarrow as pa

        texts = [(name, pa.string()) for name in ("task", "scope", "model")]
        numbers = [(name, pa.int64() if name == "count" else pa.float64()) for name in METRICS]
        return arrow_table(self.rows(), pa.schema([*texts, *numbers]))

    def __repr__(self) -> str:
        lines = [headline(self.found)]
        for one in evaluation_tables(self.found):
            lines += [*([one.title] if one.title else []), *text_rows(one.columns, one.rows)]
        return "\n".join([*lines, *self.found.get("notes", ())])

    def _repr_html_(self) -> str:
        parts = []
        for one in evaluation_tables(self.found):
            parts += [quiet(one.title)] if one.title else []
            parts.append(
                notebook_table(one.columns, one.rows, numbers=range(len(one.columns) - one.numbers, len(one.columns)))
            )
        return box(headline(self.found), *parts, quiet(*self.found.get("notes", ())))


def _elsewhere(run: Predictor, observed: GivenGraph | None, asked: GivenGraph | None) -> Predictor:
    """The run over the training facts of one graph, asked about the other splits of another, or of the same."""
    from hynt.graph.changes import joined
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.runs.elsewhere import on_graph
    from hynt.runs.journal import graph_as_of

    first, second = observed or asked or run.graph, asked or observed or run.graph
    opened = first if isinstance(first, KnowledgeGraph) else graph_as_of(first)
    other = opened if second is first else second if isinstance(second, KnowledgeGraph) else graph_as_of(second)
    graph = opened if other is opened else joined(opened, other)
    return run.asked_of(graph, on_graph(run.loaded, graph, ("train",)))


def _opened(run: Predictor, split: str) -> LoadedRun:
    """The run, which may be asked about this split."""
    run.loaded.refuse_known(split, "split")
    run.loaded.graph.split(split)  # refuses an unknown split before it is counted
    return run.loaded


def _shuffled(loaded: LoadedRun, run: Predictor) -> LoadedRun:
    """The run as it answers where the numbers that it reads are those of others."""
    from hynt.runs.opening import load_run

    if loaded.home is not None or loaded.settings.model_name == "ensemble":
        what = "numbers are shuffled for a single run on its own graph."
        raise UsageError(what, where="shuffle_literals", advice="Leave it out, or name a run that was trained.")
    return load_run(run.saved, run.device, shuffle_literals=True)


def _rival(run: Predictor, loaded: LoadedRun, compare: Run | str | os.PathLike[str], split: str) -> LoadedRun:
    """The other run, which may be asked about this split too; refused before a split is read."""
    from hynt.graph.content_hash import graph_differences

    rival = _opened(compare if isinstance(compare, Predictor) else Predictor(compare, run.device.type), split)
    differ = graph_differences(*(one.run.manifest["graph"]["fingerprints"] for one in (loaded, rival)))
    if differ:
        what = f"the two runs have different graphs ({'; '.join(differ)})."
        raise UsageError(what, where="compare", advice="Compare runs on one graph.")
    return rival


@dataclass(frozen=True)
class _Protocol:
    """What a run is asked of a split, and how its answers are judged."""

    split: str
    tasks: tuple[TaskName, ...]
    ties: Ties
    type_constrained: bool
    without_duplicates: bool

    def evaluator(self, loaded: LoadedRun, device: torch.device, workers: SingleProcess) -> Evaluator:
        """Who asks the run; that its split is read is counted here."""
        from hynt.runs.scoring import evaluator_of_run

        described = loaded.described()
        if loaded.home is None:
            described |= {"reads_of_split": _counted(loaded, self.split, counts=workers.rank == 0)}
        else:
            described |= {"observed_graph": loaded.graph.name, "observed_facts": len(loaded.graph.split("train"))}
        return evaluator_of_run(
            loaded,
            self.split,
            device,
            tasks=self.tasks,
            ties=self.ties,
            type_constrained=self.type_constrained,
            described=described,
            without_duplicates=self.without_duplicates,
            workers=workers,
        )


def _counted(loaded: LoadedRun, split: str, *, counts: bool) -> int:
    """How often this split has been read now; of several processes one counts."""
    from hynt.runs.place import whole_run

    with whole_run():
        return int(loaded.run.count_read(split) if counts else loaded.run.reads(split))


def _alone(evaluator: Evaluator, loaded: LoadedRun) -> dict[str, Any]:
    """What each trained member of a combination answers by itself, so that it shows what the others add."""
    from hynt.evaluation.results import by_scope
    from hynt.models.combination import Combination

    if not isinstance(loaded.model, Combination):
        return {}
    rows = {}
    for name, model in loaded.model.trained_alone():
        found = evaluator.evaluate(model)
        rows[f"{name} alone"] = {task: by_scope(one, found.ties) for task, one in found.per_question.items()}
    return {"members": rows}


def references_of(evaluator: Evaluator, loaded: LoadedRun) -> dict[str, Any]:
    """The trivial rows that stand beside a run, from the facts it learned from."""
    from hynt.evaluation.evaluator import reference_rows
    from hynt.runs.training_data import training_table

    facts = training_table(loaded.graph, loaded.settings) if loaded.home is None else loaded.graph.split("train")
    return reference_rows(evaluator, facts)


CALIBRATION = ("task", "split", "temperature", "calibration error before", "after", "questions")


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport(FoundValues):
    """What was fitted on the validation split (`calibration`), and what was measured on another (`measured`)."""

    @property
    def calibrated(self) -> bool:
        """Whether there was something to fit on."""
        return bool(self.found["calibration"]["calibrated"])

    def rows(self) -> list[list[str]]:
        """The columns of `CALIBRATION`, as text."""
        fitted, measured = self.found["calibration"], self.found.get("measured")
        found = []
        for task in ("link", "relation"):
            for split, part in (("valid", fitted), (measured["split"] if measured else "", measured or {})):
                if task in part:
                    temperature = f"{fitted[task]['temperature']:.3f}" if part is fitted else ""
                    errors = [f"{part[task][f'calibration_error_{when}']:.4f}" for when in ("before", "after")]
                    found.append([task, split, temperature, *errors, f"{part[task]['questions']:,}"])
        return found

    def __repr__(self) -> str:
        if not self.calibrated:
            return f"<not calibrated: {self.found['calibration']['reason']}>"
        told = (f"{row[0]} on {row[1]}: error {row[3]} before, {row[4]} after" for row in self.rows())
        return f"<calibration: {'; '.join(told)}>"

    def _repr_html_(self) -> str:
        if not self.calibrated:
            return box("not calibrated", quiet(self.found["calibration"]["reason"]))
        return box("calibration", notebook_table(CALIBRATION, self.rows(), numbers=range(2, 6)))


def _measured(run: Predictor, split: str) -> dict[str, Any]:
    from hynt.calibration.measuring import measure
    from hynt.runs.place import whole_run

    run.graph.split(split)  # refuses an unknown split before it is counted
    if run.calibration.missing:
        what = f"the run is not calibrated: {run.calibration.missing}."
        raise UsageError(what, where="split", advice="Leave it out, or train on train alone.")
    run.loaded.refuse_known(split, "split")
    with whole_run():
        reads = run.loaded.run.count_read(split)
    found = measure(run.loaded, run.calibration, split, run.device)
    return {"split": split, "reads_of_split": reads, **found}


class Evaluable(RecordedRun):
    """A run that says how good it is."""

    def evaluate(
        self,
        split: str = "test",
        *,
        tasks: str | Iterable[str] = ("link", "relation", "number"),
        ties: Literal["realistic", "hynt"] = "realistic",
        type_constrained: bool = False,
        references: bool = True,
        intervals: bool = False,
        breakdown: Sequence[str] = (),
        compare: Run | str | os.PathLike[str] | None = None,
        questions: str | os.PathLike[str] | None = None,
        observed: KnowledgeGraph | str | os.PathLike[str] | None = None,
        asked: KnowledgeGraph | str | os.PathLike[str] | None = None,
        without_duplicates: bool = False,
        shuffle_literals: bool = False,
        processes: int = 1,
        progress: Watching = None,
    ) -> EvaluationReport:
        """Asks every question of a held-out split and reports how well the run answers, beside trivial models. Each
        reading of a split is counted in the run.

        `intervals` adds 95 % bootstrap intervals, `breakdown` groups the questions, `compare` asks another run on the
        same graph, and `questions` is a Parquet file for the result of each question. A model that reads observed facts
        is given those of the training split, or of the training split of the graph `observed`; `without_duplicates`
        leaves out those that equal an asked fact. With `asked`, the questions are those of that graph.
        `shuffle_literals` gives facts the numbers of other facts, to see whether numbers help to answer links and
        relations.

        >>> found = run.evaluate("valid", tasks="link", references=False)
        >>> 0 < found.metric("link.all.mrr") < 1
        True
        """
        from hynt.distributed.launch import is_launched
        from hynt.evaluation.metrics import checked_tasks
        from hynt.files import check_parquet

        run: Predictor = self if self._elsewhere else self._as_trained("evaluate")
        if questions is not None:
            check_parquet(Path(questions), "questions")
        for name in breakdown:
            if name not in GROUPINGS:
                what = f"results cannot be broken down by {name!r}."
                raise UsageError(what, where="breakdown", advice=advice_on(name, GROUPINGS))
        wanted = checked_tasks(tasks)
        if observed is not None or asked is not None or ("loaded" in run.__dict__ and run.loaded.home is not None):
            if compare is not None or processes > 1:
                what = "a run that is asked of another graph is evaluated by itself, in one process."
                raise UsageError(what, where="compare" if compare is not None else "processes", advice="Leave it out.")
            run = _elsewhere(run, observed, asked)
            breakdown = tuple(dict.fromkeys(["seen", "position", *breakdown]))
        if processes > 1 and not is_launched():
            said = options(
                split=split,
                task=",".join(wanted),
                ties=ties,
                type_constrained=type_constrained,
                device=run.device.type,
                no_references=not references,
                intervals=intervals,
                breakdown=",".join(breakdown) or None,
                compare=None if compare is None else getattr(compare, "path", compare),
                questions=questions,
                without_duplicates=without_duplicates,
                shuffle_literals=shuffle_literals,
                processes=processes,
            )
            return EvaluationReport(
                in_processes(["evaluate", str(run.path), *said], processes, "the evaluation stopped.", "Ask again.")
            )
        from hynt.distributed.worker_group import current_workers

        with current_workers(run.device) as workers:
            loaded = _opened(run, split)
            if shuffle_literals:
                loaded = _shuffled(loaded, run)
                wanted = tuple(task for task in wanted if task != "number")  # their answers would be those of others
            rival = None if compare is None else _rival(run, loaded, compare, split)
            protocol = _Protocol(split, wanted, ties, type_constrained, without_duplicates)
            evaluator = protocol.evaluator(loaded, run.device, workers)
            evaluator = replace(evaluator, shuffle_literals=shuffle_literals)
            with watched(False if workers.rank else progress) as shown:
                found = evaluator.evaluate(loaded.model, shown.counting("evaluating"))
            result = found.to_mapping()
            if references:
                result |= _alone(evaluator, loaded)
                result["references"] = references_of(evaluator, loaded)
                result["notes"] = worse_than_trivial(result, result["references"])
            if rival is not None:
                from hynt.evaluation.bootstrap import compare as compared

                other = protocol.evaluator(rival, run.device, workers)
                with watched(False if workers.rank else progress) as shown:
                    second = other.evaluate(rival.model, shown.counting("evaluating the other run"))
                result["comparison"] = compared(found, second)
            if workers.rank:
                return EvaluationReport(result)  # the first process has all answers, and tells
        from hynt.reporting.report.measurements import breakdowns_of, intervals_of

        if questions is not None:
            from hynt.evaluation.results import write_questions

            write_questions(found, Path(questions))
        if intervals:
            result["intervals"] = intervals_of(found)
        if breakdown:
            result["breakdowns"] = breakdowns_of(found, loaded, breakdown)
        return EvaluationReport(result)

    def calibrate(self, split: str | None = None) -> CalibrationReport:
        """Fits probabilities and intervals on the validation split, once, and reports how well they fit. With `split`
        they are measured on that split as well, which counts as a reading of it.

        >>> run.calibrate().calibrated
        True
        """
        run = self._as_trained("calibrate")
        found: dict[str, Any] = {**run.described(), "calibration": run.calibration.to_mapping(run.graph.vocabulary)}
        return CalibrationReport(found if split is None else found | {"measured": _measured(run, split)})
