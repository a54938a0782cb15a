"""One batch of written questions to rows of answers: encoded and checked, scored, named."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hynt.asking.asked_facts import AskedFacts
from hynt.asking.candidate_masks import AllowedAnswers
from hynt.asking.candidate_rules import TYPE, UNKNOWN
from hynt.asking.predictor import Predictor
from hynt.asking.refusals import NO_CANDIDATE, answerable, non_finite, off_scale, unanswerable
from hynt.completion.columns import AnswerRows, in_order
from hynt.completion.encoding import QuestionEncoder
from hynt.completion.question_files import WrittenQuestions
from hynt.errors import UsageError
from hynt.evaluation.type_constraints import TypeConstraints, places
from hynt.graph.components import NUMBER_KIND, RELATION, RELATION_KIND, components

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Wanted:
    """What is asked of every question."""

    top: int = 10
    level: float = 0.9
    candidates: tuple[str, ...] = ()  # "type", "unknown", or both; numbers have no candidates and ignore it


@dataclass(frozen=True)
class Refused:
    """A question that cannot be asked."""

    number: int  # among the questions of the file, from 1
    line: int  # its line or row, from 1
    problem: UsageError


@dataclass(frozen=True, eq=False)
class CheckedBatch:
    """Each question of a batch can be answered, or is refused."""

    asked: AskedFacts
    number: Ids  # (n,) of the questions asked
    refused: list[Refused]  # in the order of their numbers


class BatchAnswers:
    """Answers batches of one file with one run."""

    def __init__(self, predictor: Predictor, wanted: Wanted) -> None:
        self._predictor, self._wanted = predictor, wanted
        loaded = predictor.loaded
        self._encoder = QuestionEncoder(loaded.graph, predictor.names, loaded.scaling)
        self._rows = AnswerRows(loaded.graph, predictor.known)

    def checked(self, written: WrittenQuestions, *, explain: bool) -> CheckedBatch:
        """Resolves names and numbers. With `explain` a name that nobody knows is refused with the nearest ones."""
        loaded = self._predictor.loaded
        encoded = self._encoder.encode(written, explain=explain)
        numbers, lines = written.numbers.to_numpy(), written.lines.to_numpy()
        problems = dict(encoded.refused)
        asked = encoded.asked
        cannot = ~answerable(loaded, asked.position, asked.kind)
        for at in np.flatnonzero(cannot).tolist():
            problems[int(encoded.row[at])] = unanswerable(loaded, int(asked.position[at]), int(asked.kind[at]))
        owner = asked.owners()
        for row, problem in off_scale(loaded, asked.table):
            cannot[owner[row]] = True
            problems.setdefault(int(encoded.row[owner[row]]), problem)
        fine = np.flatnonzero(~cannot).astype(np.int64)
        refused = [Refused(bad.number, bad.line, bad.problem) for bad in written.bad]
        refused += [Refused(int(numbers[row]), int(lines[row]), problem) for row, problem in problems.items()]
        refused.sort(key=lambda one: one.number)
        kept = asked if len(fine) == len(asked) else asked.take(fine)
        return CheckedBatch(kept, numbers[encoded.row[fine]], refused)

    def answered(self, batch: CheckedBatch) -> pa.Table:
        """The rows of a batch, in the order of its questions; a refused question is a row that says why."""
        asked, wanted = batch.asked, self._wanted
        errors = [(one.number, str(one.problem)) for one in batch.refused]
        tables = []
        answering = self._predictor.answering(asked)
        numeric = np.flatnonzero(asked.kind == NUMBER_KIND).astype(np.int64)
        if len(numeric) < len(asked):
            ranked = answering.ranked(self._allowed(asked), wanted.top)
            self._refuse_non_finite(ranked.is_finite, batch.number)
            tables.append(self._rows.ranked(asked, batch.number, ranked))
            empty = (ranked.count == 0) & (asked.kind != NUMBER_KIND)
            errors += [(number, f"candidates: {NO_CANDIDATE}") for number in batch.number[empty].tolist()]
        if len(numeric):
            numbers = answering.numbers(numeric, wanted.level)
            self._refuse_non_finite(numbers.is_finite, batch.number[numeric])
            tables.append(self._rows.numbers(batch.number[numeric], asked.relation[numeric], numbers))
        return in_order([*tables, self._rows.errors(errors)])

    # ------------------------------------------------------------------ how

    def _refuse_non_finite(self, is_finite: NDArray[np.bool_], number: Ids) -> None:
        if not is_finite.all():
            raise non_finite(self._predictor.loaded, f"question {int(number[np.flatnonzero(~is_finite)[0]])}")

    def _allowed(self, asked: AskedFacts) -> AllowedAnswers:
        wishes = self._wanted.candidates
        count = len(asked)
        only_unknown = np.full(count, UNKNOWN in wishes, dtype=np.bool_)
        if TYPE not in wishes:
            return AllowedAnswers((), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_), only_unknown)
        seen, constraints = self._seen
        place = places(asked.relation, asked.position)
        at = np.minimum(np.searchsorted(constraints.place, place), len(constraints.place) - 1)
        list_of = np.where(constraints.place[at] == place, at, len(seen) - 1)  # the last list is empty
        of_relations = len(seen) - 3 + (asked.position != RELATION)
        list_of = np.where(asked.kind == RELATION_KIND, of_relations, list_of)
        return AllowedAnswers(seen, list_of, np.ones(count, dtype=np.bool_), only_unknown)

    @cached_property
    def _seen(self) -> tuple[list[Ids], TypeConstraints]:
        """What train holds: entities at each place, relations of triplets, of qualifiers; and an empty list."""
        graph = self._predictor.graph
        train, vocabulary = graph.split("train"), graph.vocabulary
        found = TypeConstraints.build(components(train, vocabulary.relation_is_number), vocabulary.entity_count)
        ends = found.offsets.tolist()
        lists = [found.entities[first:end] for first, end in pairwise(ends)]
        lists += [np.unique(train.relation).astype(np.int64), np.unique(train.qualifier_relation).astype(np.int64)]
        return [*lists, np.zeros(0, dtype=np.int64)], found
