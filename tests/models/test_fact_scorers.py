"""What NaLP, tNaLP, HINGE and NeuInfer, which score whole facts, and RAM hold alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.corruption import Corruption
from hynt.batches.masked_batch import fill, mask
from hynt.evaluation.evaluator import evaluate
from hynt.formats.from_python import graph_from_facts
from hynt.models.contract import Entities, EntityIds, Relations, ScaledNumber, Tokens
from hynt.models.layers.relatedness import weighed
from hynt.objectives.negatives import NegativeFacts
from tests.models.fact_scorers import FACTS, SMALL, asked_of, model_for, scored, substituted, whole, with_qualifiers
from tests.models.first_steps import trained
from tests.models.small_models import facts_of
from tests.training.small_graph import forty_facts, small_graph

SCORERS = ["nalp", "tnalp", "hinge", "neuinfer"]
PAIRS = [(0, 3), (1, 4), (3, 2)]

WIDE = {
    "nalp": {"dimension": 32, "filters": 32, "hidden": 64},
    "tnalp": {"dimension": 32, "filters": 32, "hidden": 64, "type_dimension": 16, "type_hidden": 32},
    "hinge": {"dimension": 16, "filters": 16, "relation_share": 0.2},
    "neuinfer": {"dimension": 32, "hidden": 64},
    "ram": {"dimension": 32, "entity_dropout": 0.0},
}
"""Wide enough to learn something by heart, and for every qualifier to have the lowest of some feature."""


@pytest.mark.parametrize("name", [*SCORERS, "neuinfer, two layers"])
def test_a_question_gets_the_same_bits_in_any_company(name):
    """In one shape of tile, whoever else is in it: rounding differs between shapes, and between places in them."""
    name, deep, _ = name.partition(",")
    facts = facts_of([1] * 64, literals=True)
    layers = {"validity_layers": 2, "compatibility_layers": 2} if deep else {}
    model = model_for(name, facts, **WIDE[name], **layers)
    layout, every = layout_of([(64, 1)]), torch.arange(64)
    wanted = {
        EntityIds(torch.arange(777) % facts.sizes.entities): torch.tensor([0, 2, 4])[every % 3],
        Relations(): torch.tensor([1, 3])[every % 2],
        ScaledNumber(): torch.tensor([2, 4])[every % 2],
    }
    for candidates, asked in wanted.items():

        def scores(rows, asked=asked, candidates=candidates):
            with torch.no_grad():
                return model.score(model.read(mask(facts, rows, asked[rows], layout)[0]), candidates)

        together = scores(every)
        for company in ((every * 5 + 3) % 64, every % 7, every * 0 + 9):
            assert torch.equal(scores(company), together[company])


def test_an_outcome_is_the_layers_while_training_too():
    output = torch.nn.Linear(7, 1)
    both = []
    for training in (False, True):
        features = torch.linspace(-2, 3, 35).view(5, 7).requires_grad_()
        output.train(training).zero_grad()
        weighed(features, output).sin().sum().backward()
        both.append([weighed(features, output), features.grad, output.weight.grad.clone(), output.bias.grad.clone()])
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other)
    assert both[0][0].shape == (5,)


@pytest.mark.parametrize("name", ["nalp", "tnalp"])
def test_role_and_value_together_make_the_sum_of_their_parts(name):
    model = model_for(name, FACTS)
    roles, values = torch.tensor([0, 5, 2, 2]), torch.tensor([3, 0, 1, 7])
    for channel in model.channels:
        torch.testing.assert_close(
            channel.both(roles, values), channel.role_part(roles) + channel.value_part(values), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", [*SCORERS, "neuinfer, two layers"])
def test_candidates_score_as_the_facts_they_make(name):
    deep = {"validity_layers": 2, "compatibility_layers": 2} if "," in name else {}
    model = model_for(name.partition(",")[0], FACTS, **deep)
    tokens = [*range(FACTS.sizes.entities), *range(FACTS.sizes.entities + 1, sum(FACTS.sizes[::2]) + 1)]
    for row in range(5):
        for position in range(3 + 2 * int(FACTS.qualifier_counts()[row])):
            kind, ids = (Relations(), range(FACTS.sizes.relations)) if position % 2 else (Tokens(), tokens)
            with torch.no_grad():
                found = model.score(model.read(asked_of(FACTS, row, position)), kind)[0]
            expected = substituted(model, FACTS, row, position, ids)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, msg=f"{name}, {position} of {row}")


@pytest.mark.parametrize("name", SCORERS)
def test_the_order_of_qualifiers_does_not_matter_and_a_repeated_one_changes_nothing(name):
    model = model_for(name, FACTS, **WIDE[name])
    score = scored(model, whole(with_qualifiers(FACTS, PAIRS), 0))
    assert scored(model, whole(with_qualifiers(FACTS, PAIRS[::-1]), 0)) == pytest.approx(score, abs=1e-5)
    assert scored(model, whole(with_qualifiers(FACTS, [*PAIRS, PAIRS[1]]), 0)) == pytest.approx(score, abs=1e-5)
    assert scored(model, whole(with_qualifiers(FACTS, PAIRS[:2]), 0)) != pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("name", SCORERS)
def test_padding_and_filler_reach_neither_scores_nor_statistics(name):
    """In training, where statistics are those of the batch."""
    outcomes = []
    for extra, filler in ((0, 0), (3, 0), (3, 2)):
        model = model_for(name, FACTS).train()
        rows = torch.tensor([1, 2, 3] + [4] * filler)
        layout = layout_of([(len(rows), (5 if filler else 3) + extra)])
        batch, answers = mask(FACTS, rows, torch.zeros_like(rows), layout)
        real = torch.arange(len(rows)) < 3
        scores = model.score_facts(fill(batch, answers.entity, answers.relation), real)[:3]
        scores.sum().backward()
        state = {key: value for key, value in model.named_buffers() if "running" in key}
        gradients = {key: value.grad for key, value in model.named_parameters() if value.grad is not None}
        outcomes.append((scores.detach(), state, gradients))
    first = outcomes[0]
    for other in outcomes[1:]:
        torch.testing.assert_close(other[0], first[0])
        torch.testing.assert_close(other[1], first[1])
        torch.testing.assert_close(other[2], first[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_numbers_are_values_that_the_relation_had_in_training(name):
    graph = small_graph()
    model, _, data = trained(name, graph, settings_of(name), 3)
    facts = data.facts
    row = int(torch.nonzero(facts.tail_is_number)[0])
    with torch.no_grad():
        value = float(model.score(model.read(asked_of(facts, row, 2)), ScaledNumber()))
    met = facts.tail_number[facts.relation == facts.relation[row]]
    assert float((met - value).abs().min()) < 1e-6
    softened, _, _ = trained(name, graph, settings_of(name, numbers="softmax-mean"), 3)
    with torch.no_grad():
        mean = float(softened.score(softened.read(asked_of(facts, row, 2)), ScaledNumber()))
    assert float(met.min()) < mean < float(met.max())
    assert mean != value


def settings_of(name, batch=32, rate=2e-3, **model):
    return {
        "batch_size": batch,
        "optimiser": {"learning_rate": rate},
        "losses": {"smoothing": 0.0},
        "schedule": {"shape": "steps", "decay": 1.0},
        "model": {**SMALL[name], **model},
    }


@pytest.mark.parametrize("name", SMALL)
def test_facts_with_358_qualifiers_are_learnt_and_asked_about(name):
    """The paper could run none of these models on such facts. A minimum over so many leaves hardly a feature above 0,
    so candidates may tie; RAM's products must not.
    """
    facts = [(f"a{i}", "knows", f"a{(i + 1) % 9}", [("in", f"b{i % 3}")]) for i in range(9)]
    for i in range(2):
        long = [("seen", f"b{j % 7}") if j % 2 else ("year", 1900 + j % 50) for j in range(358)]
        facts.append((f"a{i}", "met", f"a{i + 4}", long))
    graph = graph_from_facts({"train": facts, "test": [*facts[:2], facts[-1]]}, name="long")
    changes = {"instances": 4} if name == "ram" else {}
    model, losses, data = trained(name, graph, settings_of(name, **changes), 4)
    assert all(torch.isfinite(torch.tensor(losses)))
    row = len(facts) - 1
    for position in (0, 2, 4, 3 + 2 * 357 + 1):
        with torch.no_grad():
            scores = model.score(model.read(asked_of(data.facts, row, position)), Entities())
        assert bool(torch.isfinite(scores).all())
        assert name != "ram" or len(torch.unique(scores)) > 5, "products of 359 factors still differ"


@pytest.mark.parametrize("name", SMALL)
def test_a_few_facts_are_learnt_by_heart(name):
    graph = forty_facts()
    model, losses, data = trained(name, graph, settings_of(name, batch=40, rate=5e-3, **WIDE[name]), 300)
    assert sum(losses[-10:]) < 0.4 * sum(losses[:10])
    found = evaluate(model, graph, data.scaling, "train", literals=data.literals)
    assert found.metric("link.all.mrr") > 0.75


@pytest.mark.parametrize("name", SCORERS)
def test_the_loss_compiles_in_one_piece(name):
    model = model_for(name, FACTS).train()
    stream = NegativeFacts(FACTS, 4, Corruption(relations=0.5))
    shape, tensors = stream.epoch(0, 0).items(0)
    plain = stream.loss_for(shape)
    expected = plain(model, tensors).total
    compiled = torch.compile(plain, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(model, tensors).total, expected)


@pytest.mark.parametrize("name", SCORERS)
def test_a_literal_that_training_lacks_is_read_as_the_mean_of_literals_where_asked(name):
    unknown = FACTS.sizes.mask_entity
    row = int(torch.nonzero(FACTS.qualifier_counts() >= 2)[0])
    facts = replace(FACTS, tail_entity=FACTS.tail_entity.clone())
    facts.tail_entity[row] = unknown
    batch = asked_of(facts, row, 1)
    mean, own = model_for(name, FACTS, unseen="mean"), model_for(name, FACTS)
    with torch.no_grad():
        before = own.score(own.read(batch), Relations())
        found = mean.score(mean.read(batch), Relations())
        tables = [own.entity] if name in ("hinge", "neuinfer") else [channel.value for channel in own.channels]
        for table in tables:
            table[unknown] = table[unknown + 1 :].mean(0)
        expected = own.score(own.read(batch), Relations())
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, before)
