"""Answering a file in several processes: batches go round, and the first process puts the answers in order.

All read the file; each resolves and scores every so many-th batch, and sends its rows to the first, which alone writes.
A batch is scored as in one process, so the output is the same to the last byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from hynt.asking.predictor import Predictor
from hynt.completion.batches import BatchAnswers, CheckedBatch, Wanted
from hynt.completion.question_files import QuestionFile, open_questions
from hynt.distributed.worker_group import Alone

Batch = tuple[CheckedBatch | None, int, float]
"""A batch that this process answers, or None where another does; its questions; the share of the file read by then."""


def own_batches(file: QuestionFile, answers: BatchAnswers, size: int, skip: int, team: Alone) -> Iterator[Batch]:
    """All batches of a file, resolved where this process answers them."""
    for index, written in enumerate(file.batches(size, skip)):
        share = file.done()
        is_own = index % team.world == team.rank
        yield answers.checked(written, explain=False) if is_own else None, len(written), share


def answered_together(
    batches: Iterator[Batch], answers: BatchAnswers, team: Alone
) -> Iterator[tuple[pa.Table, int, float]]:
    """The rows of every batch, in the order of the file; on all processes but the first, nothing."""
    while group := list(islice(batches, team.world)):
        own = group[team.rank][0] if team.rank < len(group) else None
        table = None if own is None else answers.answered(own)
        if team.world == 1:
            assert table is not None
            yield table, group[0][1], group[0][2]
            continue
        sent = team.collected(b"" if table is None else _packed(table))
        for data, (_, count, share) in zip(sent, group, strict=False):
            yield _unpacked(data), count, share


def assist(predictor: Predictor, questions: Path, wanted: Wanted, size: int, team: Alone) -> None:
    """What every process but the first does: it answers its batches until the file is done."""
    word = team.told()
    if word == FINISHED:
        return
    answers = BatchAnswers(predictor, wanted)
    batches = own_batches(open_questions(questions), answers, size, int(word), team)
    for _ in answered_together(batches, answers, team):
        pass


FINISHED = "finished"
"""What the first process says where there is nothing to do; else how many questions are answered already."""


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().combine_chunks()
