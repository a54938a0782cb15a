"""Answers to files of questions, however long: read, scored and written batch by batch, and never lost.

    complete(hynt.load("runs/first"), Path("questions.jsonl"), Path("answers.parquet"), CompletionOptions(top=3))

The work folder is hidden beside the file of answers: `part-000007.parquet` and how many questions it answers. The
answers themselves appear in one rename, when all parts are there.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt import __version__
from hynt.asking.predictor import Predictor
from hynt.calibration.intervals import check_level
from hynt.completion.batches import (
    ANSWER_SCHEMA,
    FINISHED,
    BatchAnswers,
    CompletionOptions,
    answered_together,
    own_batches,
)
from hynt.completion.question_files import QuestionFile, RefusedQuestion, open_questions
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import UsageError
from hynt.files import WorkFolder, flush, sha256_of, whole_file, writing
from hynt.graph.content_hash import graph_fingerprints
from hynt.progress import SILENT, Progress
from hynt.runs import WEIGHTS

_FILE = "parquet"
_GO_ON = "Make room or choose another place; with --resume the job goes on where it stopped."


class CompletionFolder(WorkFolder):
    """The work folder of one output file, with a Parquet file and a JSON file per part."""

    def __init__(self, out: Path, schema: pa.Schema) -> None:
        super().__init__(out.parent / f".{out.name}.partial")
        self.out, self._schema = out, schema
        self._parts = 0

    def open(self, plan: Mapping[str, Any]) -> None:
        super().open(plan)
        self._parts = len(list(self.path.glob("part-*.json")))

    def answered(self) -> int:
        """How many questions the finished parts answer."""
        found = [self.kept(_part(number)) for number in range(self._parts)]
        return sum(self._questions(number, content) for number, content in enumerate(found))

    def _questions(self, number: int, content: Mapping[str, Any] | None) -> int:
        if content is None:
            raise UsageError(
                "a finished part is missing or damaged.",
                where=str(self.file(_part(number), _FILE)),
                advice=f"Remove the folder {self.path} to begin anew.",
            )
        return int(content["questions"])

    def add(self, tables: Iterator[tuple[pa.Table, int]]) -> int:
        """Write the next part from its tables, each of which answers so many questions; how many they are in all.

        Nothing is left of a part where there are no tables.
        """
        first = next(tables, None)
        if first is None:
            return 0
        part, count = _part(self._parts), 0
        with (
            whole_file(self.file(part, _FILE), _GO_ON) as file,
            parquet.ParquetWriter(file, self._schema, compression="zstd") as writer,
        ):
            for table, size in chain([first], tables):
                writer.write_table(table)
                count += size
        self.keep(part, {"questions": count}, [_FILE])
        self._parts += 1
        return count

    def finish(self, metadata: Mapping[bytes, bytes]) -> int:
        """Join the parts to the output and remove the folder; how many rows there are."""
        rows, schema, joined = 0, self._schema.with_metadata(dict(metadata)), self.path / "joined.parquet"
        with whole_file(joined, _GO_ON) as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for number in range(self._parts):
                with parquet.ParquetFile(self.file(_part(number), _FILE)) as part:
                    for group in range(part.num_row_groups):
                        table = part.read_row_group(group)
                        rows += len(table)
                        writer.write_table(table.replace_schema_metadata(schema.metadata))
        with writing(self.out, "the answers", _GO_ON):
            joined.replace(self.out)
            flush(self.out.parent)
        self.remove()
        return rows


def _part(number: int) -> str:
    return f"part-{number:06d}"


BATCH = 16_384
"""Questions that are read and scored together."""

PART = 8
"""Batches in a part: what a kill may cost."""

_COUNTED = "questions"


@dataclass(frozen=True)
class Completion:
    """What a finished job did."""

    questions: int
    rows: int
    refused: int  # questions without an answer; their rows say why
    resumed_from: int  # questions that an earlier call had answered
    seconds: float  # of this call
    was_finished: bool  # whether there was nothing left to do

    @property
    def questions_per_second(self) -> float:
        """In this call, from the first question read to the last row written."""
        return (self.questions - self.resumed_from) / self.seconds if self.seconds > 0 else 0.0


def complete(
    predictor: Predictor,
    questions: Path,
    out: Path,
    options: CompletionOptions | None = None,
    *,
    on_error: OnBadQuestion = "stop",
    resume: bool = False,
    progress: Progress = SILENT,
    workers: SingleProcess | None = None,
) -> Completion:
    """Answers every question of a file into a Parquet file of `ANSWER_SCHEMA`, in the order of the questions.

    With "stop" all questions are read and resolved before the first is scored, and one that cannot be asked is a
    `UsageError` with its file and line; with "record" it becomes a row that says why. `resume` goes on with a job that
    was stopped; what is already there is refused where run, questions or options are others. The other processes of a
    `workers` call `assist`.
    """
    options, workers = options or CompletionOptions(), workers or SingleProcess()
    check_level(options.level)
    file = open_questions(questions)
    began = time.monotonic()
    job = job_of(predictor, questions, options, on_error)
    work = CompletionFolder(out, ANSWER_SCHEMA)
    if resume and not work.path.exists() and (done := finished(out, job)) is not None:
        workers.broadcast_text(FINISHED)
        return Completion(done, rows_in(out), refused_in(out), done, 0.0, True)
    answers = BatchAnswers(predictor, options)
    is_begun = work.is_begun(job)
    if is_begun and not resume:
        raise UsageError(
            "a job was stopped before it was done with this output.",
            where=str(work.path),
            advice="Say --resume to go on with it, or remove this folder to begin anew.",
        )
    counted = work.kept(_COUNTED) if is_begun else None
    if counted is None:
        counted = {"questions": _checked(file, answers, progress) if on_error == "stop" else 0}
    work.open(job)
    work.keep(_COUNTED, counted)
    total, before = int(counted["questions"]), work.answered()
    state = _State(before, total, progress)
    if total or not before:  # else nobody knows yet which share of the file was answered before
        state.add(0, 0.0)
    workers.broadcast_text(str(before))
    answered = answered_together(ahead(own_batches(file, answers, BATCH, before, workers)), answers, workers)
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
        share = None if self.total else share_read
        self.progress.update("answering", self.done, self.total or None, "questions", share=share)


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
    first: RefusedQuestion | None = None
    for written in file.batches(BATCH):
        refused = answers.checked(written, explain=False).refused
        if refused and first is None:
            first = answers.checked(written, explain=True).refused[0]
        count, bad = count + len(written), bad + len(refused)
        progress.update("checking", count, unit="questions", share=file.done())
    if first is not None:
        raise _refusal(file.path, first, bad, count)
    if not count:
        raise _no_questions(file.path)
    return count


def _refusal(path: Path, first: RefusedQuestion, bad: int, count: int) -> UsageError:
    place = f"{path}:{first.line}"
    advice = f"{first.problem.advice} Or say --on-error record: bad questions then become rows that say why.".strip()
    more = f" {bad:,} of {count:,} questions cannot be asked; this is the first." if bad > 1 else ""
    where = f"{place}, {first.problem.where}" if first.problem.where else place
    return UsageError(first.problem.what + more, where=where, advice=advice)


def _no_questions(path: Path) -> UsageError:
    return UsageError("the file holds no questions.", where=str(path), advice="Write one per line, or one per row.")


# Making the next items while the last ones are worked on.

Item = TypeVar("Item")

_WAITING = 2
"""Items that may lie ready: enough to keep both sides busy, few enough to keep memory bounded."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made by a thread of their own. What goes wrong there is raised here, in its place."""
    ready: queue.Queue[tuple[bool, Item | BaseException | None]] = queue.Queue(_WAITING)
    left = threading.Event()

    def make() -> None:
        try:
            for item in items:
                if not _put(ready, (True, item), left):
                    return
            _put(ready, (False, None), left)
        except BaseException as problem:  # noqa: BLE001 - raised again by whoever waits
            _put(ready, (False, problem), left)

    maker = threading.Thread(target=make, name="reading questions", daemon=True)
    maker.start()
    try:
        while True:
            is_item, found = ready.get()
            if is_item:
                yield found  # type: ignore[misc]
            elif isinstance(found, BaseException):
                raise found
            else:
                return
    finally:
        left.set()
        maker.join()


def _put(
    ready: queue.Queue[tuple[bool, Item | BaseException | None]],
    found: tuple[bool, Item | BaseException | None],
    left: threading.Event,
) -> bool:
    """Whether it was taken; not where nobody waits any more."""
    while not left.is_set():
        try:
            ready.put(found, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


# What a job of many questions is, so that a stopped one is resumed only if it is the same.

OnBadQuestion: TypeAlias = Literal["stop", "record"]
META = b"hynt-completion"


def job_of(
    predictor: Predictor, questions: Path, options: CompletionOptions, on_error: OnBadQuestion
) -> dict[str, Any]:
    """What must be the same for the parts of an output to belong together."""
    loaded = predictor.loaded
    weights = loaded.run.manifest["files"].get(WEIGHTS)
    return {
        "run": weights or f"unfinished, epoch {loaded.epoch}",
        **({} if loaded.home is None else {"graph": graph_fingerprints(loaded.graph)}),
        "calibration": predictor.calibration.to_mapping(loaded.graph.vocabulary),
        "questions": sha256_of(questions),
        "top": options.top,
        "level": options.level,
        "candidates": sorted(options.candidates),
        "on_error": on_error,
        "hynt": __version__,
    }


def metadata(job: dict[str, Any], predictor: Predictor, questions: int) -> dict[bytes, bytes]:
    """What travels in a finished output: how it was made, and how many questions it answers."""
    run = {**predictor.loaded.described(), "graph": predictor.graph.name}
    # Sorted: a calibration that was just made and one that was read from its file name their parts in another order.
    return {META: json.dumps({"job": job, "run": run, "questions": questions}, sort_keys=True).encode()}


def finished(out: Path, job: dict[str, Any]) -> int | None:
    """How many questions an output that is there already answers, where the same job made it."""
    if not out.is_file():
        return None
    try:
        meta = json.loads((parquet.read_schema(out).metadata or {})[META])
        return int(meta["questions"]) if meta["job"] == job else None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def rows_in(out: Path) -> int:
    """How many rows an output has."""
    return int(parquet.read_metadata(out).num_rows)


def refused_in(out: Path) -> int:
    """How many rows say why there is no answer: from the counts that Parquet keeps, without reading the rows."""
    meta = parquet.read_metadata(out)
    place = [meta.schema.column(number).path for number in range(meta.num_columns)].index("error")
    found = [meta.row_group(number).column(place) for number in range(meta.num_row_groups)]
    return sum(column.num_values - column.statistics.null_count for column in found)
