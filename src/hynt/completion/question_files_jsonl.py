"""Questions as JSON lines, in the project's own form: {"head": "Japan", "relation": "capital", "tail": "?"}."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hynt.completion.question_files import PAIR, QUESTION_SCHEMA, BadQuestion, WrittenQuestions
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats import jsonl
from hynt.formats.format import ReadOptions
from hynt.formats.report import ReadReport
from hynt.graph.fact import Fact, Number


@dataclass
class _Lines(ReadReport):
    """A report that keeps each rejected line until it is asked for, not only the first few."""

    waiting: list[tuple[int, RecordProblem]] = field(default_factory=list)

    def reject(self, problem: RecordProblem, *, where: str = "") -> None:
        super().reject(problem, where=where)
        self.waiting.append((self.line, problem))


class JsonLines:
    """A file of one question a line; blank lines are none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = max(1, path.stat().st_size)
        self._report = _Lines()

    def done(self) -> float:
        """By the bytes taken from the file."""
        return min(1.0, self._report.bytes_read / self._size)

    def batches(self, size: int, skip: int = 0) -> Iterator[WrittenQuestions]:
        """Memory holds one batch. Lines that are skipped are parsed, and nothing more."""
        self._report = _Lines()
        facts: list[Fact] = []
        numbers: list[int] = []
        lines: list[int] = []
        bad: list[BadQuestion] = []
        count = 0

        def batch() -> WrittenQuestions:
            made = WrittenQuestions(
                _columns(facts), pa.array(numbers, pa.int64()), pa.array(lines, pa.int64()), tuple(bad)
            )
            for each in (facts, numbers, lines, bad):
                each.clear()
            return made

        for fact in self._facts():
            rejected, self._report.waiting = self._report.waiting, []
            for line, problem in rejected:  # they stand before the fact
                count += 1
                if count > skip:
                    bad.append(BadQuestion(count, line, UsageError(problem.what, advice=problem.advice)))
                    if len(facts) + len(bad) == size:
                        yield batch()
            if fact is None:
                break
            count += 1
            if count > skip:
                facts.append(fact)
                numbers.append(count)
                lines.append(self._report.line)
                if len(facts) + len(bad) == size:
                    yield batch()
        if facts or bad:
            yield batch()

    def _facts(self) -> Iterator[Fact | None]:
        """The facts, and at the end None, so that what was rejected last is seen."""
        try:
            yield from jsonl.read_facts(self.path, ReadOptions(), self._report)
        except DataError as problem:  # a file that breaks off, a line without end: wrong input, as a bad question is
            raise UsageError(problem.what, where=problem.where, advice=problem.advice) from None
        yield None


def _columns(facts: Sequence[Fact]) -> pa.RecordBatch:
    """Facts as a batch of QUESTION_SCHEMA."""
    pairs = [pair for fact in facts for pair in fact.qualifiers]
    offsets = np.zeros(len(facts) + 1, dtype=np.int32)
    np.cumsum([len(fact.qualifiers) for fact in facts], out=offsets[1:])
    relations = pa.array([pair.relation for pair in pairs], pa.string())
    values = pa.StructArray.from_arrays([relations, *_values([pair.value for pair in pairs])], fields=list(PAIR))
    return pa.record_batch(
        [
            pa.array([fact.head for fact in facts], pa.string()),
            pa.array([fact.relation for fact in facts], pa.string()),
            *_values([fact.tail for fact in facts]),
            pa.ListArray.from_arrays(pa.array(offsets), values),
        ],
        schema=QUESTION_SCHEMA,
    )


def _values(values: Sequence[Any]) -> list[pa.Array]:
    """Entities, numbers, literals and units."""
    numbers = [value if value.__class__ is Number else None for value in values]
    return [
        pa.array([None if value.__class__ is Number else value for value in values], pa.string()),
        pa.array([None if one is None else one.value for one in numbers], pa.float64()),
        pa.array([None if one is None else one.literal for one in numbers], pa.string()),
        pa.array([None if one is None else one.unit for one in numbers], pa.string()),
    ]
