"""Answers to files of questions, however long: read, scored and written batch by batch, and never lost.

complete(hynt.load("runs/first"), Path("questions.jsonl"), Path("answers.parquet"), Wanted(top=3))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from hynt.asking.predictor import Predictor
from hynt.calibration.intervals import check_level
from hynt.completion.ahead import ahead
from hynt.completion.batches import BatchAnswers, Refused, Wanted
from hynt.completion.columns import ANSWER_SCHEMA
from hynt.completion.job import OnError, begun, finished, job_of, metadata, refused_in, rows_in
from hynt.completion.parts import WorkFolder
from hynt.completion.processes import FINISHED, answered_together, own_batches
from hynt.completion.question_files import QuestionFile, open_questions
from hynt.distributed.worker_group import Alone
from hynt.errors import UsageError

Progress: TypeAlias = Callable[[str, int, float], None]
"""(what is done, how many questions of this sitting, how much of the whole from 0 to 1)"""

BATCH = 16_384
"""Questions that are read and scored together."""

PART = 8
"""Batches in a part: what a kill may cost."""


@dataclass(frozen=True)
class Completion:
    """What a finished job did."""

    questions: int
    rows: int
    refused: int  # questions without an answer; their rows say why
    resumed_from: int  # questions that were answered already when this sitting began
    seconds: float  # of this sitting
    was_finished: bool  # whether there was nothing left to do

    @property
    def questions_per_second(self) -> float:
        """Of this sitting, from the first question read to the last row written."""
        return (self.questions - self.resumed_from) / self.seconds if self.seconds > 0 else 0.0


def complete(
    predictor: Predictor,
    questions: Path,
    out: Path,
    wanted: Wanted | None = None,
    *,
    on_error: OnError = "stop",
    resume: bool = False,
    progress: Progress = lambda step, done, share: None,
    team: Alone | None = None,
) -> Completion:
    """Answers every question of a file into a Parquet file of `ANSWER_SCHEMA`, in the order of the questions.

    With "stop" all questions are read and resolved before the first is scored, and one that cannot be asked is a
    `UsageError` with its file and line; with "record" it becomes a row that says why. `resume` goes on with a job that
    was stopped; what is already there is refused where run, questions or options are others. The other processes of a
    `team` call `assist`.
    """
    wanted, team = wanted or Wanted(), team or Alone()
    check_level(wanted.level)
    file = open_questions(questions)
    began = time.monotonic()
    job = job_of(predictor, questions, wanted, on_error)
    work = WorkFolder(out, ANSWER_SCHEMA)
    if resume and not work.path.exists() and (done := finished(out, job)) is not None:
        team.told(FINISHED)
        return Completion(done, rows_in(out), refused_in(out), done, 0.0, True)
    answers = BatchAnswers(predictor, wanted)
    total = begun(work, job, resume=resume)
    if total is None:
        total = _checked(file, answers, progress) if on_error == "stop" else 0
        work.begin({"job": job, "questions": total})
    before = sum(count for _, count in work.parts())
    state = _State(before, total, progress)
    if total or not before:  # else nobody knows yet which share of the file was answered before
        state.add(0, 0.0)
    team.told(str(before))
    answered = answered_together(ahead(own_batches(file, answers, BATCH, before, team)), answers, team)
    while work.add(_tables(answered, state)):
        pass
    if state.done == 0:
        work.remove()
        raise _no_questions(questions)
    rows = work.finish(metadata(job, predictor, state.done))
    return Completion(state.done, rows, refused_in(out), before, time.monotonic() - began, False)


@dataclass
class _State:
    done: int
    total: int  # 0 where nobody has counted
    progress: Progress

    def add(self, count: int, share_read: float) -> None:
        self.done += count
        self.progress("answering", self.done, self.done / self.total if self.total else share_read)


def _tables(answered: Iterator[tuple[pa.Table, int, float]], state: _State) -> Iterator[tuple[pa.Table, int]]:
    """The tables of the next part, and how many questions each answers."""
    for _ in range(PART):
        found = next(answered, None)
        if found is None:
            return
        table, count, share = found
        yield table, count
        state.add(count, share)


def _checked(file: QuestionFile, answers: BatchAnswers, progress: Progress) -> int:
    """How many questions there are, all of which can be asked; else the first bad one is told, and how many are."""
    count = bad = 0
    first: Refused | None = None
    for written in file.batches(BATCH):
        refused = answers.checked(written, explain=False).refused
        if refused and first is None:
            first = answers.checked(written, explain=True).refused[0]
        count, bad = count + len(written), bad + len(refused)
        progress("checking", count, file.done())
    if first is not None:
        raise _refusal(file.path, first, bad, count)
    if not count:
        raise _no_questions(file.path)
    return count


def _refusal(path: Path, first: Refused, bad: int, count: int) -> UsageError:
    place = f"{path}:{first.line}"
    advice = f"{first.problem.advice} Or say --on-error record: bad questions then become rows that say why.".strip()
    more = f" {bad:,} of {count:,} questions cannot be asked; this is the first." if bad > 1 else ""
    where = f"{place}, {first.problem.where}" if first.problem.where else place
    return UsageError(first.problem.what + more, where=where, advice=advice)


def _no_questions(path: Path) -> UsageError:
    return UsageError("the file holds no questions.", where=str(path), advice="Write one a line, or one a row.")
