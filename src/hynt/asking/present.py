"""Answers in columns, with names, texts and what a reader should know beside them.

First in every answer comes what the graph holds for the question, judged by the model. One that reads observed facts
would find a stored answer by reading it. It is asked again with the facts that hold the answer left out, with their
folds, so its rank means what a held-out rank means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from hynt.asking.answering import QuestionBatch
from hynt.asking.answers import (
    HARDLY,
    NEW_FROM,
    Answer,
    Answers,
    KnownNumber,
    MissingQualifier,
    NumberAnswer,
    RankedAnswer,
    StoredAnswer,
)
from hynt.asking.candidates import CandidateMasks
from hynt.asking.columns import AskedFact, NumberColumns, RankedColumns, Standing
from hynt.calibration.calibration import Calibration
from hynt.graph.fact import DATE_UNIT, Fact, Number, Value
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    HEAD,
    KIND_NAMES,
    NUMBER_KIND,
    POSITION_GROUPS,
    RELATION,
    RELATION_KIND,
    TAIL,
    qualifier_of,
)
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers, StoredFact, StoredFacts
from hynt.graph.sentences import Sentences, format_quantity, format_stored, pair_texts
from hynt.graph.vocabulary import Ids
from hynt.models.contract import Part
from hynt.runs.journal import AddedFacts
from hynt.runs.observing import folds_of, without_folds
from hynt.runs.opening import LoadedRun


@dataclass(frozen=True, eq=False)
class AnswerBuilder:
    """What turns a run's columns into `Answers`."""

    loaded: LoadedRun
    calibration: Calibration
    known: KnownAnswers

    def ranked(self, asked: AskedFact, columns: RankedColumns, number: int, stored: Sequence[HeldAnswer]) -> Answers:
        """The answers to question `number` of the columns; the graph holds those `stored`, in any form."""
        held = frozenset(int(one.answer) for one in stored)
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
        task = "link" if asked.kind == ENTITY_KIND else "relation"
        return self._answers(asked, found, int(columns.count[number]), task, stored)

    def number(
        self, asked: AskedFact, columns: NumberColumns, number: int, level: float, stored: Sequence[HeldAnswer]
    ) -> Answers:
        """The answer to question `number` of the columns; the graph holds those `stored`."""
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
        unit, reach = self.loaded.graph.relations[asked.relation].unit, self.loaded.training_ranges.get(asked.relation)
        answer = NumberAnswer(float(columns.value[number]), unit, interval, level, source, reach, known)
        return self._answers(asked, (answer,), 0, "number", stored)

    @cached_property
    def _entity_names(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.loaded.graph.vocabulary.entities, self.loaded.graph.entity_labels

    @cached_property
    def _relation_names(self) -> tuple[Sequence[str], Sequence[str]]:
        return [relation.name for relation in self.loaded.graph.relations], self.loaded.graph.relation_labels

    def _answers(
        self, asked: AskedFact, answers: tuple[Answer, ...], count: int, task: str, stored: Sequence[HeldAnswer]
    ) -> Answers:
        calibration, notes = self.calibration, []
        fitted = calibration.radii is not None if task == "number" else task in calibration.tasks
        if not fitted:
            reason = calibration.missing or "the validation split asks nothing of the kind"
            what = "there is no interval" if task == "number" else "probabilities are not calibrated"
            notes.append(f"{what}: {reason}")
        if not self.loaded.is_finished:
            notes.append(f"training is not finished; these are the weights of epoch {self.loaded.epoch}")
        unlike = tuple(self._unlike(asked))
        missing, subject = ((), "") if unlike else self._missing(asked, stored)  # no qualifier would help it
        what = "there is no interval" if task == "number" else "probabilities may be off"
        odd = (*unlike, *_told_missing(missing, subject), *self._unheard(asked), *self._beyond(asked))
        if fitted and not odd and any(isinstance(one, NumberAnswer) and one.interval is None for one in answers):
            odd = ("too few numbers were held out of training to check answers like this",)
        notes += [f"{what}: {told}" for told in odd]
        off = None if task == "number" else calibration.still_off(task, asked.position)
        if off is not None:
            notes.append(
                f"probabilities may be off: those of held-out questions like this are, by {off:.2f} on average"
            )
        if count == 1:
            notes.append("nothing else was a candidate: the probability says nothing")
        if asked.table.qualifier_total and Part.QUALIFIERS not in self.loaded.model.reads:
            notes.append("this model does not look at qualifiers")
        if fitted and self.loaded.changed >= _CHANGED:
            share = self.loaded.changed
            what = f"{share:.1%} of the facts" if share <= 1 else "more facts than there were"
            notes.append(
                f"{what} have changed since probabilities were fitted; training on from this run fits them anew"
            )
        alike = _alike(answers) if Part.OBSERVED_FACTS in self.loaded.model.reads else ""
        if alike:
            notes.append(
                f"the model cannot tell {alike} apart by their facts: their order says nothing, "
                "until a fact is added that one of them lacks"
            )
        kind = KIND_NAMES[asked.kind]
        return Answers(asked.text, asked.place, kind, answers, count, fitted, tuple(notes), missing=missing)

    def _missing(self, asked: AskedFact, stored: Sequence[HeldAnswer]) -> tuple[tuple[MissingQualifier, ...], str]:
        """What the question lacks, and the relation that says so: of a question for it, the first that is stored."""
        graph, usual = self.loaded.graph, self.loaded.usual_qualifiers
        table, position, subject = asked.table.take(np.zeros(1, dtype=np.int64)), asked.position, "this relation"
        if asked.kind == RELATION_KIND and position == RELATION and stored:
            stored, relation = stored[:1], int(stored[0].answer)
            table, position = replace(table, relation=np.array([relation], dtype=table.relation.dtype)), HEAD
            subject = graph.relation_labels[relation]
        lacking = usual.lacking(table, 0, position).tolist()
        facts = [fact for one in stored for fact in one.facts] if lacking else []
        learned = [fact for fact in facts if fact.split in self.loaded.known_splits]
        facts = (learned or facts)[:_LOOKED_AT]  # what training has is what errors were measured on
        pairs = [pair for fact in facts for pair in _fact(fact, graph).qualifiers]
        found = []
        for pair in lacking:
            index, value = int(usual.key[pair]) % usual.relations, usual.common[pair]
            named = graph.relations[index]
            offered = _commonest([value for relation, value in pairs if relation == named.name])
            if isinstance(offered, Number):
                text = format_stored(offered)
            elif offered is not None:
                text = Sentences(graph).entity(offered)
            elif value is None or any(relation == named.name for relation, _ in pairs):
                text = ""
            else:
                text = format_quantity(value, named.unit) if named.kind == "number" else graph.entity_labels[int(value)]
            label = graph.relation_labels[index]
            found.append(MissingQualifier(named.name, label, float(usual.share[pair]), int(usual.facts[pair]), text))
        return tuple(found), subject

    def _unlike(self, asked: AskedFact) -> Iterator[str]:
        """Which entity of the question is of another kind than those that stand there, in words."""
        graph = self.loaded.graph
        for one in self.loaded.entity_kinds.told(asked.table, 0, asked.position):
            name, relation = graph.entity_labels[one.entity], graph.relation_labels[one.relation]
            if not one.has_traits:
                yield f"no training fact says anything of {name}"
                continue
            if one.trait is None:
                is_so = (
                    f"{'is' if one.having < 2 else 'are'} of type {graph.entities[one.entity].type.replace('_', ' ')}"
                )
            else:
                place = POSITION_GROUPS[one.trait[0]]
                is_so = f"is a {place}" if one.having < 2 else f"are {place}s"
                is_so += f" of {graph.relation_labels[one.trait[1]]}"
            those, alike = POSITION_GROUPS[one.position], f"only {one.having}" if one.having else "none"
            yield f"{name} is unlike the {those}s of {relation} in training: {alike} of {one.looked_at:,} {is_so}"

    def _unheard(self, asked: AskedFact) -> Iterator[str]:
        """What the question says and no fact does, in words."""
        unheard = self.loaded.usual_qualifiers.unheard(asked.table, 0, asked.position).tolist()
        labels, own = self.loaded.graph.relation_labels, asked.table.relation[0]
        if own in unheard:
            yield f"{labels[own]} is the relation of no training fact, only of qualifiers"
        said = [labels[relation] for relation in unheard if relation != own]
        if said:
            yield f"no training fact of this relation says {' or '.join(said)}"

    def _beyond(self, asked: AskedFact) -> Iterator[str]:
        graph = self.loaded.graph
        for relation, *numbers in self.loaded.usual_qualifiers.beyond(asked.table, 0, asked.position):
            value, low, high = (format_quantity(one, graph.relations[relation].unit) for one in numbers)
            where = f"{graph.relation_labels[relation]} {value} lies beyond all training facts of this relation"
            yield f"{where}, {low if low == high else f'{low} to {high}'}"


_CHANGED = 0.01
"""The share of facts from which on answers tell that these have changed: else each would, after one update."""
_LOOKED_AT = 100
"""Stored facts that say what to ask with."""


def _commonest(values: Sequence[Value]) -> Value | None:
    """What most say; of equally common dates the latest, and None where each has a number of its own."""
    if not values:
        return None
    times = Counter(values)
    best = max(times, key=lambda one: (times[one], one.value if isinstance(one, Number) else 0.0))
    own = isinstance(best, Number) and best.unit != DATE_UNIT and times[best] == 1 < len(values)
    return None if own else best


def _told_missing(missing: Sequence[MissingQualifier], subject: str = "this relation") -> Iterator[str]:
    """What the question lacks, in one sentence."""
    if not missing:
        return
    share, facts = min(one.share for one in missing), f"{missing[0].facts:,}"  # the same relation's for each
    if share == 1:
        most = f"all {facts}"
    else:
        most = f"{math.floor(100 * share)}% of the {facts}" if len(missing) == 1 else f"nearly all {facts}"
    *names, last = (one.name for one in missing)
    said = f"{', '.join(names)} and {last}" if names else last
    offered = ", ".join(f"{one.name}={one.offered}" for one in missing if one.offered)
    ask = f"; ask with {offered}" if offered else ""
    yield f"{most} training facts of {subject} say {said}, and the question does not{ask}"


def _alike(answers: tuple[Answer, ...]) -> str:
    """The first that have the same score, up to the rounding of sums, in words; "" where each has its own, or where
    those that share one are hardly possible: their order matters to nobody."""
    ranked = [one for one in answers if isinstance(one, RankedAnswer) and one.probability >= HARDLY]
    for at, one in enumerate(ranked):
        same = [other for other in ranked[at:] if math.isclose(one.score, other.score, rel_tol=1e-6, abs_tol=1e-7)]
        if len(same) > 1:
            times = Counter(other.name for other in same)
            words = [other.name if times[other.name] == 1 else f"{other.name} ({other.id})" for other in same]
            last = words[-1] if len(words) <= _NAMED else f"{len(words) - _NAMED + 1} more"
            return f"{', '.join(words[: _NAMED - 1][: len(words) - 1])} and {last}"
    return ""


_NAMED = 4
"""Answers that are named, or counted, where the model cannot tell them apart."""
SHOWN = 5
"""Stored answers that are judged and told; the rest is counted."""

_FOLDS: WeakKeyDictionary[LoadedRun, dict[str, Ids]] = WeakKeyDictionary()
"""(facts,) of each split, the folds they are judged in: made once for a run."""


@dataclass(eq=False)
class HeldAnswer:
    """One answer that the graph holds for a question, the facts that say so, and what the model makes of it."""

    question: int  # among those that were looked up
    answer: float  # the entity's or relation's id, or the number
    facts: list[StoredFact]  # the closest first
    rank: int | None = None
    probability: float | None = None
    predicted: float | None = None
    judged_without: bool = False


@dataclass(frozen=True, eq=False)
class HeldAnswers:
    """What the graph holds for each of some questions."""

    asked: Sequence[AskedFact]
    held: tuple[tuple[HeldAnswer, ...], ...]  # of each question

    @classmethod
    def find(cls, stored: StoredFacts, asked: Sequence[AskedFact]) -> HeldAnswers:
        """Looked up one by one: no question sees more facts than its own entity has."""
        found = []
        for number, one in enumerate(asked):
            groups: dict[object, HeldAnswer] = {}
            for fact in stored.answering(one.table, one.position, is_tried=one.tried is not None):
                # The same number under another date is another answer.
                key = fact[:2] if one.kind == NUMBER_KIND else fact.answer
                groups.setdefault(key, HeldAnswer(number, fact.answer, [])).facts.append(fact)
            found.append(tuple(groups.values()))
        return cls(asked, tuple(found))

    def told(self, question: int, graph: KnowledgeGraph, added: AddedFacts) -> tuple[StoredAnswer, ...]:
        """The stored answers to a question, the closest facts first; those of `added` facts say so."""
        asked = self.asked[question]
        return tuple(_told(one, asked, graph, added) for one in self.held[question][:SHOWN])

    def named(self) -> Standing:
        """Room for where those that are told stand among the candidates."""
        ranked = list(self._shown(numbers=False))
        question, answer = ([one.question for one in ranked], [int(one.answer) for one in ranked])
        return Standing.of(np.array(question, dtype=np.int64), np.array(answer, dtype=np.int64))

    def settle(self, named: Standing, value: Sequence[float]) -> None:
        """Takes over what the model says: of ranked answers as `named`, of numbers (all questions,)."""
        for at, one in enumerate(self._shown(numbers=False)):
            _place(one, named, at)
        for one in self._shown(numbers=True):
            one.predicted = value[one.question]

    def judge_without(self, batch: QuestionBatch, allowed: CandidateMasks, level: float) -> None:
        """Judges again what the model has read in the observed facts, without the folds of those that hold it."""
        graph = batch.loaded.graph
        if batch.loaded not in _FOLDS:
            _FOLDS[batch.loaded] = {name: folds_of(table, graph.vocabulary) for name, table in graph.splits.items()}
        folds = _FOLDS[batch.loaded]
        for one in (*self._shown(numbers=False), *self._shown(numbers=True)):
            alone, zero = np.array([one.question]), np.zeros(1, dtype=np.int64)
            loaded = without_folds(batch.loaded, {int(folds[fact.split][fact.row]) for fact in one.facts})
            asking = replace(batch, loaded=loaded, asked=batch.asked.take(alone))
            if self.asked[one.question].kind == NUMBER_KIND:
                asking = replace(asking, calibration=replace(batch.calibration, radii=None))  # nobody reads an interval
                one.predicted = float(asking.numbers(zero, level).value[0])
            else:
                named = Standing.of(zero, np.array([int(one.answer)]))
                asking.ranked(allowed.take(alone), 1, named)
                _place(one, named, 0)
            one.judged_without = True

    def _shown(self, *, numbers: bool) -> Iterator[HeldAnswer]:
        for asked, held in zip(self.asked, self.held, strict=True):
            if (asked.kind == NUMBER_KIND) == numbers:
                yield from held[:SHOWN]


def _place(one: HeldAnswer, named: Standing, at: int) -> None:
    if named.is_candidate[at]:
        one.rank, one.probability = int(named.rank[at]), float(named.probability[at])


def _told(one: HeldAnswer, asked: AskedFact, graph: KnowledgeGraph, added: AddedFacts) -> StoredAnswer:
    identity, value = None, None
    if asked.kind == NUMBER_KIND:
        assert asked.relation is not None
        value = one.answer
        text = format_stored(_number(one, asked, graph))
    elif asked.kind == RELATION_KIND:
        identity, text = graph.relations[int(one.answer)].name, graph.relation_labels[int(one.answer)]
    else:
        identity, text = graph.vocabulary.entities[int(one.answer)], graph.entity_labels[int(one.answer)]
    return StoredAnswer(
        text,
        tuple(dict.fromkeys(fact.split for fact in one.facts)),
        identity,
        value,
        _said_beyond(asked, one.facts[0], graph),
        one.rank,
        one.probability,
        one.predicted,
        one.judged_without,
        added.source(_fact(one.facts[0], graph)) if added.version else "",
    )


def _number(one: HeldAnswer, asked: AskedFact, graph: KnowledgeGraph) -> Number:
    """As the fact has it: a date with its precision."""
    fact = _fact(one.facts[0], graph)
    name = graph.relations[asked.relation or 0].name
    pairs = [(fact.relation, fact.tail)] if asked.position == TAIL else fact.qualifiers
    return next(
        value
        for relation, value in pairs
        if relation == name and isinstance(value, Number) and value.value == one.answer
    )


def _fact(stored: StoredFact, graph: KnowledgeGraph) -> Fact:
    return graph.splits[stored.split].fact(stored.row, graph.vocabulary)


def _said_beyond(asked: AskedFact, fact: StoredFact, graph: KnowledgeGraph) -> str:
    """The qualifiers of a stored fact that the question does not have, in words."""
    if not fact.extra:
        return ""
    table, own = graph.splits[fact.split].take(np.array([fact.row])), asked.table
    fits = np.zeros(table.qualifier_total, dtype=np.bool_)
    for pair in range(int(own.offsets[1])):
        blank = asked.position - FIRST_QUALIFIER if pair == qualifier_of(asked.position) else None
        same_relation = table.qualifier_relation == own.qualifier_relation[pair]
        same_value = (table.qualifier_entity == own.qualifier_entity[pair]) & (
            table.qualifier_number == own.qualifier_number[pair]
        )
        if blank is None or asked.position < FIRST_QUALIFIER:
            fits |= same_relation & same_value
        else:
            fits |= same_relation if blank % 2 else same_value
    texts = pair_texts(Sentences(graph).words(table.fact(0, graph.vocabulary)))
    return "; ".join(text for text, known in zip(texts, fits.tolist(), strict=True) if not known)
