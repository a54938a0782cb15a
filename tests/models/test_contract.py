"""The contract holds for HyNT in every form, and catches models that break it."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import mask
from hynt.config import from_mapping
from hynt.errors import UsageError
from hynt.models.checking import ContractError, check_model
from hynt.models.contract import (
    EVERYWHERE,
    READS_A_FACT,
    EmbedsEntities,
    EncodedQuestion,
    Model,
    Position,
    Relations,
    ScaledNumber,
    Task,
    position_of,
)
from hynt.models.hynt import Hynt, HyntSettings
from hynt.models.registry import MODELS, build
from hynt.objectives.masked_facts import MaskedComponents, MaskedFacts
from hynt.objectives.streams import Phase, trainable
from hynt.training.resolve_settings import PRESETS
from tests.models.small_models import FORMS, SMALL, facts_of


@pytest.mark.parametrize("form", FORMS)
def test_hynt_holds_the_contract(form):
    check_model(lambda sizes, train: Hynt.build(sizes, train, FORMS[form]))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "hynt"])
def test_every_other_registered_model_holds_the_contract(name):
    """In small: a model of the paper's size would take minutes here and hold no other promise."""
    entry = MODELS.get(name)
    small = f"{name}-small"
    settings = from_mapping(entry.settings, PRESETS.get(small)["model"] if small in PRESETS else {})
    check_model(lambda sizes, train: entry.build(sizes, train, settings), literals=entry.needs_literals(settings))


TABLES = {
    **dict.fromkeys(("hynt", "stare", "hy-transformer", "ram", "hinge", "neuinfer"), "entity"),
    **dict.fromkeys(("transea", "mt-kgnn", "kbln"), "entities"),
    **dict.fromkeys(("nalp", "tnalp"), "relatedness.value"),
    "gran": "node",
}
EMBEDDING = {*TABLES, "literale", "hynt-inductive"}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_has_vectors_for_entities_where_it_says_so(name):
    entry, small = MODELS.get(name), f"{name}-small"
    settings = from_mapping(entry.settings, PRESETS.get(small)["model"] if small in PRESETS else {})
    facts = facts_of([0, 1] * 40, literals=entry.needs_literals(settings))
    model = entry.build(facts.sizes, facts, settings).eval()
    assert isinstance(model, EmbedsEntities) == (name in EMBEDDING)
    if name in TABLES:
        assert model.entity_vectors() is attrgetter(TABLES[name])(model)
    if name == "literale":
        assert model.entity_vectors().shape == (facts.sizes.entities, model.parts * settings.dimension)


@pytest.mark.parametrize("name", ["hynt-inductive", "gran", "nalp", "tnalp", "hinge", "neuinfer"])
def test_a_number_beside_a_hidden_relation_tells_nothing_of_its_scale(name):
    """It is scaled by the very relation that is asked for: only the paper's form of HyNT reads it nevertheless."""
    entry, small = MODELS.get(name), PRESETS.get(f"{name}-small")["model"]
    settings = from_mapping(entry.settings, small)
    facts = facts_of([0, 1] * 40, literals=entry.needs_literals(settings))
    changed = replace(facts, tail_number=facts.tail_number + 0.25, qualifier_number=facts.qualifier_number + 0.25)
    torch.manual_seed(0)
    model = entry.build(facts.sizes, facts, settings).eval()
    first = facts.qualifier_is_number[facts.offsets[:-1]]
    alone = facts.qualifier_counts() == 0
    for chosen, position in ((facts.tail_is_number & alone, 1), (~facts.tail_is_number & ~alone & first, 3)):
        at = torch.nonzero(chosen).flatten()
        layout, asked = layout_of([(len(at), position // 2)]), torch.full_like(at, position)
        with torch.no_grad():
            pair = (model.score(model.read(mask(one, at, asked, layout)[0]), Relations()) for one in (facts, changed))
            assert len(at)
            assert torch.equal(*pair)


def test_hynt_with_discrete_numbers_holds_the_contract():
    settings = HyntSettings(**SMALL, numbers="discrete")
    check_model(lambda sizes, train: Hynt.build(sizes, train, settings), literals=True)


class IgnoresNumbers(Hynt):
    """Says it reads numbers and does not."""

    def read(self, batch):
        blank = torch.zeros_like(batch.tail_number)
        return super().read(
            batch.with_tensors(tail_number=blank, qualifier_number=torch.zeros_like(batch.qualifier_number))
        )


class ReadsPadding(Hynt):
    """Looks at slots that hold no qualifier."""

    def read(self, batch):
        return super().read(batch.with_tensors(qualifier_present=torch.ones_like(batch.qualifier_present)))


class DependsOnOrder(Hynt):
    """Gives the first rows other answers than the last."""

    def read(self, batch):
        question = super().read(batch)
        return EncodedQuestion(question.encoded + torch.arange(len(batch)).unsqueeze(1) * 0.01, question.relation)


class NotFinite(Hynt):
    """Gives a score that is not a number."""

    def score(self, question, candidates):
        return super().score(question, candidates) / 0.0


class OddShape(Hynt):
    """Gives numbers a dimension too many."""

    def score(self, question, candidates):
        scores = super().score(question, candidates)
        return scores.unsqueeze(1) if isinstance(candidates, ScaledNumber) else scores


class ClaimsTooMuch(Hynt):
    """Claims a task no fact has."""

    answers = EVERYWHERE | {(Task.NUMBER, Position.HEAD)}


class EmbedsTooFew(Hynt):
    """Has vectors for some entities alone."""

    def entity_vectors(self):
        return super().entity_vectors()[:3]


class OtherStreams(Hynt):
    """Trains on something else than it says."""

    streams = (MaskedComponents,)


class ByTheClock(MaskedFacts):
    """Draws anew whenever it is asked."""

    drawn = 0

    def epoch(self, seed, epoch):
        ByTheClock.drawn += 1
        return super().epoch(seed, ByTheClock.drawn)


class ForgetsTheSeed(Hynt):
    """Has an epoch that is another each time."""

    streams = (ByTheClock,)

    def phases(self, train, settings):
        return [Phase(ByTheClock(train, settings.batch_size), trainable(self), settings.epochs)]


class MovesNothingItUses(Hynt):
    """Lets its phase move a parameter that the loss does not depend on."""

    def phases(self, train, settings):
        self.idle = torch.nn.Parameter(torch.ones(1))
        return [replace(phase, parameters=(self.idle,)) for phase in super().phases(train, settings)]


class MovesAnother(Hynt):
    """Lets its phase move what is not the model's."""

    def phases(self, train, settings):
        alien = torch.nn.Parameter(torch.ones(1))
        return [replace(phase, parameters=(*phase.parameters, alien)) for phase in super().phases(train, settings)]


@pytest.mark.parametrize(
    "kind, reason",
    [
        (OtherStreams, "the phases train on MaskedFacts, but streams says MaskedComponents"),
        (ForgetsTheSeed, "an epoch of 'masked facts' does not follow from its seed"),
        (MovesNothingItUses, "depends on no parameter that its phase moves"),
        (MovesAnother, "moves parameters that the model does not have"),
        (IgnoresNumbers, "the model says it reads numbers, but no answer depends on them"),
        (ReadsPadding, "more padding changes an answer"),
        (DependsOnOrder, "the order of rows changes an answer"),
        (NotFinite, "a link score is not finite"),
        (OddShape, "number scores have shape"),
        (ClaimsTooMuch, "no fact has"),
        (EmbedsTooFew, r"entity_vectors have shape \(3, 16\), with no row for each of 17 entities"),
    ],
)
def test_a_model_that_breaks_the_contract_is_caught(kind, reason):
    with pytest.raises(ContractError, match=reason):
        check_model(lambda sizes, train: kind.build(sizes, train, FORMS["paper"]))


def test_a_model_that_peeks_is_caught(monkeypatch):
    """The answer is nowhere in a batch, so peeking needs a leak in the hiding itself: here it forgets to hide heads."""
    from hynt.batches import masked_batch
    from hynt.models import checking

    def forgetful(facts, rows, asked, layout):
        batch, answers = masked_batch.mask(facts, rows, asked, layout)
        return batch.with_tensors(head=facts.head[rows].long()), answers

    monkeypatch.setattr(checking, "mask", forgetful)
    with pytest.raises(ContractError, match="the masked answer at position 0 changes its own score: the model peeks"):
        check_model(lambda sizes, train: Hynt.build(sizes, train, FORMS["paper"]))


def test_the_registry_builds_models_from_names_and_settings():
    facts = facts_of([0, 1, 2])
    model = build("hynt", facts.sizes, facts, {"dimension": 32, "tied_output": True})
    assert isinstance(model, Model)
    assert model.settings == HyntSettings(dimension=32, tied_output=True)
    assert isinstance(build("hynt", facts.sizes, facts), Hynt)
    entry = MODELS.get("hynt")
    assert (entry.answers, entry.reads, entry.streams) == (EVERYWHERE, READS_A_FACT, Hynt.streams)
    assert entry.needs_literals(HyntSettings(numbers="discrete"))
    assert not entry.needs_literals(HyntSettings())


def test_unknown_names_and_settings_are_refused_with_advice():
    facts = facts_of([0])
    with pytest.raises(UsageError, match="unknown model 'hint'"):
        build("hint", facts.sizes, facts)
    with pytest.raises(UsageError, match=r"hynt\.dimensions: unknown setting"):
        build("hynt", facts.sizes, facts, {"dimensions": 3})
    with pytest.raises(UsageError, match="the dimension 30 cannot be shared among 16 heads"):
        build("hynt", facts.sizes, facts, {"dimension": 30})


def test_positions_of_qualifiers_are_alike():
    names = [list(Position)[index] for index in position_of(torch.arange(9)).tolist()]
    assert names[:3] == [Position.HEAD, Position.RELATION, Position.TAIL]
    assert names[3:] == [Position.QUALIFIER_RELATION, Position.QUALIFIER_VALUE] * 3
