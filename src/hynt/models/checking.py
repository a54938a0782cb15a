"""`check_model`: what every model must hold, in one function that anyone who writes a model can run.

It asks every question about a few small random facts and compares answers: it needs no training and takes seconds.

A few small random facts of every kind and length, and ways to change them, for checking models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from hynt.batches.buckets import BatchLayout, layout_of, rows_by_bucket
from hynt.batches.fact_tensors import FactTensors, Sizes, distinct_literals
from hynt.batches.masked_batch import AskableComponents, MaskedBatch, Task, mask
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.fact_table import HEAD, RELATION, TAIL, FactTable, qualifier_of
from hynt.graph.vocabulary import Relation, Vocabulary, offsets_of
from hynt.models.contract import (
    EVERYWHERE,
    EmbedsEntities,
    Entities,
    EntityIds,
    EntityRange,
    Model,
    Part,
    Position,
    Relations,
    ScaledNumber,
    position_of,
)
from hynt.objectives.streams import ItemStream, PhaseSettings

LENGTHS = (0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5)


def example_facts(seed: int = 0, *, literals: bool = False) -> FactTensors:
    """Sixty facts with 0 to 5 qualifiers; every third relation carries numbers. With ids for literals where asked."""
    vocabulary = Vocabulary(
        tuple(f"entity {i}" for i in range(17)),
        tuple(Relation(f"relation {i}", "number" if i % 3 == 2 else "entity") for i in range(7)),
    )
    random = np.random.default_rng(seed)
    lengths = np.array(LENGTHS * 5)
    n, m = len(lengths), int(lengths.sum())
    relation = random.integers(0, vocabulary.relation_count, n + m).astype(np.int32)
    is_number = vocabulary.relation_is_number[relation]
    entity = np.where(is_number, 0, random.integers(0, vocabulary.entity_count, n + m)).astype(np.int32)
    number = np.where(is_number, random.integers(1, 30, n + m), 0).astype(np.float64)
    written = [repr(v) if kind else None for v, kind in zip(number.tolist(), is_number.tolist(), strict=True)]
    table = FactTable(
        random.integers(0, vocabulary.entity_count, n).astype(np.int32),
        relation[:n],
        entity[:n],
        number[:n],
        pa.array(written[:n], type=pa.string()),
        offsets_of(lengths),
        relation[n:],
        entity[n:],
        number[n:],
        pa.array(written[n:], type=pa.string()),
    )
    return FactTensors.from_table(
        table,
        vocabulary,
        NumberScaling.fit([table], vocabulary),
        literals=distinct_literals(table) if literals else None,
    )


def exchanged(facts: FactTensors, position: int) -> FactTensors:
    """The same facts with whatever stands at `position` exchanged, its kind kept."""
    if position == HEAD:
        return replace(facts, head=next_id(facts.head, facts.sizes.entities))
    if position == RELATION:
        return replace(facts, relation=next_id(facts.relation, facts.sizes.relations))
    if position == TAIL:
        entity = next_id(next_literal(facts, facts.tail_entity), facts.sizes.entities)
        number, value = facts.tail_number + 0.5, facts.tail_value + 0.5
        return replace(facts, tail_entity=entity, tail_number=number, tail_value=value)
    slot = qualifier_of(position)
    here = facts.offsets[:-1][facts.qualifier_counts() > slot] + slot
    if position % 2 == 1:
        return replace(facts, qualifier_relation=_at(facts.qualifier_relation, here, facts.sizes.relations))
    more = torch.full((len(here),), 0.5, device=facts.device)
    return replace(
        facts,
        qualifier_number=facts.qualifier_number.index_add(0, here, more),
        qualifier_value=facts.qualifier_value.index_add(0, here, more.double()),
        qualifier_entity=_at(facts.qualifier_entity, here, facts.sizes.entities),
    )


def next_id(ids: Tensor, count: int) -> Tensor:
    """Every id below `count` moved on by one; others stay."""
    return torch.where(ids < count, (ids + 1) % count, ids)


def next_literal(facts: FactTensors, ids: Tensor) -> Tensor:
    """Every literal's id moved on by one; others stay."""
    first, count = facts.sizes.entities + 1, facts.sizes.literals
    return torch.where(ids >= first, first + (ids - first + 1) % max(count, 1), ids)


def _at(ids: Tensor, here: Tensor, count: int) -> Tensor:
    return ids.index_put((here,), next_id(ids[here], count))


Build = Callable[[Sizes, FactTensors], nn.Module]


class ContractError(AssertionError):
    """A model does not hold what every model must."""


class _EveryQuestion(NamedTuple):
    """Every question that a model claims to answer, about some facts, as one batch."""

    batch: MaskedBatch
    owner: Tensor  # (rows,) the fact asked about
    task: Tensor  # (rows,)
    layout: BatchLayout


def check_model(
    model: Build | str, *, literals: bool = False, seed: int = 0, settings: Mapping[str, Any] | None = None
) -> None:
    """Checks a model against the whole contract: a registered one by its name, or a function that makes one from sizes
    and training facts. Raises ContractError with the reason.

    `literals` gives the facts ids for their literals, for models that need them; for registered models that is known.
    `settings` are those of a registered model, which is checked fastest with a small width.

    >>> hynt.check_model("transea")
    """
    if isinstance(model, str):
        build, literals = _registered(model, settings or {})
    else:
        build = model
    _check(build, literals, seed)


def _registered(name: str, changes: Mapping[str, Any]) -> tuple[Build, bool]:
    from hynt.config import from_mapping
    from hynt.models.registry import MODELS

    entry = MODELS.get(name)
    settings = from_mapping(entry.settings, dict(changes), name)
    return lambda sizes, train: entry.build(sizes, train, settings), entry.needs_literals(settings)


def _check(build: Build, literals: bool, seed: int) -> None:
    train = example_facts(seed, literals=literals)
    model = _made(build, train, seed)
    _check_claims(model)
    asked = _every_question(model, train)
    answers = _answers(model, asked.batch)
    _check_shapes(model, asked, answers)
    _check_candidates(model, asked, answers)
    _check_padding(model, train, answers)
    _check_order(model, train, asked, answers)
    _check_no_peeking(model, train, asked, answers)
    _check_looking(model, train, asked, answers)
    if Part.OBSERVED_FACTS in model.reads:
        _check_observing(model, train, asked, answers)
    _check_vectors(model)
    _check_gradients(model, asked)
    _check_phases(_made(build, train, seed), train)
    again = _made(build, train, seed)
    _same(answers, _answers(again, asked.batch), "two models built from the same seed answer differently")
    other = _made(build, train, seed + 1)
    other.load_state_dict(load(save({name: one.contiguous().clone() for name, one in model.state_dict().items()})))
    _same(answers, _answers(other, asked.batch), "a model answers differently after saving and loading")


def _made(build: Build, train: FactTensors, seed: int) -> Any:
    torch.manual_seed(seed)
    return build(train.sizes, train).to(train.device).eval()


def _close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def _require(held: bool, otherwise: str) -> None:
    if not held:
        raise ContractError(otherwise)


def _check_claims(model: Any) -> None:
    _require(isinstance(model, nn.Module), "a model must be a torch module")
    _require(isinstance(model, Model), "a model must have sizes, answers, reads, streams, read, score and phases")
    declared = isinstance(model.streams, tuple) and all(
        isinstance(kind, type) and issubclass(kind, ItemStream) for kind in model.streams
    )
    _require(declared, "streams must be a tuple of ItemStream classes")
    _require(bool(model.answers), "the model answers nothing")
    _require(model.answers <= EVERYWHERE, f"no fact has {set(model.answers) - EVERYWHERE}")
    _require(model.reads <= frozenset(Part), "reads must hold Parts")


def _every_question(model: Any, facts: FactTensors, wider: int = 1) -> _EveryQuestion:
    """All questions the model claims to answer; `wider` multiplies the places for qualifiers."""
    components = AskableComponents.of(facts)
    where = position_of(components.position).tolist()
    pairs = zip(components.task.tolist(), where, strict=True)
    claimed = torch.tensor([(Task(task), list(Position)[at]) in model.answers for task, at in pairs])
    owner, asked, task = (x[claimed] for x in (components.owner(), components.position, components.task))
    found = rows_by_bucket(facts.qualifier_counts()[owner])
    order = torch.cat([rows for _, rows in found])
    layout = layout_of([(len(rows), capacity * wider) for capacity, rows in found])
    batch, _ = mask(facts, owner[order], asked[order], layout)
    return _EveryQuestion(batch, owner[order], task[order], layout)


def _answers(model: Any, batch: MaskedBatch) -> dict[Task, Tensor]:
    """Scores by task, of the rows that ask for it."""
    kinds = {Task.LINK: Entities(), Task.RELATION: Relations(), Task.NUMBER: ScaledNumber()}
    task = batch.task()
    with torch.no_grad():
        question = model.read(batch)
        rows = {kind: torch.nonzero(task == kind).squeeze(1) for kind in Task}
        return {kind: model.score(question.take(rows[kind]), kinds[kind]) for kind in Task if len(rows[kind])}


def _same(one: dict[Task, Tensor], other: dict[Task, Tensor], otherwise: str) -> None:
    for task, scores in one.items():
        _require(_close(scores, other[task]), f"{otherwise} ({task.name.lower()})")


def _check_shapes(model: Any, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    claimed = {task for task, _ in model.answers}
    _require(set(answers) == claimed, f"asked for {claimed}, answered {set(answers)}")
    for task, scores in answers.items():
        rows = int((asked.task == task).sum())
        width = {Task.LINK: (model.sizes.entities,), Task.RELATION: (model.sizes.relations,), Task.NUMBER: ()}[task]
        expected = (rows, *width)
        found = tuple(scores.shape)
        _require(found == expected, f"{task.name.lower()} scores have shape {found}, not {expected}")
        _require(scores.dtype == torch.float32, f"{task.name.lower()} scores are {scores.dtype}, not float32")
        _require(bool(torch.isfinite(scores).all()), f"a {task.name.lower()} score is not finite")


def _check_candidates(model: Any, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    if Task.LINK not in answers:
        return
    whole, entities = answers[Task.LINK], model.sizes.entities
    rows = torch.nonzero(asked.task == Task.LINK).squeeze(1)
    with torch.no_grad():
        question = model.read(asked.batch).take(rows)
        middle = entities // 2
        halves = [model.score(question, EntityRange(a, b)) for a, b in ((0, middle), (middle, entities))]
        ids = torch.tensor([entities - 1, 0, middle])
        few = model.score(question, EntityIds(ids))
        many = torch.stack([ids.roll(int(row)) for row in rows])
        each = model.score(question, EntityIds(many))
    _require(_close(torch.cat(halves, 1), whole), "a range of entities is scored differently from all")
    _require(_close(few, whole[:, ids]), "chosen entities are scored differently from all")
    _require(_close(each, whole.gather(1, many)), "entities chosen by row are scored differently")


def _check_padding(model: Any, facts: FactTensors, answers: dict[Task, Tensor]) -> None:
    wide = _every_question(model, facts, wider=2)
    absent = ~wide.batch.qualifier_present
    generator = torch.Generator().manual_seed(1)
    noise = torch.randint(0, min(model.sizes.entities, model.sizes.relations), absent.shape, generator=generator)
    garbage = wide.batch.with_tensors(
        qualifier_relation=torch.where(absent, noise, wide.batch.qualifier_relation),
        qualifier_entity=torch.where(absent, noise, wide.batch.qualifier_entity),
        qualifier_number=torch.where(absent, float("nan"), wide.batch.qualifier_number),
        qualifier_value=torch.where(absent, float("nan"), wide.batch.qualifier_value),
        qualifier_is_number=wide.batch.qualifier_is_number | (absent & (noise % 2 == 0)),
    )
    _same(answers, _answers(model, wide.batch), "more padding changes an answer")
    _same(answers, _answers(model, garbage), "what stands in the padding changes an answer")


def _check_order(model: Any, facts: FactTensors, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    order = []
    for span in asked.layout.spans():
        mixed = torch.randperm(span.size, generator=torch.Generator().manual_seed(2)) + span.rows.start
        order.append(mixed)
    rows = torch.cat(order)
    batch, _ = mask(facts, asked.owner[rows], asked.batch.asked[rows], asked.layout)
    found = _answers(model, batch)
    for task, scores in answers.items():
        place = torch.nonzero(asked.task[rows] == task).squeeze(1)
        before = torch.nonzero(asked.task == task).squeeze(1)
        back = torch.searchsorted(before, rows[place])
        _require(_close(found[task], scores[back]), f"the order of rows changes an answer ({task.name.lower()})")


def _check_no_peeking(model: Any, facts: FactTensors, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    """Each question is asked again about a fact with another answer in the masked place."""
    for position in torch.unique(asked.batch.asked).tolist():
        changed = exchanged(facts, position)
        batch, _ = mask(changed, asked.owner, asked.batch.asked, asked.layout)
        found = _answers(model, batch)
        mine = asked.batch.asked == position
        for task, scores in answers.items():
            rows = mine[asked.task == task]
            same = _close(found[task][rows], scores[rows])
            _require(same, f"the masked answer at position {position} changes its own score: the model peeks")


def _check_looking(model: Any, facts: FactTensors, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    """Changing what a model says it reads must change some answer."""

    def differs(changed: FactTensors) -> bool:
        batch, _ = mask(changed, asked.owner, asked.batch.asked, asked.layout)
        found = _answers(model, batch)
        return any(not _close(found[task], scores) for task, scores in answers.items())

    triplet = exchanged(exchanged(exchanged(facts, 0), 1), 2)
    _require(differs(triplet), "the model does not look at the triplet")
    if Part.QUALIFIERS in model.reads:
        relation = replace(facts, qualifier_relation=next_id(facts.qualifier_relation, facts.sizes.relations))
        _require(differs(relation), "the model says it reads qualifiers, but no answer depends on their relations")
        entity = replace(facts, qualifier_entity=next_id(facts.qualifier_entity, facts.sizes.entities))
        _require(differs(entity), "the model says it reads qualifiers, but no answer depends on their values")
    if Part.NUMBERS in model.reads:
        numbers = replace(facts, tail_number=facts.tail_number + 0.5, qualifier_number=facts.qualifier_number + 0.5)
        numbers = replace(numbers, tail_value=facts.tail_value + 0.5, qualifier_value=facts.qualifier_value + 0.5)
        numbers = replace(numbers, tail_entity=next_literal(numbers, numbers.tail_entity))
        _require(differs(numbers), "the model says it reads numbers, but no answer depends on them")


def _check_observing(model: Any, facts: FactTensors, asked: _EveryQuestion, answers: dict[Task, Tensor]) -> None:
    """Other observed facts change some answer; the first ones bring the first answers back."""
    _require(callable(getattr(model, "observe", None)), "the model says it reads observed facts, but has no observe")
    model.observe(exchanged(exchanged(facts, 0), 2))
    found = _answers(model, asked.batch)
    differs = any(not _close(found[task], scores) for task, scores in answers.items())
    _require(differs, "the model says it reads observed facts, but no answer depends on them")
    model.observe(facts)
    _same(answers, _answers(model, asked.batch), "the same observed facts give other answers the second time")


def _check_vectors(model: Any) -> None:
    entities = model.sizes.entities
    if isinstance(model, EmbedsEntities):
        shape = tuple(model.entity_vectors().shape)
        fits = len(shape) == 2 and shape[0] >= entities
        _require(fits, f"entity_vectors have shape {shape}, with no row for each of {entities} entities")


def _check_gradients(model: Any, asked: _EveryQuestion) -> None:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        return
    question = model.read(asked.batch)
    total = torch.zeros(())
    for task, kind in ((Task.LINK, Entities()), (Task.RELATION, Relations()), (Task.NUMBER, ScaledNumber())):
        rows = torch.nonzero(asked.task == task).squeeze(1)
        scores = model.score(question.take(rows), kind) if len(rows) else total
        total = total + (scores.square().sum() if scores.requires_grad else 0)
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    gradients = [gradient for gradient in found if gradient is not None]
    _require(bool(gradients), "no answer depends on any parameter")
    _require(all(bool(torch.isfinite(g).all()) for g in gradients), "a gradient is not finite")
    _require(any(bool((g != 0).any()) for g in gradients), "all gradients are zero")


def _check_phases(model: Any, train: FactTensors) -> None:
    """The phases are those declared, an epoch follows from (seed, epoch) alone, and a step can be learned from."""
    phases = model.phases(train, PhaseSettings(batch_size=8, epochs=1))
    found = tuple(type(phase.stream) for phase in phases)
    _require(found == model.streams, f"the phases train on {_named(found)}, but streams says {_named(model.streams)}")
    model.train()
    own = {id(parameter) for parameter in model.parameters()}
    for phase in phases:
        name = phase.name
        _require(bool(phase.parameters), f"the phase {name!r} moves nothing")
        moved = (*phase.parameters, *phase.second)
        _require({id(one) for one in moved} <= own, f"the phase {name!r} moves parameters that the model does not have")
        epoch, again = phase.stream.epoch(3, 1), phase.stream.epoch(3, 1)
        _require(len(epoch) == len(again) > 0, f"an epoch of {name!r} does not follow from its seed")
        for index in range(len(epoch)):
            one, other = epoch.items(index), again.items(index)
            same = one.shape == other.shape and all(map(torch.equal, one.tensors, other.tensors))
            _require(same, f"an epoch of {name!r} does not follow from its seed")
        items = epoch.items(0)
        loss = phase.stream.loss_for(items.shape)(model, items.tensors)
        _require(
            loss.sums.shape == loss.counts.shape == (len(phase.stream.parts),), f"{name!r} does not tell its parts"
        )
        _require(bool(torch.isfinite(loss.total)), f"the loss of {name!r} is not finite")
        learns = phase.second if loss.second else phase.parameters
        gradients = torch.autograd.grad(loss.total, learns, allow_unused=True)
        felt = any(gradient is not None and bool((gradient != 0).any()) for gradient in gradients)
        _require(felt, f"the loss of {name!r} depends on no parameter that its phase moves")


def _named(streams: tuple[type[ItemStream], ...]) -> str:
    return ", then ".join(stream.__name__ for stream in streams) or "nothing"
