"""Carrying out an audit's plan: train the model of each fold, see how sure each may be, and let each judge its facts.

Each step is kept in the work folder when it is done, so an audit that was stopped repeats none of them:

    WORK/plan.json                   what is audited and how; another audit is refused
    WORK/fold-1/                     the run that learns from all but the first fold
    WORK/sharpness-fold-1.json       how sure that run may be
    WORK/judged-fold-1.link.parquet  what it says of the fold's facts, listed in judged-fold-1.json
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from hynt.auditing.judging import RANKED, Judge, NumberJudgement, RankedJudgement, relation_sorts
from hynt.auditing.plan import AuditPart, AuditPlan
from hynt.batches.epoch_plan import derived_seed
from hynt.evaluation.metrics import TaskName
from hynt.files import MANIFEST_NAME, WorkFolder, whole_file
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.seen_values import SeenValues
from hynt.interruption import Stopper
from hynt.progress import Progress
from hynt.runs.checkpoint import Interrupted, TrainingProgress
from hynt.runs.observing import counting, observing
from hynt.runs.opening import LoadedRun, load_run
from hynt.runs.place import whole_run
from hynt.runs.run_folder import RunFolder
from hynt.training.run import start, train

_NAMES = ("link", "relation", "number")

J = TypeVar("J", RankedJudgement, NumberJudgement)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one part's model says of its facts."""

    link: RankedJudgement
    relation: RankedJudgement
    number: NumberJudgement


class AuditFolder(WorkFolder):
    """Where an audit keeps what it has done."""

    def keep_judged(self, name: str, judged: Judged) -> None:
        for task in _NAMES:
            one = getattr(judged, task)
            columns = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
            with whole_file(self.file(f"judged-{name}", f"{task}.parquet")) as file:
                pq.write_table(pa.table(columns), file, compression="zstd")
        self.keep(f"judged-{name}", {}, [f"{task}.parquet" for task in _NAMES])

    def judged(self, name: str) -> Judged | None:
        """What the judge of a part says; None where that is still to do."""
        part = f"judged-{name}"
        if self.kept(part) is None:
            return None
        link, relation = (_read(self.file(part, f"{task}.parquet"), RankedJudgement) for task in ("link", "relation"))
        return Judged(link, relation, _read(self.file(part, "number.parquet"), NumberJudgement))


def _read(path: Path, kind: type[J]) -> J:
    table = pq.read_table(path)
    return kind(**{field.name: np.array(table[field.name].to_numpy()) for field in dataclasses.fields(kind)})


@dataclass(eq=False)
class Judges:
    """The judges of one audit, at work."""

    plan: AuditPlan
    work: AuditFolder
    device: torch.device
    progress: Progress
    stopper: Stopper
    compiled: bool = True  # for a GPU: compiled steps are faster, but compiling takes its time
    given: LoadedRun | None = None  # the run that judges what it was not trained on
    _loaded: tuple[str, LoadedRun] | None = field(default=None, init=False)  # the fold's judge at hand, by name

    def judged(self) -> list[tuple[AuditPart, Judged]]:
        """What every part's judge says; trained, asked and kept where that is not done yet."""
        parts = self.plan.parts()
        trained = [part for part in parts if not part.by_run]
        if self.plan.clipped:
            what = f"numbers far outside the rest of their relation: {self.plan.clipped:,}"
            self.progress.note(f"{what}; models read them at its edge, and they are judged as they are stored")
        for number, part in enumerate(trained, 1):
            self._train(part, f"fold {number} of {len(trained)}")
        found = {part.name: self._inverse_temperature(part) for part in parts}
        judged = []
        for number, part in enumerate(parts, 1):
            others = [found[one.name] for one in parts if one is not part and one.by_run == part.by_run]
            kept = self.work.judged(part.name)
            kept = kept or self._judge(part, joined_inverse_temperature(others), f"{number} of {len(parts)}")
            judged.append((part, kept))
        return judged

    def _train(self, part: AuditPart, counted: str) -> None:
        path = self.work.path / part.name
        graph = None if (path / MANIFEST_NAME).exists() else self.plan.fold_graph(part.fold)
        run = RunFolder.open(path) if graph is None else start(graph, self.plan.settings, path, self.device)
        if run.is_finished:
            return
        held = int((self.plan.folds.is_held & (self.plan.folds.fold == part.fold)).sum())
        learned = int(self.plan.in_training.sum()) - held
        if self.device.type == "cuda":
            torch.compiler.reset()  # it gives up on a function that it has compiled anew too often
        self.progress.say(f"{counted}: training on {learned:,} facts, {held:,} held out")
        try:
            train(run, self.device, TrainingProgress(self.progress), self.stopper, compiled=self.compiled)
        except Interrupted as stopped:
            raise self._interrupted(f"{counted}: {stopped.what}") from None

    def _inverse_temperature(self, part: AuditPart) -> dict[str, float]:
        done = f"sharpness-{part.name}"
        if (kept := self.work.kept(done)) is not None:
            return {task: float(value) for task, value in kept["fitted"].items()}
        self._stop_if_asked()
        judge = self._judge_of(part)
        fitted = {task: judge.inverse_temperature(task) for task in RANKED}
        found: dict[str, float] = {task: value for task, value in fitted.items() if value is not None}
        self.work.keep(done, {"fitted": found})
        return found

    def _judge(self, part: AuditPart, inverse_temperature: dict[TaskName, float], counted: str) -> Judged:
        judge = self._judge_of(part)
        total, done = judge.questions(), 0
        self.progress.say(f"judging {counted}: {total:,} questions about {len(part.facts):,} facts")

        def tick(questions: int) -> None:
            nonlocal done
            done += questions
            self.progress.update("judging", done, total, "questions")
            self._stop_if_asked()

        link, relation = (judge.ranked(task, inverse_temperature[task], tick) for task in RANKED)
        judged = Judged(link, relation, judge.numbers(tick))
        self.work.keep_judged(part.name, judged)
        return judged

    def _judge_of(self, part: AuditPart) -> Judge:
        if part.by_run:
            assert self.given is not None
            observed, counted = self.plan.observed(part.fold), self.plan.counted(part.fold)
            loaded = counting(observing(self.given, observed), counted)
        else:
            if self._loaded is None or self._loaded[0] != part.name:
                with whole_run():
                    self._loaded = (part.name, load_run(self.work.path / part.name, self.device))
            loaded = self._loaded[1]
        table, shown = self.plan.table.take(part.facts), self.plan.learned.take(part.facts)
        seed = derived_seed(self.plan.settings.seed, part.name, "decoys")
        return Judge(loaded, self._known, self._places, part.facts, table, shown, self.device, seed)

    @cached_property
    def _known(self) -> KnownAnswers:
        return KnownAnswers.build(self.plan.graph.splits, self.plan.graph.vocabulary.relation_is_number)

    @cached_property
    def _places(self) -> SeenValues:
        vocabulary = self.plan.graph.vocabulary
        return SeenValues.of([self.plan.table], vocabulary.relation_is_number, relation_sorts(vocabulary))

    def _stop_if_asked(self) -> None:
        if self.stopper.asked:
            raise self._interrupted("the audit was stopped.")

    def _interrupted(self, what: str) -> Interrupted:
        return Interrupted(what, advice="Say the same command again to go on from here.")


def joined_inverse_temperature(others: Sequence[dict[str, float]]) -> dict[TaskName, float]:
    """The geometric mean of what was fitted on the other parts: a part has no say in how sure its own judge may be.

    The judges are alike (same settings, training sets of one size), so what fits one fits another. 1 where there is
    nothing to go by.
    """
    found: dict[TaskName, float] = {}
    for task in RANKED:
        logs = [math.log(one[task]) for one in others if task in one]
        found[task] = math.exp(sum(logs) / len(logs)) if logs else 1.0
    return found
