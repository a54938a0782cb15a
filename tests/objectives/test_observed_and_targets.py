"""What a training step of `hynt-inductive` is made of, and the losses of its questions against loops over them."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as functional

from hynt.batches.fact_slots import QUALIFIER_ROLE
from hynt.errors import DataError
from hynt.models.hynt_inductive import HyntInductive, HyntInductiveSettings
from hynt.objectives.drawn_beside import ReadNumbers, Room, room_for
from hynt.objectives.observed_and_targets import ObservedAndTargets, Split
from hynt.objectives.streams import PhaseSettings
from tests.batches.random_graphs import mixed_facts
from tests.batches.test_message_plan import heard

FACTS = mixed_facts(200)
SMALL = HyntInductiveSettings(
    dimension=16, layers=2, heads=2, feedforward=32, bins=11, dropout=0.0, message_dropout=0.0
)


def model_of(seed=0):
    torch.manual_seed(seed)
    return HyntInductive.build(FACTS.sizes, FACTS, SMALL)


def stream_of(targets) -> ObservedAndTargets:
    return model_of().phases(FACTS, PhaseSettings(batch_size=targets, epochs=1))[0].stream


def first_step(targets):
    stream = stream_of(targets)
    with_entity, with_number, asked = stream.epoch(0, 0).items(0).tensors
    return stream.step((with_entity, with_number), asked)


@pytest.mark.parametrize(
    ("entities", "numbers", "targets", "expected"),
    [
        (36213, 24892, 8192, (25349, 17424, 4855, 3337)),  # HN-YG
        (166435, 0, 6144, (116504, 0, 6144, 0)),  # WD50K
        (10, 0, 99, (7, 0, 3, 0)),
        (3, 10, 99, (2, 7, 1, 3)),
    ],
)
def test_sizes_of_a_split(entities, numbers, targets, expected):
    assert Split.of(entities, numbers, 0.7, targets) == expected


def test_the_smallest_graphs_observe_something():
    """A share of few facts rounds to none, and a step that observes nothing has nothing to answer from."""
    for entities, numbers in ((1, 1), (2, 0), (0, 2), (3, 3)):
        split = Split.of(entities, numbers, 0.25, 8)
        assert split.observed == 1
        assert split.targets == entities + numbers - 1
    with pytest.raises(DataError, match="one fact cannot be observed and asked about at once"):
        Split.of(1, 0, 0.7, 8)


def test_observed_and_asked_facts_are_apart_and_drawn_anew():
    stream = stream_of(20)
    drawn = [stream.epoch(3, epoch).items(index).tensors for epoch in range(20) for index in range(10)]
    for with_entity, with_number, targets in drawn:
        together = [*with_entity.tolist(), *with_number.tolist(), *targets.tolist()]
        assert len({*together}) == len(together)
    assert {*torch.cat([targets for *_, targets in drawn]).tolist()} == set(range(len(FACTS)))
    assert {*torch.cat([torch.cat(one[:2]) for one in drawn]).tolist()} == set(range(len(FACTS)))
    assert len({tuple(map(len, one)) for one in drawn}) == 1


def test_an_epoch_has_as_many_steps_as_are_asked_for():
    phases = PhaseSettings(batch_size=20, epochs=1, epoch_steps=7)
    steps = model_of().phases(FACTS, phases)[0].stream.epoch(0, 0)
    assert (len(steps), len(stream_of(20).epoch(0, 0))) == (7, 10)
    assert not torch.equal(steps.items(5).tensors[2], steps.items(6).tensors[2])


def test_no_qualifier_is_left_out_however_uneven_the_facts():
    """One of very many facts has nearly all qualifiers: when it is asked about, all of them are."""
    counts = torch.zeros(2000, dtype=torch.int64)
    counts[7] = 500
    assert room_for(counts, 1) == room_for(counts, 1999) == 500
    step = stream_of(20).step((torch.arange(100), torch.arange(0)), torch.arange(150, 170))
    asked, facts = step.questions.targets, FACTS.qualifier_counts()
    assert int((asked.there & (asked.role == QUALIFIER_ROLE)).sum()) == int(facts[150:170].sum())
    assert bool(step.fits)


@pytest.mark.parametrize("chosen", [0, 1, 40, 700, 999, 1000])
def test_room_is_enough_for_every_draw_and_not_much_more_than_needed(chosen):
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(0, 4, (1000,), generator=generator)
    drawn = [int(counts[torch.randperm(1000, generator=generator)[:chosen]].sum()) for _ in range(200)]
    assert max(drawn) <= room_for(counts, chosen) <= max(drawn) + 14 * (1.25 * min(chosen, 1000 - chosen)) ** 0.5


def test_a_step_without_room_is_no_number_instead_of_a_smaller_loss():
    model, stream = model_of().eval(), stream_of(20)
    items = stream.epoch(0, 0).items(0)
    with_entity, with_number, targets = items.tensors
    step, read = stream.step, stream.step((with_entity, with_number), targets)
    room = Room(*(int(one) for one in stream._needed(torch.cat([with_entity, with_number]), targets)))
    numbers = ReadNumbers.of(stream.numbers, stream.features, room.relation_nodes(FACTS, 20) - 1)
    stream.step = lambda observed, asked: step(observed, asked, room._replace(asked=room.asked - 1), numbers)
    assert bool(read.fits)
    with torch.no_grad():
        assert math.isnan(stream.loss_for(items.shape)(model, items.tensors).total)


@pytest.mark.parametrize("more", [-40, -1, 0, 9])
def test_a_step_names_nothing_beyond_its_tables_however_much_room_it_has(more):
    """Kernels read and write where a plan says, without asking whether it is there."""
    stream = stream_of(20)
    with_entity, with_number, targets = stream.epoch(0, 0).items(0).tensors
    needed = stream._needed(torch.cat([with_entity, with_number]), targets)
    room = Room(*(max(int(one) + more, 1) for one in needed))
    read = ReadNumbers.of(stream.numbers, stream.features, room.relation_nodes(FACTS, 20))
    step = stream.step((with_entity, with_number), targets, room, read)
    plan, asked, numbers = step.plan, step.questions.targets, len(stream.numbers.value)
    assert bool(step.fits) is (more >= 0)
    slots, messages, nodes = len(plan.slot_first), len(plan.message_slot), plan.sizes
    named = [
        (plan.slot_first, slots),
        (plan.slot_stop, slots + 1),
        (plan.message_slot, slots),
        (plan.slot_message, messages + 1),
        (plan.value_rows.row, 3 * FACTS.sizes.entities + 2 * (numbers + nodes.bare + 1) + 1),
        (plan.relation_rows.row, 3 * nodes.relation_nodes + 1),
        (plan.context_rows.row, 3 * nodes.relation_nodes + 1),
        (plan.own_rows.row, 2 * FACTS.sizes.entities + numbers + nodes.bare + 2),
        (plan.to_values.row, nodes.entity_nodes + 1),
        (plan.to_relations.row, nodes.relation_nodes + 1),
        (step.number_asked.row, nodes.relation_nodes),
        (step.entity_question, len(asked.role)),
        (step.number_question, len(asked.role)),
        (asked.number, len(read.value)),
        (step.entities.answer, FACTS.sizes.entities),
        (step.entities.start + step.entities.known, len(step.entities.true) + 1),
    ]
    for index, (ids, count) in enumerate(named):
        assert not len(ids) or 0 <= int(ids.min()) <= int(ids.max()) < count, index
    received = plan.to_values.row < nodes.entity_nodes
    assert int(plan.context_rows.row[received].max()) < 3 * nodes.relation_nodes
    for links in (plan.value_rows, plan.relation_rows, plan.to_values, plan.to_relations):
        pieces = links.cut()
        held = (pieces.last - pieces.first)[pieces.row <= links.rows]
        assert int(held.sum()) == len(links.row), "every item is in one piece"
        assert int(pieces.long_last.max()) <= pieces.places


def test_every_slot_and_relation_of_a_target_is_asked_for_once():
    step = first_step(20)
    asked = step.questions.targets
    of_entity = asked.there & ~asked.is_number
    entity, number = step.entity_question, step.number_question
    assert sorted(entity[of_entity[entity]].tolist()) == torch.nonzero(of_entity).squeeze(1).tolist()
    assert sorted(number[asked.is_number[number]].tolist()) == torch.nonzero(asked.is_number).squeeze(1).tolist()
    qualifiers = int((asked.there & (asked.role == QUALIFIER_ROLE)).sum())
    assert int(step.questions.relation_asked.sum()) == 20 + qualifiers


def test_questions_hear_one_message_and_are_heard_by_nobody():
    step = first_step(12)
    plan, asked = step.plan, step.questions.targets
    entities, relations = FACTS.sizes.entities, FACTS.sizes.relations
    values, of_relations = heard(plan)
    asking = [node for _, node in values if node >= entities]
    assert sorted(asking) == [entities + j for j in range(len(asked.role)) if asked.there[j]]
    asking = [node for _, node in of_relations if node >= relations]
    assert sorted(asking) == [
        relations + j for j in range(len(step.questions.relation)) if step.questions.relation_asked[j]
    ]
    # A question for a relation is read by its own copy alone.
    readers: dict[int, set[int]] = {}
    for slot, row in enumerate(plan.relation_rows.row.tolist()):
        if relations * 3 <= row < plan.relation_rows.rows:
            readers.setdefault(row // 3, set()).add(int(plan.slot_first[slot]))
    assert set(readers) == set(range(relations, relations + 12))
    assert all(len(starts) == 1 for starts in readers.values())


def true_entities(row, slot):
    """All entities that some training fact has in this slot of an else equal fact."""

    def parts(r):
        q = range(int(FACTS.offsets[r]), int(FACTS.offsets[r + 1]))
        tail = float(FACTS.tail_value[r]) if FACTS.tail_is_number[r] else int(FACTS.tail_entity[r])
        pairs = [(int(FACTS.qualifier_relation[k]), _value(k)) for k in q]
        values = [int(FACTS.head[r]), tail, *(value for _, value in pairs)]
        return values, [int(FACTS.relation[r]), *(key for key, _ in pairs)]

    values, relations = parts(row)
    found = set()
    for r in range(len(FACTS)):
        others, named = parts(r)
        if named == relations and others[:slot] + others[slot + 1 :] == values[:slot] + values[slot + 1 :]:
            found.add(others[slot])
    return found


def _value(k):
    return float(FACTS.qualifier_value[k]) if FACTS.qualifier_is_number[k] else int(FACTS.qualifier_entity[k])


def test_losses_are_means_over_questions_without_other_true_answers():
    model, stream = model_of().eval(), stream_of(20)
    items = stream.epoch(0, 0).items(0)
    with_entity, with_number, targets = items.tensors
    step = stream.step((with_entity, with_number), targets)
    with torch.no_grad():
        found, outcome = stream.loss_for(items.shape)(model, items.tensors), model.read_step(step)
    asked, seen = step.questions.targets, step.degrees.seen
    of_entities, of_numbers, of_relations = [], [], []
    for question, j in zip(outcome.entity, step.entity_question.tolist(), strict=True):
        if asked.there[j] and not asked.is_number[j] and seen[asked.entity[j]]:
            scores = outcome.entity_states @ question + torch.where(seen, 0.0, -math.inf)
            answer = int(asked.entity[j])
            for other in true_entities(int(targets[asked.fact[j]]), j - int(asked.first[j])) - {answer}:
                scores[other] = -math.inf
            of_entities.append(functional.cross_entropy(scores, torch.tensor(answer)))
    for logits, j in zip(outcome.number, step.number_question.tolist(), strict=True):
        if asked.is_number[j]:
            of_numbers.append(model.bins.loss(logits[None], step.numbers.value[asked.number[j]][None])[0])
    for j, (answer, there) in enumerate(zip(step.questions.relation, step.questions.relation_asked, strict=True)):
        if there:
            scores = outcome.relation_states @ outcome.relation[j]
            of_relations.append(functional.cross_entropy(scores, answer.long()))
    expected = [torch.stack(one).mean() for one in (of_entities, of_relations, of_numbers)]
    torch.testing.assert_close(found.sums / found.counts, torch.stack(expected), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.total, torch.stack(expected).sum(), rtol=1e-4, atol=1e-4)
