"""Files of questions: facts with one "?" in each, as JSON lines or Parquet, read batch by batch. No torch here.

A question is written as a fact is in the same format, with "?" where a name would stand: so a batch of questions is a
batch of facts with names, and its columns are those of the `parquet` format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from hynt.errors import UsageError
from hynt.graph.fact import Number

_VALUE = [("entity", pa.string()), ("number", pa.float64()), ("literal", pa.string()), ("unit", pa.string())]
PAIR = pa.struct([("relation", pa.string()), *_VALUE])
QUESTION_SCHEMA = pa.schema(
    [
        ("head", pa.string()),
        ("relation", pa.string()),
        *((f"tail_{name}", kind) for name, kind in _VALUE),
        ("qualifiers", pa.list_(PAIR)),
    ]
)


@dataclass(frozen=True)
class BadQuestion:
    """What is no question at all."""

    number: int  # among the questions of the file, from 1
    line: int  # its line or row, from 1
    problem: UsageError


@dataclass(frozen=True, eq=False)
class WrittenQuestions:
    """Some questions of a file as they were written."""

    columns: pa.RecordBatch  # of QUESTION_SCHEMA, (n,) questions
    numbers: pa.Array  # (n,) int64 which question of the file each is, from 1
    lines: pa.Array  # (n,) int64 its line, or row, from 1
    bad: tuple[BadQuestion, ...]  # what stood between them and could not be read

    def __len__(self) -> int:
        return len(self.numbers) + len(self.bad)

    def parts(self, row: int) -> tuple[Any, Any, Any, list[tuple[Any, Any]]]:
        """A question as `ask` takes it."""
        one: dict[str, Any] = {name: self.columns.column(name)[row].as_py() for name in QUESTION_SCHEMA.names}
        tail = _value({name: one[f"tail_{name}"] for name, _ in _VALUE}, "tail")
        pairs = [pair or {} for pair in one["qualifiers"] or ()]
        written = [
            (pair.get("relation"), _value(pair, f"value of qualifier {number}")) for number, pair in enumerate(pairs, 1)
        ]
        return one["head"], one["relation"], tail, written


class QuestionFile(Protocol):
    """A file that was found to hold questions."""

    path: Path

    def batches(self, size: int, skip: int = 0) -> Iterator[WrittenQuestions]:
        """The questions after the first `skip`, at most `size` at a time; together they are all, in order."""
        ...

    def done(self) -> float:
        """How much of the file has been read by the batches so far, from 0 to 1."""
        ...


def open_questions(path: Path) -> QuestionFile:
    """The file as its name says: `.parquet`, or `.jsonl` (also `.ndjson`, `.json`), which may be compressed."""
    from hynt.completion.question_files_jsonl import JsonLines
    from hynt.completion.question_files_parquet import ParquetQuestions

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"the file of questions {what}.", where=str(path), advice="Give a .jsonl or .parquet file.")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".bz2", ".zst"):
        endings.pop()
    if endings and endings[-1] in (".jsonl", ".ndjson", ".json"):
        return JsonLines(path)
    if endings and endings[-1] in (".parquet", ".pq") and path.suffix.lower() == endings[-1]:
        return ParquetQuestions(path)
    raise UsageError(
        "the name does not say what the file holds.",
        where=str(path),
        advice="Questions are read from .jsonl (also .jsonl.gz, .jsonl.zst) and .parquet files.",
    )


def _value(given: dict[str, Any], what: str) -> Any:
    """An entity's name, a `Number`, or None where there is nothing."""
    entity, number = given.get("entity"), given.get("number")
    if number is None:
        return entity
    if entity is not None:
        raise UsageError(
            f"the {what} has an entity and a number.",
            where=what,
            advice="Give one of the two, and leave the other null.",
        )
    literal = given.get("literal")
    return Number(number, repr(number) if literal is None else literal, given.get("unit") or "")
