"""What the losses worked out by hand share: a step of a small model, and facts as plain numbers."""

from __future__ import annotations

import torch

from hynt.config import from_mapping
from hynt.models.registry import MODELS
from hynt.objectives.losses import LossSettings
from hynt.objectives.streams import PhaseSettings
from tests.models.fact_scorers import SMALL

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


def column_of(token, sizes):
    """The number of a token among candidates; the id of a masked one is none."""
    return token - (token > sizes.mask_entity)
