"""The loss of one step of each baseline that sets a question against all its true answers, worked out question by
question, as `test_losses_by_hand.py` does it for those that learn from facts.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import layer_norm, normalize, relu, softplus

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import mask
from hynt.graph.fact_table import HEAD
from hynt.models.contract import Tokens
from tests.models.fact_scorers import FACTS
from tests.models.triples import tiny_facts
from tests.models.worked_out import column_of, components, normalised, one_step


def labels_of(stream, items, facts, smoothing, candidates):
    """(questions, candidates) (1 − ε)·y + 1/N of the step, by looking through all facts for each question."""
    questions, weights = items.tensors
    found, chosen = [], questions[weights > 0]
    every = [components(facts, row) for row in range(len(facts))]
    for one in chosen.tolist():
        row, position = int(stream.groups.row[one]), int(stream.groups.position[one])
        own = components(stream.groups.facts, row)
        y = torch.zeros(candidates)
        for other in every:
            other = other[: len(own)] if len(own) == 3 and not stream.groups.facts.qualifier_counts().any() else other
            pairs = [sorted(zip(*[iter(fact[3:])] * 2, strict=True)) for fact in (own, other)]
            if [p for p in range(3) if p != position and own[p] != other[p]] or pairs[0] != pairs[1]:
                continue
            y[column_of(other[position], facts.sizes)] = 1
        assert y.any()
        found.append((1 - smoothing) * y + (1 / candidates if smoothing else 0))
    assert len(found) > 3
    return chosen, torch.stack(found)


def binary(scores, labels):
    """The mean over questions and candidates of −y·log σ(s) − (1 − y)·log σ(−s)."""
    return float((labels * softplus(-scores) + (1 - labels) * softplus(scores)).mean())


def question(stream, one):
    row, position = int(stream.groups.row[one]), int(stream.groups.position[one])
    h, r, t = components(stream.groups.facts, row)[:3]
    return (t if position == HEAD else h), r


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("name", ["mt-kgnn", "kbln", "literale"])
def test_triple_models_ask_for_all_answers_at_once(name, smoothing):
    facts = tiny_facts()
    model, stream, items, loss = one_step(name, facts, smoothing)
    stream = getattr(stream, "links", stream)
    chosen, labels = labels_of(stream, items, facts, smoothing, facts.sizes.entities)
    with torch.no_grad():
        table = model.entities if name != "literale" else model.entities[0]
        relations = model.relations if name != "literale" else model.relations[0]
        if name == "literale":
            gate, (e, numbers) = model.gates[0], (table, model.literals)
            z = torch.sigmoid(e @ gate.of_entity.weight.t() + numbers @ gate.of_literals.weight.t() + gate.bias)
            c = torch.tanh(torch.cat([e, numbers], 1) @ gate.changed.weight.t() + gate.changed.bias)
            table = (1 - z) * e + z * c
        scores = []
        for one in chosen.tolist():
            known, relation = question(stream, one)
            line = table @ (table[known] * relations[relation])
            if name == "kbln":
                apart = model.literals[known] - model.literals - model.centre[0]
                line = line + torch.exp(-apart.square() / model.spread[0]) @ model.numeric[relation]
            scores.append(line)
        assert loss == pytest.approx(binary(torch.stack(scores), labels), rel=1e-5)


def test_literale_convolves_a_picture_of_the_gated_entity_and_a_relation_of_each_direction():
    facts = tiny_facts()
    changes = {"base": "conve", "directions": "reciprocal", "dimension": 16}
    changes |= {"feature_map_dropout": 0.0, "projection_dropout": 0.0}
    model, stream, items, loss = one_step("literale", facts, 0.0, batch_size=5, **changes)
    chosen, labels = labels_of(stream, items, facts, 0.0, facts.sizes.entities)
    assert len(chosen) == 5, "no filler, which would count in batch normalisation"
    gate, own, (e, numbers) = model.gates[0], model.convolution, (model.entities[0], model.literals)

    def over_all(norm, channels):  # each channel by its numbers in all pictures
        flat = channels.transpose(0, 1).flatten(1)
        return normalised(norm, flat.t()).t().reshape(channels.transpose(0, 1).shape).transpose(0, 1)

    with torch.no_grad():
        z = torch.sigmoid(e @ gate.of_entity.weight.t() + numbers @ gate.of_literals.weight.t() + gate.bias)
        c = torch.tanh(torch.cat([e, numbers], 1) @ gate.changed.weight.t() + gate.changed.bias)
        table = (1 - z) * e + z * c
        pictures = []
        for one in chosen.tolist():
            known, relation = question(stream, one)
            asks_head = int(stream.groups.position[one]) == HEAD
            vector = model.relations[0][relation + facts.sizes.relations * asks_head]
            pictures.append(torch.cat([table[known].view(4, 4), vector.view(4, 4)]))  # one above the other
        pictures = over_all(own.before, torch.stack(pictures).unsqueeze(1))
        filters, bias = own.convolution.weight, own.convolution.bias  # (32, 1, 3, 3)
        maps = torch.zeros(len(chosen), len(filters), 6, 2)
        for i in range(6):
            for j in range(2):
                window = pictures[:, :, i : i + 3, j : j + 3]
                maps[:, :, i, j] = (window.unsqueeze(1) * filters).sum((2, 3, 4)) + bias
        maps = relu(over_all(own.of_maps, maps))
        projected = maps.flatten(1) @ own.projection.weight.t() + own.projection.bias
        query = relu(normalised(own.after, projected))
        assert loss == pytest.approx(binary(query @ table.t() + model.entity_bias, labels), rel=1e-5)


def test_mt_kgnn_regresses_numbers_of_heads_and_of_tails():
    facts = tiny_facts()
    model, stream, items, loss = one_step("mt-kgnn", facts, index=-1)
    chosen, weights = items.tensors
    assert weights.all()
    with torch.no_grad():
        expected = 0.0
        for network, some in zip((model.of_heads, model.of_tails), chosen.tolist(), strict=True):
            apart = []
            for one in some:
                e, a = stream.triples.entity[one], stream.triples.attribute[one]
                hidden = torch.tanh(network.inner(torch.cat([model.entities[e], model.attribute_vectors[a]])))
                apart.append(float(network.outer(hidden)[0] - stream.triples.value[one]) ** 2)
            expected += sum(apart) / len(apart)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_transea_adds_a_margin_and_distances_of_numbers():
    facts = tiny_facts()
    model, _, items, loss = one_step("transea", facts)
    (rows, asked, false, numeric), weights = items.tensors
    assert weights.all()
    known = {tuple(components(facts, row)[:3]) for row in range(len(facts))}
    with torch.no_grad():
        e, r, w = (normalize(table) for table in (model.entities, model.relations, model.directions))
        links, numbers = [], []
        for row, position, other in zip(rows.tolist(), asked.tolist(), false.tolist(), strict=True):
            h, relation, t = components(facts, row)[:3]
            false_fact = (other, relation, t) if position == HEAD else (h, relation, other)
            assert false_fact not in known
            near, far = ((e[a] + r[relation] - e[b]).abs().sum() for a, b in ((h, t), (false_fact[0], false_fact[2])))
            links.append(max(0.0, 2.0 + float(near) - float(far)))
        for row in numeric.tolist():
            a = int(model.attributes.of_relation[facts.relation[row].long()])
            predicted = float(e[int(facts.head[row])] @ w[a] + model.bias[a])
            numbers.append(abs(predicted - float(facts.tail_number[row])))
    expected = 0.7 * sum(links) / len(links) + 0.3 * sum(numbers) / len(numbers)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_stare_is_told_all_answers_by_smoothed_labels():
    """Its scores are held elsewhere; here the labels are written out, and the mean over questions and candidates."""
    model, stream, items, loss = one_step("stare", FACTS, smoothing=0.2, batch_size=12)
    grouped = getattr(stream, "links", stream)
    chosen, labels = labels_of(grouped, items, FACTS, 0.2, FACTS.sizes.entities + FACTS.sizes.literals)
    scores = []
    with torch.no_grad():
        for one in chosen.tolist():
            row, position = grouped.groups.row[one], grouped.groups.position[one]
            capacity = int(grouped.groups.facts.qualifier_counts()[row])
            batch, _ = mask(grouped.groups.facts, row.view(1), position.view(1), layout_of([(1, capacity)]))
            scores.append(model.score(model.read(batch), Tokens())[0])
    assert loss == pytest.approx(binary(torch.stack(scores), labels), rel=1e-4)


def test_hy_transformer_reads_the_hidden_object_of_a_fact_or_of_its_reverse():
    model, stream, items, loss = one_step("hy-transformer", FACTS, smoothing=0.2, batch_size=12)
    chosen, labels = labels_of(stream, items, FACTS, 0.2, FACTS.sizes.entities + FACTS.sizes.literals)
    layer, d, heads, scores = model.encoder.layers[0], model.settings.dimension, model.settings.heads, []

    def normed(norm, x):
        return layer_norm(x, [d], norm.weight, norm.bias)

    with torch.no_grad():
        entities = normed(model.entity_norm, model.entity)  # the last row is the hidden one
        relations = normed(model.relation_norm, model.relation)
        for one in chosen.tolist():
            position = int(stream.groups.position[one])
            h, r, t, *rest = components(stream.groups.facts, int(stream.groups.row[one]))
            subject, relation = (t, r + FACTS.sizes.relations) if position == HEAD else (h, r)
            x = [entities[column_of(subject, FACTS.sizes)], relations[relation], entities[-1]]
            for q, v in zip(*[iter(rest)] * 2, strict=True):
                x += [relations[q], entities[column_of(v, FACTS.sizes)]]
            roles = [0, 1, 2] + [3, 4] * (len(rest) // 2)
            x = torch.stack([vector + model.role[role] for vector, role in zip(x, roles, strict=True)])
            q, k, v = (part.view(len(x), heads, -1) for part in layer.projection(x).chunk(3, 1))
            mixed = torch.cat(
                [
                    (k[:, head] @ q[2, head] / math.sqrt(d // heads)).softmax(0) @ v[:, head]  # the object looks around
                    for head in range(heads)
                ]
            )
            middle = normed(layer.attention_norm, x[2] + layer.output(mixed))
            read = normed(layer.feedforward_norm, middle + layer.contract(relu(layer.expand(middle))))
            scores.append(entities[:-1] @ model.output(read))
    assert loss == pytest.approx(binary(torch.stack(scores), labels), rel=1e-4)
