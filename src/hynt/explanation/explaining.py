"""Why a run answers as it does: each part of a question is taken away in turn, and the answers are compared.

    run = hynt.load("runs/first")
    run.explain("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})

A qualifier is removed from the fact, and the rest is a question as any other. A component cannot be removed, but it can
be hidden: the model then reads the vector that it has for a hidden entity, relation or number. It has learned that
vector with one hidden component per fact, so an answer with two hidden ones says what a component was worth, and is not
an answer to rely on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.answering import task_of
from hynt.asking.answers import NumberAnswer
from hynt.asking.candidates import CandidateMask
from hynt.asking.columns import AskedFact
from hynt.asking.predictor import LEVEL, Predictor
from hynt.asking.refusals import non_finite, within_reach
from hynt.batches.buckets import bucket_capacity, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, mask
from hynt.errors import UsageError
from hynt.evaluation.evaluator import scoring_conditions
from hynt.explanation.explanations import AttentionWeights, Change, Explained, Explanation, Influence
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    HEAD,
    NUMBER_KIND,
    RELATION,
    RELATION_KIND,
    TAIL,
    FactTable,
    component_starts,
    concatenate,
    filled,
    position_name,
    qualifier_of,
    relation_position,
)
from hynt.graph.sentences import pair_texts
from hynt.graph.vocabulary import Flags, Floats, Ids
from hynt.models.contract import Part, ShowsAttention, reads_several_masks
from hynt.names import plural
from hynt.runs.observing import folds_of, without_facts, without_folds
from hynt.runs.opening import LoadedRun
from hynt.runs.place import whole_run
from hynt.runs.scoring import ReadTile, read_tiles, with_stored_literals

Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChangedQuestion:
    """A question, and the positions that are hidden besides its blank."""

    asked: AskedFact
    hidden: frozenset[int] = frozenset()


def without_qualifiers(asked: AskedFact, removed: frozenset[int]) -> AskedFact:
    """The question without these qualifiers, numbered from 0; not one of them may hold the blank."""
    table, count = asked.table, int(asked.table.offsets[1])
    kept = np.array([number not in removed for number in range(count)] * len(table), dtype=np.bool_)
    position = asked.position
    if position >= FIRST_QUALIFIER:
        own = qualifier_of(position)
        position -= 2 * sum(number < own for number in removed)
    return replace(asked, table=table.with_qualifiers(kept), position=position)


def also_mask(batch: MaskedBatch, hidden: Tensor) -> MaskedBatch:
    """Hides more components: `hidden` (rows, positions) bool says which; positions that a fact lacks are not read."""
    sizes, at = batch.sizes, batch.places
    head, relation, tail = (hidden[:, place] for place in (HEAD, RELATION, TAIL))
    of_relation = hidden[at.slot_row, FIRST_QUALIFIER + 2 * at.slot_within]
    of_value = hidden[at.slot_row, FIRST_QUALIFIER + 1 + 2 * at.slot_within]
    return batch.with_tensors(
        head=torch.where(head, sizes.mask_entity, batch.head),
        relation=torch.where(relation, sizes.mask_relation, batch.relation),
        tail_entity=torch.where(tail, sizes.mask_entity, batch.tail_entity),
        tail_number=torch.where(tail, 0.0, batch.tail_number),
        tail_value=torch.where(tail, 0.0, batch.tail_value),
        tail_number_masked=batch.tail_number_masked | (tail & batch.tail_is_number),
        qualifier_relation=torch.where(of_relation, sizes.mask_relation, batch.qualifier_relation),
        qualifier_entity=torch.where(of_value, sizes.mask_entity, batch.qualifier_entity),
        qualifier_number=torch.where(of_value, 0.0, batch.qualifier_number),
        qualifier_value=torch.where(of_value, 0.0, batch.qualifier_value),
        qualifier_number_masked=batch.qualifier_number_masked | (of_value & batch.qualifier_is_number),
    )


def changed_scores(loaded: LoadedRun, device: torch.device, changed: Sequence[ChangedQuestion]) -> list[Scores]:
    """For each question (rows, candidates) scores, or (rows,) numbers on the model's scale; all are of one kind.

    They are scored in the evaluator's own tiles, so a question of which nothing is hidden gets the predictor's bits.
    """
    kind = changed[0].asked.kind
    table = with_stored_literals(concatenate([one.asked.table for one in changed]), loaded)
    count = np.array([len(one.asked.table) for one in changed])
    owner = np.repeat(np.arange(len(changed)), count)
    position = np.array([one.asked.position for one in changed], dtype=np.int64)[owner]
    found: list[NDArray[np.float32] | None] = [None] * len(table)

    def work(tile: ReadTile) -> None:
        made = {ENTITY_KIND: tile.entities, RELATION_KIND: tile.relations, NUMBER_KIND: tile.numbers}[kind]()
        for row, scores in zip(tile.which.tolist(), made.cpu().numpy(), strict=True):
            found[row] = scores

    longest = FIRST_QUALIFIER + 2 * bucket_capacity(int(table.qualifier_counts().max()))
    flags = np.zeros((len(table), longest), dtype=np.bool_)
    for row, one in enumerate(owner.tolist()):
        flags[row, list(changed[one].hidden)] = True

    def hide(batch: MaskedBatch, numbers: Ids) -> MaskedBatch:
        return also_mask(batch, torch.from_numpy(flags[numbers]).to(device)) if flags[numbers].any() else batch

    with whole_run():
        read_tiles(loaded, table, np.arange(len(table), dtype=np.int64), position, device, work, hide)
    ends = np.cumsum(count)
    return [np.stack(found[end - size : end]).astype(np.float64) for size, end in zip(count, ends, strict=True)]  # type: ignore[arg-type]


TOP = 5
"""How many answers to the whole question an explanation shows."""


@dataclass(frozen=True, eq=False)
class _Taken:
    """One part of a question taken away."""

    part: str
    says: str
    change: Change
    question: ChangedQuestion
    qualifier: int | None  # the one removed
    position: int | None  # the one hidden


def explain_asked(
    predictor: Predictor, asked: AskedFact, candidates: CandidateMask, about: int | None = None, level: float = LEVEL
) -> Explanation:
    """What mattered to the first answer to a question, or to `about`, an entity's or a relation's id."""
    answers = predictor.answer(asked, candidates, TOP, level)
    asked = within_reach(asked, predictor.loaded.scaling)
    taken = taken_away(predictor, asked)
    questions, notes = [ChangedQuestion(asked), *(one.question for one in taken)], list(answers.notes)
    if asked.kind != NUMBER_KIND and about is None:
        about = first_answer(predictor, asked, candidates, _finite_scores(predictor, predictor.loaded, questions[:1]))
    folds = folds_of_answers(predictor, asked, about)
    blind = without_folds(predictor.loaded, folds)
    scores = _finite_scores(predictor, blind, questions)
    for one, left in facts_taken_away(predictor.loaded, folds, asked):
        taken.append(one)
        scores += _finite_scores(predictor, left, questions[:1])
    if not reads_several_masks(predictor.loaded.trained):
        others = "other components cannot be hidden"
        if not (taken or asked.table.qualifier_counts().any()):
            others = "without qualifiers there is nothing to take away"
        notes.append(f"this model reads facts with one hidden component only: {others}")
    judged = ""
    if asked.kind == NUMBER_KIND:
        answer = answers[0]
        assert isinstance(answer, NumberAnswer)
        explained, (whole, outcomes) = None, number_changes(predictor, asked, answer, scores)
        judged = f": {answer.text(whole)}"
    else:
        assert about is not None
        explained, outcomes = rank_changes(predictor, asked, candidates, about, scores)
    if blind is not predictor.loaded:
        notes.append(f"the graph holds this answer: it is explained as the run judges it without that fact{judged}")
    row = 0
    if asked.tried is not None and explained is not None:  # the row that has the number on this relation's scale
        identity = predictor.graph.vocabulary.relation_ids[explained.id]
        row = int(np.flatnonzero(asked.tried == identity)[0])
    attention = attention_of(predictor.loaded, predictor.device, asked, row)
    if attention is None:
        notes.append("this model has no context transformer: there is no attention to show")
    influences = [
        Influence(
            one.part,
            one.says,
            one.change,
            **outcome._asdict(),
            context_attention=None
            if attention is None or one.qualifier is None  # only a qualifier that was removed is looked at there
            else float(attention.on_context[1 + one.qualifier]),
            prediction_attention=_prediction_attention(attention, one),
        )
        for one, outcome in zip(taken, outcomes, strict=True)
    ]
    influences.sort(key=lambda one: -one.size)
    tokens = () if attention is None else ("triplet", *pair_texts(asked.words))
    return Explanation(answers, explained, tuple(influences), attention, tokens, tuple(notes))


def _finite_scores(predictor: Predictor, loaded: LoadedRun, questions: list[ChangedQuestion]) -> list[Floats]:
    scores = changed_scores(loaded, predictor.device, questions)
    if not all(np.isfinite(one).all() for one in scores):
        raise non_finite(loaded, f"{questions[0].asked.text}, or to a part of it,")
    return scores


def folds_of_answers(predictor: Predictor, asked: AskedFact, about: int | None) -> set[int]:
    """The folds of the stored facts that give this answer, or any number where one is asked for: with them in view, a
    model that reads observed facts would look up what it is to explain. None for any other model.
    """
    if predictor.loaded.observed is None:
        return set()
    known = predictor.known.lookup(asked.table, component_starts(asked.table)[:-1] + asked.position, asked.kind)
    row, answer = known.question(), known.answers
    if asked.kind == NUMBER_KIND:
        chosen = np.ones(len(answer), dtype=np.bool_)
    else:
        chosen = answer == about if asked.tried is None else (answer == about) & (asked.tried[row] == about)
    facts = filled(asked.table, row[chosen], np.full(int(chosen.sum()), asked.position), answer[chosen])
    return set(folds_of(facts, predictor.graph.vocabulary).tolist())


def taken_away(predictor: Predictor, asked: AskedFact) -> list[_Taken]:
    """All that can be taken away from a question, in the order of the fact."""
    loaded = predictor.loaded
    own = qualifier_of(asked.position) if asked.position >= FIRST_QUALIFIER else None
    texts, count = pair_texts(asked.words), int(asked.table.offsets[1])
    others = [number for number in range(count) if number != own]
    found = []
    if Part.QUALIFIERS in loaded.model.reads:
        for number in others:
            fewer = without_qualifiers(asked, frozenset([number]))
            found.append(
                _Taken(f"qualifier {number + 1}", texts[number], "removed", ChangedQuestion(fewer), number, None)
            )
        if len(others) > 1:
            bare = ChangedQuestion(without_qualifiers(asked, frozenset(others)))
            found.append(_Taken("all qualifiers", "", "removed", bare, None, None))
    if reads_several_masks(loaded.trained):
        places = [HEAD, RELATION, TAIL]
        for number in range(count):
            # Of another qualifier only the value: hiding its relation too is much like removing it.
            first = relation_position(number)
            places += [first, first + 1] if number == own else [first + 1]
        for place in places:
            if place != asked.position and not (asked.tried is not None and place == asked.position + 1):
                hidden = ChangedQuestion(asked, frozenset([place]))
                found.append(_Taken(position_name(place), asked.words[place], "hidden", hidden, None, place))
    return found


_RELATIONS = 6
"""Relations whose facts are taken away, those first of which the entity has most."""
_FEW = 200_000
"""Facts up to which a graph is read again without some of them, for people who wait."""


def facts_taken_away(loaded: LoadedRun, folds: set[int], asked: AskedFact) -> Iterator[tuple[_Taken, LoadedRun]]:
    """Of a model that reads observed facts: those of the entity that is asked about, one relation after another, and
    the run that knows nothing of them, nor of these folds.
    """
    is_number = loaded.graph.vocabulary.relation_is_number
    place = TAIL if asked.position == HEAD else HEAD
    own = int((asked.table.head if place == HEAD else asked.table.tail_entity)[0])
    if loaded.observed is None or len(loaded.observed.table) > _FEW:
        return
    if place == TAIL and is_number[asked.table.relation[0]]:
        return

    def gone(table: FactTable, relation: int | None = None) -> Flags:
        of_entity = (table.head == own) | ((table.tail_entity == own) & ~is_number[table.relation])
        return np.asarray(of_entity if relation is None else of_entity & (table.relation == relation))

    table = loaded.observed.without(folds).table
    facts = np.bincount(table.relation[gone(table)], minlength=len(is_number))
    for relation in np.argsort(-facts, kind="stable")[:_RELATIONS].tolist():
        if not facts[relation]:
            return
        left = without_facts(loaded, folds, partial(gone, relation=relation))
        says = f"{loaded.graph.relation_labels[relation]}, {plural(int(facts[relation]), 'fact')}"
        part = f"facts of the {position_name(place)}"
        yield _Taken(part, says, "removed", ChangedQuestion(asked), None, None), left


def attention_of(loaded: LoadedRun, device: torch.device, asked: AskedFact, row: int = 0) -> AttentionWeights | None:
    """Of one row of a question; None where the model shows none."""
    if not isinstance(loaded.trained, ShowsAttention):
        return None
    table = with_stored_literals(asked.table.take(np.array([row], dtype=np.int64)), loaded)
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, device, loaded.literals)
    layout = layout_of([(1, bucket_capacity(int(table.offsets[1])))])
    place, position = (torch.tensor([one], dtype=torch.int64, device=device) for one in (0, asked.position))
    batch, _ = mask(facts, place, position, layout)
    with scoring_conditions(loaded.trained):
        return attention_weights(loaded.trained, batch)


def attention_weights(model: ShowsAttention, batch: MaskedBatch) -> AttentionWeights:
    """Where a model looks in a batch of one question, as plain arrays."""
    found = model.attention(batch)
    context, prediction, encoded = (
        None if one is None else one.detach().double().cpu().numpy()
        for one in (found.context, found.prediction, found.encoded)
    )
    return AttentionWeights(cast(Floats, context), prediction, found.parts, encoded)


def _prediction_attention(attention: AttentionWeights | None, one: _Taken) -> float | None:
    """How much the prediction transformer looked at a component that was hidden, where it stands beside the blank."""
    on_parts = None if attention is None else attention.on_parts
    if attention is None or on_parts is None or one.position is None or one.position not in attention.parts:
        return None
    return float(on_parts[attention.parts.index(one.position)])


# What an answer becomes when its question is changed: another first answer, another probability, another number.


class Outcome(NamedTuple):
    """The fields of an `Influence` that say what a changed question is answered with."""

    answer_id: str | None = None
    answer: str | None = None
    probability: float | None = None
    probability_change: float | None = None
    rank: int | None = None
    value: float | None = None
    value_change: float | None = None
    change_in_widths: float | None = None


def number_changes(
    predictor: Predictor, asked: AskedFact, answer: NumberAnswer, scores: list[Floats]
) -> tuple[float, list[Outcome]]:
    """The number that is explained, and what each changed question is answered with, from the scores of the whole one
    and then of all changed ones.
    """
    assert asked.relation is not None
    relation = np.full(len(scores), asked.relation, dtype=np.int64)
    with np.errstate(over="ignore"):
        said = predictor.loaded.scaling.unscale(relation, np.concatenate(scores))
    values = predictor.loaded.possible_numbers.nearest(relation, said).tolist()
    width = None if answer.interval is None else answer.interval[1] - answer.interval[0]
    changes = [(value, value - values[0]) for value in values[1:]]
    return values[0], [
        Outcome(value=value, value_change=change, change_in_widths=change / width if width else None)
        for value, change in changes
    ]


def first_answer(predictor: Predictor, asked: AskedFact, candidates: CandidateMask, scores: list[Floats]) -> int:
    """The id of the most likely entity or relation, by the scores of the whole question."""
    place, found = _judged(predictor, asked, candidates, scores)
    return int(place[found[0].argmax()])


def rank_changes(
    predictor: Predictor, asked: AskedFact, candidates: CandidateMask, about: int, scores: list[Floats]
) -> tuple[Explained, list[Outcome]]:
    """The explained answer, and the same for entities and relations."""
    place, found = _judged(predictor, asked, candidates, scores)
    if about not in place:
        raise UsageError("the answer is not among the candidates.", where="answer", advice="Allow it, or name another.")
    chosen = int(np.searchsorted(place, about))
    graph = predictor.graph
    if asked.kind == RELATION_KIND:
        ids, labels = [relation.name for relation in graph.relations], graph.relation_labels
    else:
        ids, labels = list(graph.vocabulary.entities), graph.entity_labels
    whole = float(found[0][chosen])
    outcomes = []
    for one in found[1:]:
        first, mine = int(place[one.argmax()]), float(one[chosen])
        outcomes.append(Outcome(ids[first], labels[first], mine, mine - whole, _rank(one, chosen)))
    explained = int(place[chosen])
    return Explained(ids[explained], labels[explained], whole, _rank(found[0], chosen)), outcomes


def _judged(
    predictor: Predictor, asked: AskedFact, candidates: CandidateMask, scores: list[Floats]
) -> tuple[Ids, list[Floats]]:
    """(allowed,) ids of what may be answered, and by each of these scores (allowed,) their probabilities."""
    place, task = _allowed(predictor, asked, candidates, scores[0].shape[1]), task_of(asked.kind)

    def sharpened(one: Floats) -> Floats:
        by_answer = asked.kind == RELATION_KIND and asked.tried is None
        beside = int(place[one[0, place].argmax()]) if by_answer else asked.relation
        return one * predictor.calibration.inverse_temperature(task, asked.position, beside)

    return place, [_likelihoods(asked, sharpened(one), place) for one in scores]


def _likelihoods(asked: AskedFact, sharp: Floats, place: Ids) -> Floats:
    """(allowed,) probabilities of the candidates at `place`, from (rows, candidates) scores that are sharpened."""
    if asked.tried is None:
        logits = sharp[0, place]
    else:
        # As the predictor has it: each relation is judged by the row that has the number on its own scale.
        row = np.searchsorted(asked.tried, place)
        logits = sharp[row, place] - np.logaddexp.reduce(sharp, axis=1)[row]
    return np.asarray(np.exp(logits - np.logaddexp.reduce(logits)), dtype=np.float64)


def _rank(likelihoods: Floats, chosen: int) -> int:
    """Of a candidate; of equal ones the one with the smaller id comes first."""
    better = likelihoods > likelihoods[chosen]
    return 1 + int(better.sum()) + int((likelihoods[:chosen] == likelihoods[chosen]).sum())


def _allowed(predictor: Predictor, asked: AskedFact, candidates: CandidateMask, count: int) -> Ids:
    """(allowed,) ids of what may be answered, ascending; the same for the whole question and all changed ones."""
    allowed = np.ones(count, dtype=np.bool_) if candidates.allowed is None else candidates.allowed.copy()
    if candidates.only_unknown:
        lists = predictor.known.lookup(asked.table, component_starts(asked.table)[:-1] + asked.position, asked.kind)
        known = lists.answers if asked.tried is None else lists.answers[lists.answers == asked.tried[lists.question()]]
        allowed[known] = False
        held = predictor.stored_facts.answering(asked.table, asked.position, is_tried=asked.tried is not None)
        allowed[[int(fact.answer) for fact in held]] = False
    if asked.tried is not None:
        tried = np.zeros(count, dtype=np.bool_)
        tried[asked.tried] = True
        allowed &= tried
    return np.flatnonzero(allowed).astype(np.int64)
