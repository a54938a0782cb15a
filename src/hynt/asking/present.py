"""Answers in columns, with names, texts and what a reader should know beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hynt.asking.answers import NEW_FROM, Answer, Answers, KnownNumber, MissingQualifier, NumberAnswer, RankedAnswer
from hynt.asking.columns import AskedFact, NumberColumns, RankedColumns
from hynt.calibration.calibration import Calibration
from hynt.graph.fact_table import ENTITY_KIND, KIND_NAMES, RELATION_KIND, concatenate
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.sentences import format_quantity
from hynt.models.contract import Part
from hynt.runs.opening import LoadedRun


@dataclass(frozen=True, eq=False)
class AnswerBuilder:
    """What turns a run's columns into `Answers`."""

    loaded: LoadedRun
    calibration: Calibration
    known: KnownAnswers

    def ranked(self, asked: AskedFact, columns: RankedColumns, number: int, held: frozenset[int]) -> Answers:
        """The answers to question `number` of the columns; those that the graph holds in any form are `held`."""
        here = slice(int(columns.offsets[number]), int(columns.offsets[number + 1]))
        ids, labels = self._relation_names if asked.kind == RELATION_KIND else self._entity_names
        rows = zip(
            columns.candidate[here].tolist(),
            columns.probability[here].tolist(),
            columns.score[here].tolist(),
            columns.splits[here].tolist(),
            strict=True,
        )
        found = tuple(
            RankedAnswer(
                rank,
                ids[one],
                labels[one],
                probability,
                score,
                self.known.split_names(bits),
                new=not bits and one not in held and probability >= NEW_FROM,
            )
            for rank, (one, probability, score, bits) in enumerate(rows, 1)
        )
        return self._answers(
            asked, found, int(columns.count[number]), "link" if asked.kind == ENTITY_KIND else "relation"
        )

    def number(self, asked: AskedFact, columns: NumberColumns, number: int, level: float) -> Answers:
        """The answer to question `number` of the columns."""
        assert asked.relation is not None
        interval, source = None, ""
        if columns.has_interval[number]:
            interval = (float(columns.low[number]), float(columns.high[number]))
            source = "this relation" if columns.is_own[number] else "all relations"
        here = slice(int(columns.known.offsets[number]), int(columns.known.offsets[number + 1]))
        known = tuple(
            KnownNumber(value, self.known.split_names(bits))
            for value, bits in zip(
                columns.known.answers[here].tolist(), columns.known.splits[here].tolist(), strict=True
            )
        )
        unit, reach = self.loaded.graph.relations[asked.relation].unit, self.training_ranges.get(asked.relation)
        answer = NumberAnswer(float(columns.value[number]), unit, interval, level, source, reach, known)
        return self._answers(asked, (answer,), 0, "number")

    @cached_property
    def training_ranges(self) -> dict[int, tuple[float, float]]:
        """The least and greatest training number of each relation."""
        graph = self.loaded.graph
        trained_on = concatenate([graph.split(name) for name in self.loaded.known_splits])
        numbers = sorted_numbers(trained_on, graph.vocabulary.relation_is_number)
        least, most = numbers.value[numbers.start], numbers.value[numbers.start + numbers.size - 1]
        return dict(zip(numbers.present.tolist(), zip(least.tolist(), most.tolist(), strict=True), strict=True))

    @cached_property
    def _entity_names(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.loaded.graph.vocabulary.entities, self.loaded.graph.entity_labels

    @cached_property
    def _relation_names(self) -> tuple[Sequence[str], Sequence[str]]:
        return [relation.name for relation in self.loaded.graph.relations], self.loaded.graph.relation_labels

    def _answers(self, asked: AskedFact, answers: tuple[Answer, ...], count: int, task: str) -> Answers:
        calibration, notes = self.calibration, []
        fitted = calibration.radii is not None if task == "number" else task in calibration.tasks
        if not fitted:
            reason = calibration.missing or "the validation split asks nothing of the kind"
            what = "there is no interval" if task == "number" else "probabilities are not calibrated"
            notes.append(f"{what}: {reason}")
        if not self.loaded.is_finished:
            notes.append(f"training is not finished; these are the weights of epoch {self.loaded.epoch}")
        missing = self._missing(asked)
        for one in missing:
            what = "there is no interval" if task == "number" else "probabilities may be off"
            told = f"{one.share:.0%} of the {one.facts:,} stored facts of this relation say {one.name}"
            notes.append(f"{what}: {told}, and the question does not; ask with {one.name}={one.offered}")
        if asked.table.qualifier_total and Part.QUALIFIERS not in self.loaded.model.reads:
            notes.append("this model does not look at qualifiers")
        if fitted and self.loaded.changed:
            notes.append(
                f"{self.loaded.changed:.1%} of the facts have changed since probabilities were fitted; "
                "`hynt train GRAPH --from RUN` fits them anew"
            )
        alike = _alike(answers) if Part.OBSERVED_FACTS in self.loaded.model.reads else None
        if alike is not None:
            notes.append(
                f"the model cannot tell {alike[0]} and {alike[1]} apart by their facts: their order says nothing"
            )
        kind = KIND_NAMES[asked.kind]
        return Answers(asked.text, asked.place, kind, answers, count, fitted, tuple(notes), missing=missing)

    def _missing(self, asked: AskedFact) -> tuple[MissingQualifier, ...]:
        graph, usual = self.loaded.graph, self.loaded.usual_qualifiers
        found = []
        for pair in usual.lacking(asked.table, 0, asked.position).tolist():
            index, value = int(usual.key[pair]) % usual.relations, usual.common[pair]
            named = graph.relations[index]
            offered = format_quantity(value, named.unit) if named.kind == "number" else graph.entity_labels[int(value)]
            label = graph.relation_labels[index]
            found.append(MissingQualifier(named.name, label, float(usual.share[pair]), int(usual.facts[pair]), offered))
        return tuple(found)


def _alike(answers: tuple[Answer, ...]) -> tuple[str, str] | None:
    """The first two neighbours that have the same score, up to the rounding of sums."""
    ranked = [one for one in answers if isinstance(one, RankedAnswer)]
    for one, other in pairwise(ranked):
        if math.isclose(one.score, other.score, rel_tol=1e-6, abs_tol=1e-7):
            return one.name, other.name
    return None
