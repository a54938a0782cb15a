"""The loss of one step of each baseline that learns from facts, worked out fact by fact: scores by the papers'
formulas, labels and negatives written down, and the mean that the authors take. What a batch, a layout or a kernel does
is not used here.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import gelu, layer_norm, relu, softplus

from hynt.graph.fact_table import HEAD, RELATION, TAIL
from tests.models.fact_scorers import FACTS
from tests.models.worked_out import column_of, components, normalised, one_step

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
