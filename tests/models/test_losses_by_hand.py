"""The loss of one step of each baseline, worked out fact by fact: scores by the papers' formulas, labels and negatives
written down, and the mean that the authors take. What a batch, a layout or a kernel does is not used here.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import gelu, layer_norm, normalize, relu, softplus

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import mask
from hynt.config import from_mapping
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.models.contract import Tokens
from hynt.models.registry import MODELS
from hynt.objectives.losses import LossSettings
from hynt.objectives.streams import PhaseSettings
from tests.models.fact_scorers import FACTS, SMALL
from tests.models.triples import tiny_facts

OWN = {
    **SMALL,
    "ram": {"dimension": 8, "basis": 3, "entity_dropout": 0.0, "role_dropout": 0.0},
    "gran": {"dimension": 8, "layers": 2, "heads": 2, "feedforward": 12, "dropout": 0.0},
    "transea": {"dimension": 8, "margin": 2.0, "attribute_weight": 0.3},
    "mt-kgnn": {"dimension": 8, "hidden": 5, "dropout": 0.0},
    "kbln": {"dimension": 8, "dropout": 0.0},
    "literale": {"dimension": 8, "dropout": 0.0},
    "stare": {"dimension": 8, "layers": 1, "heads": 2, "feedforward": 8, "dropout": 0.0, "message_dropout": 0.0}
    | {"graph_dropout": 0.0},
    "hy-transformer": {"dimension": 8, "layers": 1, "heads": 2, "feedforward": 8, "dropout": 0.0, "table_dropout": 0.0},
}


def one_step(name, facts, smoothing=0.1, relation_smoothing=None, batch_size=6, index=0, **changes):
    """A model with random weights, the stream of its first phase, the items of a step, and their loss."""
    torch.manual_seed(3)
    entry = MODELS.get(name)
    model = entry.build(facts.sizes, facts, from_mapping(entry.settings, OWN[name] | changes)).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    losses = LossSettings(smoothing=smoothing, relation_smoothing=relation_smoothing)
    stream = model.phases(facts, PhaseSettings(batch_size=batch_size, epochs=1, losses=losses))[0].stream
    items = stream.epoch(0, 0).items(index)
    with torch.no_grad():
        return model, stream, items, float(stream.loss_for(items.shape)(model, items.tensors).total)


def components(facts, row):
    """Head, relation, tail, and the relation and value of each qualifier."""
    slots = range(int(facts.offsets[row]), int(facts.offsets[row + 1]))
    pairs = [int(column[slot]) for slot in slots for column in (facts.qualifier_relation, facts.qualifier_entity)]
    return [int(facts.head[row]), int(facts.relation[row]), int(facts.tail_entity[row]), *pairs]


def normalised(norm, features):
    """Batch normalisation of (n, features) by these very rows."""
    apart = features - features.mean(0)
    return apart / (apart.square().mean(0) + 1e-5).sqrt() * norm.weight + norm.bias


# Facts with negatives


def written_facts(items, stream):
    """Each fact of the step and each negative as its components, and whether it is true."""
    (rows, asked, entity, relation), weights = items.tensors
    start, found = 0, []
    for count, _ in items.shape.layout.segments:
        for place in range(start, start + 2 * count):
            if weights[place] == 0:
                continue
            parts = components(stream.facts, int(rows[place]))
            at = int(asked[place])
            parts[at] = int((relation if at % 2 else entity)[place])
            assert (parts == components(stream.facts, int(rows[place]))) == (place < start + count)
            found.append((parts, place < start + count))
        start += 2 * count
    assert sum(is_true for _, is_true in found) * 2 == len(found) > 4
    return found


def mean_of(scores, facts):
    """softplus(−score) of true facts and softplus(score) of false ones, on average over both together."""
    each = [softplus(-score if is_true else score) for score, (_, is_true) in zip(scores, facts, strict=True)]
    return float(torch.stack(each).mean())


def nalp_scores(own, facts, relations):
    pairs = []
    for parts, _ in facts:
        h, r, t, *rest = parts
        pairs.append(
            [(r, h), (relations + r, t), *((2 * relations + q, v) for q, v in zip(*[iter(rest)] * 2, strict=True))]
        )
    images = torch.stack([torch.cat([own.role[p], own.value[x]]) for fact in pairs for p, x in fact])
    o = torch.split(relu(normalised(own.norm, images @ own.convolution.t())), [len(fact) for fact in pairs])
    found = []
    for fact in o:
        rho = [relu(own.relate @ torch.cat([a, b]) + own.relate_bias) for a in fact for b in fact]
        found.append((own.output.weight[0] * torch.stack(rho).amin(0)).sum() + own.output.bias[0])
    return found, pairs


def test_nalp():
    model, stream, items, loss = one_step("nalp", FACTS)
    facts = written_facts(items, stream)
    with torch.no_grad():
        assert loss == pytest.approx(mean_of(nalp_scores(model.relatedness, facts, model.sizes.relations)[0], facts))


def test_tnalp_is_as_sure_as_the_less_sure_of_relatedness_and_types():
    model, stream, items, loss = one_step("tnalp", FACTS)
    facts, fit = written_facts(items, stream), model.type_fit
    with torch.no_grad():
        scores, pairs = nalp_scores(model.relatedness, facts, model.sizes.relations)
        least = []
        for score, fact in zip(scores, pairs, strict=True):
            tau = [relu(fit.compare(torch.cat([fit.role[p], fit.value[x]]))) for p, x in fact]
            least.append(torch.minimum(torch.sigmoid(score), torch.sigmoid(fit.output(torch.stack(tau).amin(0))[0])))
        each = [-torch.log(p if is_true else 1 - p) for p, (_, is_true) in zip(least, facts, strict=True)]
        assert loss == pytest.approx(float(torch.stack(each).mean()), rel=1e-5)


def test_hinge():
    model, stream, items, loss = one_step("hinge", FACTS)
    facts = written_facts(items, stream)

    def convolved(layer, images):
        columns = images[0].shape[1] - 2
        found = [
            [[(filter_ * image[:, j : j + 3]).sum() for filter_ in layer.weight] for j in range(columns)]
            for image in images
        ]
        features = torch.tensor(found) + layer.bias  # (images, columns, filters)
        normal = normalised(layer.norm, features.flatten(0, 1)).view(features.shape)
        return relu(normal).transpose(1, 2).flatten(1)

    with torch.no_grad():
        triplets = [torch.stack([model.entity[h], model.relation[r], model.entity[t]]) for (h, r, t, *_), _ in facts]
        pairs = [
            (index, torch.stack([*triplets[index], model.relation[q], model.entity[v]]))
            for index, (parts, _) in enumerate(facts)
            for q, v in zip(*[iter(parts[3:])] * 2, strict=True)
        ]
        lowest = list(convolved(model.of_triplet, triplets))
        for (index, _), beta in zip(pairs, convolved(model.of_qualifier, [image for _, image in pairs]), strict=True):
            lowest[index] = torch.minimum(lowest[index], beta)
        scores = [model.output(features)[0] for features in lowest]
        assert loss == pytest.approx(mean_of(scores, facts), rel=1e-4)


def test_neuinfer_weighs_validity_and_compatibility():
    model, stream, items, loss = one_step("neuinfer", FACTS)
    facts, w = written_facts(items, stream), model.settings.validity_weight
    each = []
    with torch.no_grad():
        for (h, r, t, *rest), is_true in facts:
            triplet = torch.cat([model.entity[h], model.relation[r], model.entity[t]])
            p = torch.sigmoid(model.validity_output(relu(model.of_triplet.layers[0](triplet))))
            pairs = [
                torch.cat([triplet, model.relation[q], model.entity[v]]) for q, v in zip(*[iter(rest)] * 2, strict=True)
            ]
            if pairs:
                lowest = torch.stack([relu(model.of_qualifier.layers[0](pair)) for pair in pairs]).amin(0)
                p = w * p + (1 - w) * torch.sigmoid(model.compatibility_output(lowest))
            each.append(-torch.log(p if is_true else 1 - p))
    assert loss == pytest.approx(float(torch.cat(each).mean()), rel=1e-5)


# Every component masked in turn


def masked(stream, items):
    """(components, position) of the step's questions."""
    chosen, weights = items.tensors
    real = chosen[weights > 0].tolist()
    assert len(real) > 3
    return [(components(stream.facts, int(stream.owner[one])), int(stream.position[one])) for one in real]


def column_of(token, sizes):
    """The number of a token among candidates; the id of a masked one is none."""
    return token - (token > sizes.mask_entity)


def test_ram():
    model, stream, items, loss = one_step("ram", FACTS, smoothing=0.0, batch_size=64)
    k, m, known, each = model.settings.basis, model.settings.parts, model.composites, []
    with torch.no_grad():
        table = model.entity[: model.tokens].view(model.tokens, m, -1)
        for (h, r, t, *rest), position in masked(stream, items):
            pairs = sorted(zip(*[iter(rest)] * 2, strict=True))
            slot = rest[position - 4 : position - 2] if position > TAIL else None
            at = {HEAD: 0, TAIL: 1}.get(position) if slot is None else 2 + pairs.index(tuple(slot))
            entities, n = [column_of(one, model.sizes) for one in (h, t, *(v for _, v in pairs))], 2 + len(pairs)
            first, seen = known.lookup(
                torch.tensor([r]),
                torch.tensor([[q for q, _ in pairs]], dtype=torch.int64),
                torch.ones(1, len(pairs)).bool(),
            )
            assert seen
            alpha = model.role_logits[int(first) : int(first) + n].softmax(1)  # (n, K)
            start = int(known.arity_first[n])
            logits = model.pattern_logits[start : start + n].view(n, k, m)
            patterns = logits.transpose(0, 1).flatten(1).softmax(1).view(k, n, m)
            scores = []
            for candidate in range(model.tokens):
                entities[at] = candidate
                score = 0.0
                for a in range(n):
                    p = torch.einsum("k,kij->ij", alpha[a], patterns)
                    product = alpha[a] @ model.basis
                    for i, entity in enumerate(entities):
                        product = product * (p[i].unsqueeze(1) * table[entity]).sum(0)
                    score = score + product.sum()
                scores.append(score)
            answer = {HEAD: h, TAIL: t}.get(position) if slot is None else slot[1]
            each.append(-torch.stack(scores).log_softmax(0)[column_of(answer, model.sizes)])
    assert loss == pytest.approx(float(torch.stack(each).mean()), rel=1e-4)


def test_gran_spreads_smoothing_over_the_wrong_answers_of_the_right_kind():
    model, stream, items, loss = one_step("gran", FACTS, smoothing=0.4, relation_smoothing=0.1, batch_size=64)
    edge = {(0, 1): 1, (0, 2): 2}
    d, heads = model.settings.dimension, model.settings.heads
    each = []

    def kind(i, j, n):
        low, high = min(i, j), max(i, j)
        if (low, high) in edge:
            return edge[low, high]
        if low == 0 and 3 <= high < 3 + n:
            return 3
        return 4 if 3 <= low < 3 + n and high == low + n else 0

    with torch.no_grad():
        key, value = (torch.cat([torch.zeros(1, d // heads), table]) for table in (model.edge_key, model.edge_value))
        for (h, r, t, *rest), position in masked(stream, items):
            n, tokens = len(rest) // 2, model.tokens
            nodes = [tokens + r, *(column_of(one, model.sizes) for one in (h, t))]
            nodes += [tokens + q for q in rest[::2]] + [column_of(v, model.sizes) for v in rest[1::2]]
            place = {RELATION: 0, HEAD: 1, TAIL: 2}.get(position)
            if place is None:
                place = 3 + (position - 3) // 2 + (n if position % 2 == 0 else 0)
            answer, nodes[place] = nodes[place], model.hidden
            x = model.node_norm(model.node[nodes])
            for layer in model.layers:
                mixed = torch.zeros_like(x)
                q, k, v = (part.view(len(x), heads, -1) for part in layer.projection(x).chunk(3, 1))
                for i in range(len(x)):
                    for head in range(heads):
                        kinds = [kind(i, j, n) for j in range(len(x))]
                        scores = torch.stack([q[i, head] @ (k[j, head] + key[kinds[j]]) for j in range(len(x))])
                        weights = (scores / math.sqrt(d // heads)).softmax(0)
                        outcome = sum(weights[j] * (v[j, head] + value[kinds[j]]) for j in range(len(x)))
                        mixed[i, head * (d // heads) : (head + 1) * (d // heads)] = outcome
                x = layer.attention_norm(x + layer.output(mixed))
                x = layer.feedforward_norm(x + layer.contract(gelu(layer.expand(x))))
            encoded = layer_norm(
                gelu(model.transform(x[place])), [d], model.output_norm.weight, model.output_norm.bias, 1e-12
            )
            logits = model.node[: model.hidden] @ encoded + model.output_bias
            is_relation = position % 2 == 1
            kinds_own = range(tokens, model.hidden) if is_relation else range(tokens)
            smoothing = 0.1 if is_relation else 0.4
            target = {one: smoothing / (len(kinds_own) - 1) for one in kinds_own} | {answer: 1 - smoothing}
            assert sum(target.values()) == pytest.approx(1.0)
            chances = logits[kinds_own.start : kinds_own.stop].log_softmax(0)
            each.append(-sum(share * chances[one - kinds_own.start] for one, share in target.items()))
    assert loss == pytest.approx(float(torch.stack(each).mean()), rel=1e-4)


# Each question against all its true answers


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
