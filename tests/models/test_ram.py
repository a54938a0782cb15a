"""RAM: patterns, products, composite relations, its size and its first losses."""

from __future__ import annotations

import math

import pytest
import torch

from hynt.models.contract import Tokens
from hynt.models.ram import FLOOR, CompositeRelations, _product
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.process import phases_for
from tests.models.fact_scorers import FACTS, asked_of, model_for, with_qualifiers
from tests.models.first_steps import CPU, trained
from tests.models.small_models import facts_of
from tests.training.small_graph import small_graph, tiny_settings


def positions_of(facts, row):
    """(relation, entity id) of head, tail and qualifiers in RAM's order, and the qualifiers' own order."""
    start, end = int(facts.offsets[row]), int(facts.offsets[row + 1])
    pairs = [(int(facts.qualifier_relation[i]), int(facts.qualifier_entity[i]), i - start) for i in range(start, end)]
    return int(facts.head[row]), int(facts.tail_entity[row]), sorted(pairs)


def naive(model, facts, row, asked):
    """(tokens,) scores by the paper's formula, one candidate at a time, with loops for its sums."""
    d, m, k = model.settings.dimension, model.settings.parts, model.settings.basis
    head, tail, pairs = positions_of(facts, row)
    ids = [head, tail, *(v for _, v, _ in pairs)]
    n, entities = len(ids), facts.sizes.entities
    if asked > 2:
        # Among equal relations values stand by id, and a masked value has an id of its own.
        slot = (asked - 3) // 2
        pairs = sorted((q, entities if own == slot else v, own) for q, v, own in pairs)
        ids = [head, tail, *(v for _, v, _ in pairs)]
        hidden = 2 + [own for _, _, own in pairs].index(slot)
    else:
        hidden = 0 if asked == 0 else 1
    relations = torch.tensor([[q for q, _, _ in pairs]], dtype=torch.int64)
    first, seen = model.composites.lookup(facts.relation[row : row + 1].long(), relations, relations >= 0)
    assert bool(seen)
    alpha = model.role_logits[int(first) : int(first) + n].softmax(1)
    start = int(model.composites.arity_first[n])
    logits = model.pattern_logits[start : start + n].view(n, k, m)
    pattern = torch.stack([logits[:, basis].flatten().softmax(0).view(n, m) for basis in range(k)])
    of_role = torch.einsum("ak,kij->aij", alpha, pattern)
    torch.testing.assert_close(of_role.sum((1, 2)), torch.ones(n))
    roles = alpha @ model.basis
    table = model.entity.view(-1, m, d)

    def vector(entity):
        return table[model.tokens if entity == entities else entity - (entity > entities)]

    scores = []
    for candidate in range(model.tokens):
        total = 0.0
        for a in range(n):
            product = roles[a]
            for i in range(n):
                x = table[candidate] if i == hidden else vector(ids[i])
                product = product * (of_role[a, i].unsqueeze(1) * x).sum(0)
            total = total + product.sum()
        scores.append(total)
    return torch.stack(scores)


def test_scores_are_those_of_the_formula():
    model = model_for("ram", FACTS)
    for row in (0, 1, 3, 4):
        for asked in range(0, 3 + 2 * int(FACTS.qualifier_counts()[row]), 2):
            with torch.no_grad():
                found = model.score(model.read(asked_of(FACTS, row, asked)), Tokens())[0]
                expected = naive(model, FACTS, row, asked)
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-7, msg=f"{asked} of {row}")


def test_scores_grow_with_each_entity():
    """Multilinear: an entity twice as long makes every score of the question twice as high."""
    model = model_for("ram", FACTS)
    question = asked_of(FACTS, 1, 0)
    with torch.no_grad():
        before = model.score(model.read(question), Tokens())
        tail = int(question.tail_entity)
        row = tail - (tail > FACTS.sizes.entities)
        model.entity[row] *= 2
        after = model.score(model.read(question), Tokens())
    others = torch.arange(model.tokens) != row
    torch.testing.assert_close(after[:, others], 2 * before[:, others])


def test_with_one_basis_vector_all_roles_are_equal():
    model = model_for("ram", FACTS, basis=1)
    shown = torch.ones(1, 4, dtype=torch.bool)
    weights = model._role_weights(FACTS.relation[:1].long(), torch.zeros(1, 2, dtype=torch.int64), shown, None)
    torch.testing.assert_close(weights, torch.ones(1, 4, 1))


def test_composite_relations_know_every_fact_they_were_made_of_in_any_order():
    known = CompositeRelations.of(FACTS)
    for row in range(len(FACTS)):
        _, _, pairs = positions_of(FACTS, row)
        relations = torch.tensor([[q for q, _, _ in reversed(pairs)]], dtype=torch.int64)
        first, seen = known.lookup(FACTS.relation[row : row + 1].long(), relations, relations >= 0)
        assert bool(seen)
        count, here = FACTS.sizes.relations, int(FACTS.relation[row])
        places = known.place[int(first) : int(first) + 2 + len(pairs)].tolist()
        assert places == [here, count + here, *(2 * count + q for q, _, _ in pairs)]
    _, seen = known.lookup(torch.tensor([0]), torch.tensor([[8] * 9]), torch.ones(1, 9, dtype=torch.bool))
    assert not bool(seen)


def test_an_unseen_composite_relation_takes_the_mean_of_like_positions():
    model = model_for("ram", FACTS)
    fact = with_qualifiers(FACTS, [(int(FACTS.qualifier_relation[0]), 3)] * 9)
    relation, qualifier = fact.relation[:1].long(), fact.qualifier_relation[:-1].long().unsqueeze(0)
    shown = torch.ones(1, 11, dtype=torch.bool)
    means = model._mean_logits()
    weights = model._role_weights(relation, qualifier, shown, means)
    heads = model.composites.place == int(relation)
    torch.testing.assert_close(weights[0, 0], model.role_logits[heads].mean(0).softmax(0))
    with torch.no_grad():
        scores = model.score(model.read(asked_of(fact, 0, 0)), Tokens())
    assert bool(torch.isfinite(scores).all())
    assert len(torch.unique(scores)) > 5


def test_products_are_exact_until_they_would_vanish():
    torch.manual_seed(0)
    factors, roles = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 5)
    torch.testing.assert_close(_product(factors, roles), factors.prod(2) * roles, rtol=1e-4, atol=1e-6)
    tiny = torch.full((1, 3, 400, 5), 1e-3)
    lifted = _product(tiny, torch.ones(1, 3, 5))
    torch.testing.assert_close(lifted, torch.full((1, 3, 5), math.exp(FLOOR)), rtol=1e-3, atol=0.0)
    assert float((tiny.prod(2)).max()) == 0.0, "a plain product is lost"
    signs = torch.tensor([1.0, -1.0, -1.0, -1.0]).view(1, 1, 4, 1)
    assert float(_product(signs, torch.ones(1, 1, 1))) == pytest.approx(-1.0)


def test_gradients_are_those_of_plain_products():
    torch.manual_seed(0)
    factors, roles = torch.randn(2, 3, 4, 5, requires_grad=True), torch.randn(2, 3, 5, requires_grad=True)
    ours = torch.autograd.grad(_product(factors, roles).square().sum(), [factors, roles])
    theirs = torch.autograd.grad((factors.prod(2) * roles).square().sum(), [factors, roles])
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_parameters_are_the_papers_kept_only_where_they_are_used():
    facts = facts_of([0, 0, 1, 1, 3], literals=True)
    model = model_for("ram", facts)
    known = model.composites
    arities = {2, 3, 5}
    keys = {(int(facts.relation[row]), tuple(q for q, _, _ in positions_of(facts, row)[2])) for row in range(5)}
    d, m, k = 8, 2, 3
    values = facts.sizes.entities + facts.sizes.literals + 1
    formula = k * d + values * m * d + sum((2 + len(q)) * k for _, q in keys) + sum(k * n * m for n in arities)
    assert len(known.key) == len(keys)
    assert sum(p.numel() for p in model.parameters()) == formula


def test_it_is_asked_for_no_relations():
    graph, settings = small_graph(), tiny_settings("ram", model={"dimension": 8})
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    stream = phases_for(new_model(settings, data, CPU), data, settings)[0].stream
    assert bool((stream.position % 2 == 0).all())


SETTINGS = {
    "batch_size": 32,
    "optimiser": {"learning_rate": 5e-3},
    "schedule": {"shape": "steps", "decay": 1.0},
    "losses": {"smoothing": 0.0},
    "model": {"dimension": 8, "basis": 4, "role_dropout": 0.1, "entity_dropout": 0.1},
}
EXPECTED = [4.025773, 4.024297, 4.025906, 4.025747, 4.025758]


def test_the_first_losses_are_as_expected():
    _, losses, _ = trained("ram", small_graph(), SETTINGS, 5)
    assert losses == pytest.approx(EXPECTED, rel=2e-4)
