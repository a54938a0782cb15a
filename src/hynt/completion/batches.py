"""One batch of written questions to rows of answers: encoded and checked, scored, named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.candidates import TYPE, UNKNOWN, CandidateMasks
from hynt.asking.columns import AskedFacts, NumberColumns, RankedColumns
from hynt.asking.encoding import QuestionEncoder
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import NO_CANDIDATE, non_finite, off_scale, too_few_numbers, unanswerable
from hynt.completion.question_files import FileBatch, QuestionFile, RefusedQuestion, open_questions
from hynt.distributed.worker_group import SingleProcess
from hynt.evaluation.metrics import answerable
from hynt.graph.fact_table import KIND_NAMES, NUMBER_KIND, RELATION_KIND
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.sentences import format_estimate
from hynt.graph.vocabulary import Ids
from hynt.models.contract import unpredictable


@dataclass(frozen=True)
class CompletionOptions:
    """What is asked of every question."""

    top: int = 10
    level: float = 0.9
    candidates: tuple[str, ...] = ()  # "type", "unknown", or both; numbers have no candidates and ignore it


@dataclass(frozen=True, eq=False)
class CheckedBatch:
    """Each question of a batch can be answered, or is refused."""

    asked: AskedFacts
    number: Ids  # (n,) of the questions asked
    refused: list[RefusedQuestion]  # in the order of their numbers


class BatchAnswers:
    """Answers batches of one file with one run."""

    def __init__(self, predictor: Predictor, options: CompletionOptions) -> None:
        self._predictor, self._options = predictor, options
        loaded = predictor.loaded
        self._encoder = QuestionEncoder(loaded.graph, predictor.names)
        self._rows = AnswerRows(loaded.graph, predictor.known, loaded.training_ranges)

    def checked(self, batch: FileBatch, *, explain: bool) -> CheckedBatch:
        """Resolves names and numbers. With `explain` a name that nobody knows is refused with the nearest ones."""
        loaded = self._predictor.loaded
        encoded = self._encoder.encode(batch.questions, loaded.scaling, explain=explain)
        problems, asked = encoded.refused, encoded.asked
        cannot = ~answerable(loaded.model, asked.position, asked.kind)
        for at in np.flatnonzero(cannot).tolist():
            problems[int(encoded.row[at])] = unanswerable(loaded, int(asked.position[at]), int(asked.kind[at]))
        unscaled = ~cannot & (asked.kind == NUMBER_KIND) & unpredictable(loaded.model, asked.relation)
        for at in np.flatnonzero(unscaled).tolist():
            problems[int(encoded.row[at])] = too_few_numbers(loaded, int(asked.relation[at]))
        cannot |= unscaled
        owner = asked.owners()
        for row, problem in off_scale(loaded, asked.table):
            cannot[owner[row]] = True
            problems.setdefault(int(encoded.row[owner[row]]), problem)
        fine = np.flatnonzero(~cannot).astype(np.int64)
        refused = [
            RefusedQuestion(int(batch.numbers[row]), int(batch.lines[row]), problem)
            for row, problem in problems.items()
        ]
        refused += batch.bad
        refused.sort(key=lambda one: one.number)
        kept = asked if len(fine) == len(asked) else asked.take(fine)
        return CheckedBatch(kept, batch.numbers[encoded.row[fine]], refused)

    def answered(self, batch: CheckedBatch) -> pa.Table:
        """The rows of a batch, in the order of its questions; a refused question is a row that says why."""
        asked, options = batch.asked, self._options
        errors = [(one.number, str(one.problem)) for one in batch.refused]
        tables = []
        answering = self._predictor.question_batch(asked)
        numeric = np.flatnonzero(asked.kind == NUMBER_KIND).astype(np.int64)
        if len(numeric) < len(asked):
            allowed = self._allowed(asked).without_held(self._predictor.stored_facts, asked)
            ranked = answering.ranked(allowed, options.top)
            self._refuse_non_finite(ranked.is_finite, batch.number)
            tables.append(self._rows.ranked(asked, batch.number, ranked))
            empty = (ranked.count == 0) & (asked.kind != NUMBER_KIND)
            errors += [(number, f"candidates: {NO_CANDIDATE}") for number in batch.number[empty].tolist()]
        if len(numeric):
            numbers = answering.numbers(numeric, options.level)
            self._refuse_non_finite(numbers.is_finite, batch.number[numeric])
            tables.append(self._rows.numbers(batch.number[numeric], asked.relation[numeric], numbers))
        return in_order([*tables, self._rows.errors(errors)])

    # ------------------------------------------------------------------ how

    def _refuse_non_finite(self, is_finite: NDArray[np.bool_], number: Ids) -> None:
        if not is_finite.all():
            raise non_finite(self._predictor.loaded, f"question {int(number[np.flatnonzero(~is_finite)[0]])}")

    def _allowed(self, asked: AskedFacts) -> CandidateMasks:
        rules = self._options.candidates
        count = len(asked)
        only_unknown = np.full(count, UNKNOWN in rules, dtype=np.bool_)
        if TYPE not in rules:
            return CandidateMasks((), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_), only_unknown)
        seen = self._predictor.graph.seen_in_training
        places, list_of = np.unique(seen.keys(asked.position, asked.relation), return_inverse=True)
        start, size = seen.spans(places)
        lists = [seen.value[first : first + length] for first, length in zip(start, size, strict=True)]
        return CandidateMasks(lists, list_of.astype(np.int64), np.ones(count, dtype=np.bool_), only_unknown)


# Answers in columns to rows of a Parquet file: one row per answer, question by question, best first.

ANSWER_SCHEMA = pa.schema(
    [
        pa.field("question", pa.int64(), nullable=False),  # its number in the file, from 1
        ("kind", pa.string()),  # entity, relation or number; null for an error
        ("rank", pa.int32()),  # from 1; null for an error
        ("id", pa.string()),  # of the entity or relation
        ("label", pa.string()),
        ("probability", pa.float64()),  # calibrated, among the candidates
        ("value", pa.float64()),  # of a number, in its unit; decimal years for dates
        ("text", pa.string()),  # the number for people: 1,990, 88.2 years, 1922-01-28
        ("unit", pa.string()),
        ("low", pa.float64()),  # of the interval
        ("high", pa.float64()),
        ("known", pa.list_(pa.string())),  # the splits that hold this answer; of a number, those that hold any
        ("known_value", pa.float64()),  # the known number nearest to the answer
        ("error", pa.string()),  # why there is no answer
    ]
)


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Makes rows for one graph."""

    graph: KnowledgeGraph
    known: KnownAnswers
    ranges: Mapping[int, tuple[float, float]]  # of each relation's known numbers

    @cached_property
    def _names(self) -> tuple[pa.Array, pa.Array]:
        """Ids and labels: those of all entities, and then of all relations."""
        graph = self.graph
        ids = [*graph.vocabulary.entities, *(relation.name for relation in graph.relations)]
        return pa.array(ids, pa.string()), pa.array([*graph.entity_labels, *graph.relation_labels], pa.string())

    @cached_property
    def _splits(self) -> pa.Array:
        """For every set of splits, as bits, their names."""
        sets = [list(self.known.split_names(bits)) for bits in range(1 << len(self.known.splits))]
        return pa.array(sets, pa.list_(pa.string()))

    @cached_property
    def _units(self) -> pa.Array:
        return pa.array([relation.unit for relation in self.graph.relations], pa.string())

    def ranked(self, asked: AskedFacts, number: Ids, found: RankedColumns) -> pa.Table:
        """Rows of entities and relations; `number` (n,) is the number of each question."""
        owner = found.owner()
        kind = asked.kind[owner]
        rank = np.arange(len(owner), dtype=np.int32) - found.offsets[:-1][owner].astype(np.int32) + np.int32(1)
        place = pa.array(found.candidate + np.where(kind == RELATION_KIND, self.graph.vocabulary.entity_count, 0))
        ids, labels = self._names
        return _table(
            len(owner),
            question=pa.array(number[owner]),
            kind=_KINDS.take(pa.array(kind)),
            rank=pa.array(rank),
            id=ids.take(place),
            label=labels.take(place),
            probability=pa.array(found.probability),
            known=self._splits.take(pa.array(found.splits)),
        )

    def numbers(self, number: Ids, relation: Ids, found: NumberColumns) -> pa.Table:
        """Rows of numbers; `number` (n,) and `relation` (n,) of each question."""
        without = ~found.has_interval
        bits, nearest, has_known = _nearest(found.known, found.value)
        units = self._units.take(pa.array(relation))
        texts = [
            format_estimate(value, self.graph.relations[one].unit, ends if is_known else None, self.ranges.get(one))
            for value, one, ends, is_known in zip(
                found.value.tolist(),
                relation.tolist(),
                zip(found.low.tolist(), found.high.tolist(), strict=True),
                found.has_interval.tolist(),
                strict=True,
            )
        ]
        return _table(
            len(number),
            question=pa.array(number),
            kind=_KINDS.take(pa.array(np.full(len(number), NUMBER_KIND))),
            rank=pa.array(np.ones(len(number), dtype=np.int32)),
            value=pa.array(found.value),
            text=pa.array(texts, pa.string()),
            unit=units,
            low=pa.array(found.low, mask=without),
            high=pa.array(found.high, mask=without),
            known=self._splits.take(pa.array(bits)),
            known_value=pa.array(nearest, mask=~has_known),
        )

    def errors(self, problems: Sequence[tuple[int, str]]) -> pa.Table:
        """A row for each question, by its number, that has no answer."""
        numbers, texts = zip(*problems, strict=True) if problems else ((), ())
        return _table(len(problems), question=pa.array(numbers, pa.int64()), error=pa.array(texts, pa.string()))


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows by question; those of one question stay as they are."""
    joined = pa.concat_tables(tables).combine_chunks()
    order = np.argsort(joined["question"].to_numpy(), kind="stable")
    return joined.take(pa.array(order))


def _nearest(
    known: AnswerLists, value: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
    """(n,) the splits that hold a known number, (n,) the known number nearest to each value, (n,) whether there is."""
    has_known = np.diff(known.offsets) > 0
    bits, nearest = np.zeros(len(value), dtype=np.uint8), np.zeros(len(value))
    if has_known.any():
        owner = known.question()
        bits[has_known] = np.bitwise_or.reduceat(known.splits, known.offsets[:-1][has_known])
        order = np.lexsort((np.abs(known.answers - value[owner]), owner))
        nearest[has_known] = known.answers[order[known.offsets[:-1][has_known]]]
    return bits, nearest, has_known


def _table(rows: int, **columns: pa.Array) -> pa.Table:
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in ANSWER_SCHEMA]
    return pa.table(arrays, schema=ANSWER_SCHEMA)


_KINDS = pa.array(KIND_NAMES, pa.string())


# Answering a file in several processes: batches go round, and the first process puts the answers in order.
#
# All read the file; each resolves and scores every so many-th batch, and sends its rows to the first, which alone
# writes. A batch is scored as in one process, so the output is the same to the last byte.

Batch = tuple[CheckedBatch | None, int, float]
"""A batch that this process answers, or None where another does; its questions; the share of the file read by then."""


def own_batches(
    file: QuestionFile, answers: BatchAnswers, size: int, skip: int, workers: SingleProcess
) -> Iterator[Batch]:
    """All batches of a file, resolved where this process answers them."""
    for index, written in enumerate(file.batches(size, skip)):
        share = file.done()
        is_own = index % workers.world == workers.rank
        yield answers.checked(written, explain=False) if is_own else None, len(written), share


def answered_together(
    batches: Iterator[Batch], answers: BatchAnswers, workers: SingleProcess
) -> Iterator[tuple[pa.Table, int, float]]:
    """The rows of every batch, in the order of the file; on all processes but the first, nothing."""
    while group := list(islice(batches, workers.world)):
        own = group[workers.rank][0] if workers.rank < len(group) else None
        table = None if own is None else answers.answered(own)
        if workers.world == 1:
            assert table is not None
            yield table, group[0][1], group[0][2]
            continue
        sent = workers.collected(b"" if table is None else _packed(table))
        for data, (_, count, share) in zip(sent, group, strict=False):
            yield _unpacked(data), count, share


def assist(
    predictor: Predictor, questions: Path, options: CompletionOptions, size: int, workers: SingleProcess
) -> None:
    """What every process but the first does: it answers its batches until the file is done."""
    word = workers.broadcast_text()
    if word == FINISHED:
        return
    answers = BatchAnswers(predictor, options)
    batches = own_batches(open_questions(questions), answers, size, int(word), workers)
    for _ in answered_together(batches, answers, workers):
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
