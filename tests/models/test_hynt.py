"""HyNT beyond the oracle: layers against torch's own, options, hiding numbers, and learning a small graph by heart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hynt.batches.buckets import layout_of, rows_by_bucket
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Task, mask
from hynt.models.contract import Entities, Relations, ScaledNumber, Tokens
from hynt.models.hynt import Hynt, HyntSettings, as_released
from hynt.models.layers.transformer import TokenGroup, Transformer, TransformerLayer
from hynt.objectives.losses import LossSettings, joint_loss, masked_fact_losses
from hynt.objectives.masked_facts import PackedStep, StepShape
from tests.models.small_models import FORMS, SMALL, facts_of, small_model


def test_a_layer_equals_torchs_own():
    torch.manual_seed(0)
    mine = TransformerLayer(16, 4, 24, 0.0)
    its = nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True)
    pairs = [
        (its.self_attn.in_proj_weight, mine.projection.weight),
        (its.self_attn.in_proj_bias, mine.projection.bias),
        (its.self_attn.out_proj.weight, mine.output.weight),
        (its.self_attn.out_proj.bias, mine.output.bias),
        (its.linear1.weight, mine.expand.weight),
        (its.linear1.bias, mine.expand.bias),
        (its.linear2.weight, mine.contract.weight),
        (its.linear2.bias, mine.contract.bias),
    ]
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(ours)
    tokens = torch.randn(5, 3, 16)
    present = torch.tensor([[True, True, True]] * 3 + [[True, False, True], [True, False, False]])
    expected = its(tokens, src_key_padding_mask=~present)
    found = mine(tokens.flatten(0, 1), [TokenGroup(5, 3, present)]).view(5, 3, 16)
    torch.testing.assert_close(found[present], expected[present], rtol=1e-5, atol=1e-5)


def test_the_asked_tokens_of_the_last_layer_equal_those_of_a_whole_layer():
    torch.manual_seed(0)
    layer = TransformerLayer(8, 2, 12, 0.0)
    groups = [
        TokenGroup(3, 1, None),
        TokenGroup(2, 2, torch.tensor([[True, True], [True, False]])),
        TokenGroup(1, 3, None),
    ]
    tokens = torch.randn(sum(group.tokens for group in groups), 8)
    asked = torch.tensor([0, 1, 2, 4, 5, 9])
    torch.testing.assert_close(layer(tokens, groups, asked), layer(tokens, groups)[asked])


def test_a_lone_token_attends_to_itself_as_torch_would():
    torch.manual_seed(0)
    layer = TransformerLayer(8, 2, 12, 0.0)
    tokens = torch.randn(4, 8)
    alone = layer(tokens, [TokenGroup(4, 1, None)])
    beside_padding = torch.stack([tokens, torch.randn(4, 8)], 1).flatten(0, 1)
    present = torch.tensor([[True, False]] * 4)
    torch.testing.assert_close(alone, layer(beside_padding, [TokenGroup(4, 2, present)])[::2])


def test_dropout_drops_in_training_only():
    torch.manual_seed(0)
    layer = TransformerLayer(8, 2, 12, 0.5)
    groups = [TokenGroup(40, 1, None), TokenGroup(20, 2, None)]
    tokens = torch.randn(80, 8)
    assert not torch.equal(layer(tokens, groups), layer(tokens, groups))
    layer.eval()
    assert torch.equal(layer(tokens, groups), layer(tokens, groups))


def test_layers_start_equal_only_where_asked():
    for equal in (True, False):
        first, second = Transformer(8, 2, 2, 12, 0.0, equal_start=equal).layers
        assert torch.equal(first.expand.weight, second.expand.weight) == equal
        assert first.expand.weight is not second.expand.weight


def test_the_parameters_of_each_option():
    facts = facts_of([0, 1, 2])
    entities, relations, d = facts.sizes.entities, facts.sizes.relations, SMALL["dimension"]

    def count(**more):
        model = Hynt.build(facts.sizes, facts, HyntSettings(**SMALL | more))
        return sum(parameter.numel() for parameter in model.parameters())

    whole = count()
    assert whole - count(tied_output=True) == entities * d
    assert whole - count(number_bias=False) == (relations + 1) * d
    assert count(encoding_bias=True) - whole == 2 * d
    layer = 4 * d * d + 4 * d + 2 * 20 * d + 20 + d + 4 * d
    assert count(prediction_layers=3) - whole == layer
    assert count(prediction="linear") - whole == 7 * d * d + 2 * d - 2 * layer


def test_as_released_switches_every_difference():
    settings = as_released(HyntSettings(dropout=0.3, position_scale=0.25, context_scale=0.1))
    assert settings.dropout == 0.3
    assert not settings.number_bias
    assert settings.encoding_bias
    assert not settings.context_position
    assert settings.number_of_hidden_relation == "entity"
    assert settings.equal_start
    assert settings.position_scale == settings.context_scale == 1.0


def test_context_scale_is_how_large_the_context_starts_and_changes_nothing_else():
    facts = facts_of([0, 1, 2])
    rows = torch.arange(len(facts))
    batch, _ = mask(facts, rows, torch.zeros_like(rows), layout_of([(1, 0), (1, 1), (1, 2)]))
    made = []
    for scale in (1.0, 0.1):
        torch.manual_seed(0)
        made.append(Hynt(facts.sizes, HyntSettings(**SMALL, context_scale=scale)).eval())
    of_one, of_a_tenth = made
    with torch.no_grad():
        z = [model._context(batch, model._embed(batch)) for model in made]
    torch.testing.assert_close(z[1], 0.1 * z[0])
    gain = "context.layers.1.feedforward_norm.weight"
    for (name, one), other in zip(of_one.named_parameters(), of_a_tenth.parameters(), strict=True):
        assert torch.equal(one, other) != (name == gain), name


def test_discrete_numbers_need_literals_and_nothing_else_takes_them():
    facts = facts_of([0, 1])
    with pytest.raises(ValueError, match='numbers="discrete" needs the values of the literals'):
        Hynt(facts.sizes, HyntSettings(**SMALL, numbers="discrete"))


def test_a_discrete_number_is_the_value_of_the_best_literal_of_its_relation():
    facts = facts_of([0, 1, 2] * 12, literals=True)
    model = small_model(HyntSettings(**SMALL, numbers="discrete"), facts)
    rows = torch.nonzero(facts.tail_is_number & (facts.qualifier_counts() == 0)).squeeze(1)
    batch, _ = mask(facts, rows, torch.full_like(rows, 2), layout_of([(len(rows), 0)]))
    with torch.no_grad():
        question = model.read(batch)
        found, logits = model.score(question, ScaledNumber()), model.score(question, Tokens())
    for row, fact in enumerate(rows.tolist()):
        relation = int(facts.relation[fact])
        options = {}
        for column, numbers, relations in (
            (facts.tail_entity, facts.tail_number, facts.relation),
            (facts.qualifier_entity[:-1], facts.qualifier_number[:-1], facts.qualifier_relation[:-1]),
        ):
            chosen = (relations == relation) & (column > facts.sizes.entities)
            options |= dict(zip(column[chosen].tolist(), numbers[chosen].tolist(), strict=True))
        best = max(options, key=lambda token: float(logits[row, token - 1]))
        assert float(found[row]) == options[best]


def every_question_at_once(facts: FactTensors) -> PackedStep:
    """All questions about the facts as one step."""
    components = AskableComponents.of(facts)
    found = rows_by_bucket(facts.qualifier_counts()[components.owner()])
    order = torch.cat([rows for _, rows in found])
    layout = layout_of([(len(rows), capacity) for capacity, rows in found])
    asking = [torch.nonzero(components.task[order] == task).squeeze(1) for task in Task]
    indices = torch.cat([components.owner()[order], components.position[order], *asking])
    links, relations, numbers = (len(rows) for rows in asking)
    return PackedStep(StepShape(layout, (links, relations, numbers)), indices, torch.ones(links + relations + numbers))


@pytest.mark.parametrize("form", ["paper", "released"])
def test_a_small_graph_is_learned_by_heart(form):
    """Forty facts none of whose questions has two answers: links and relations at rank 1, numbers to a hundredth."""
    facts = facts_of([0] * 20 + [1] * 10 + [2] * 6 + [4] * 4, seed=1)
    torch.manual_seed(0)
    sizes = {"dimension": 64, "context_heads": 4, "prediction_heads": 4, "context_layers": 1, "prediction_layers": 1}
    settings = HyntSettings(**sizes, context_feedforward=128, prediction_feedforward=128, dropout=0.0)
    model = Hynt.build(facts.sizes, facts, as_released(settings) if form == "released" else settings)
    optimiser = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 300)
    step = every_question_at_once(facts)
    batch, answers = mask(facts, step.rows, step.asked, step.shape.layout)
    for _ in range(300):
        optimiser.zero_grad()
        loss = joint_loss(masked_fact_losses(model, batch, answers, step.asks, 0.0), LossSettings(number_weight=5.0))
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        question = model.eval().read(batch)
    for task, kind, truth in ((Task.LINK, Entities(), "entity"), (Task.RELATION, Relations(), "relation")):
        rows = step.asks.rows[task]
        scores, answer = model.score(question.take(rows), kind), getattr(answers, truth)[rows].unsqueeze(1)
        rank = 1 + (scores > scores.gather(1, answer)).sum(1)
        assert float((1 / rank).mean()) == 1.0, task
    rows = step.asks.rows[Task.NUMBER]
    error = (model.score(question.take(rows), ScaledNumber()) - answers.number[rows]).detach()
    assert float(error.square().mean().sqrt()) < 0.01


@pytest.mark.parametrize(("beside", "tells"), [("relation", True), ("entity", True), ("hidden", False)])
def test_a_number_beside_a_hidden_relation_tells_of_it_unless_it_is_hidden_too(beside, tells):
    """It is scaled by the very relation that is asked for, so whoever sees it sees a little of the answer."""
    from dataclasses import replace

    from hynt.models.contract import Relations

    facts = facts_of([0, 1, 2, 3] * 5)
    changed = replace(facts, tail_number=facts.tail_number + 0.25, qualifier_number=facts.qualifier_number + 0.25)
    model = small_model(replace(HyntSettings(**SMALL), number_of_hidden_relation=beside), facts)
    at = torch.nonzero(facts.tail_is_number & (facts.qualifier_counts() == 0)).flatten()
    asked, layout = torch.full_like(at, 1), layout_of([(len(at), 0)])
    before, after = (
        model.score(model.read(mask(which, at, asked, layout)[0]), Relations()) for which in (facts, changed)
    )
    assert len(at)
    assert torch.equal(before, after) is not tells


def test_the_forms_are_all_different():
    facts = facts_of([2] * 10)
    zero = torch.zeros(10, dtype=torch.int64)
    batch, _ = mask(facts, torch.arange(10), zero + 1, layout_of([(10, 2)]))
    encoded = [small_model(form, facts).read(batch).encoded for form in FORMS if form not in ("tied",)]
    for index, one in enumerate(encoded):
        for other in encoded[index + 1 :]:
            assert not torch.allclose(one, other)
