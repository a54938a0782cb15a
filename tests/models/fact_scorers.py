"""What tests of models that score whole facts share: models without zero weights, whole facts, slow substitution."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import fill, mask
from hynt.config import from_mapping
from hynt.models.contract import Entities, Relations
from hynt.models.registry import MODELS
from hynt.objectives.streams import PhaseSettings
from tests.models.small_models import facts_of

SMALL = {
    "nalp": {"dimension": 8, "filters": 6, "hidden": 5},
    "tnalp": {"dimension": 8, "filters": 6, "hidden": 5, "type_dimension": 3, "type_hidden": 4},
    "hinge": {"dimension": 8, "filters": 5},
    "neuinfer": {"dimension": 8, "hidden": 6, "validity_weight": 0.4},
    "ram": {"dimension": 8, "basis": 3, "entity_dropout": 0.0},
}


def model_for(name, facts, seed=0, **changes):
    """A small model whose weights and running statistics are all random."""
    torch.manual_seed(seed)
    entry = MODELS.get(name)
    model = entry.build(facts.sizes, facts, from_mapping(entry.settings, {**SMALL[name], **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for buffer_name, buffer in model.named_buffers():
            if "running" in buffer_name:
                buffer.copy_(torch.rand_like(buffer) + (0.5 if "variance" in buffer_name else -0.5))
    return model


def corruption_of(model):
    """How the model's only phase draws negatives."""
    (phase,) = model.phases(FACTS, PhaseSettings(batch_size=4, epochs=1))
    return phase.stream.corruption


def asked_of(facts, row, position, extra=0):
    count = int(facts.qualifier_counts()[row]) + extra
    batch, _ = mask(facts, torch.tensor([row]), torch.tensor([position]), layout_of([(1, count)]))
    return batch


def whole(facts, row, extra=0):
    """A fact with nothing hidden, in a batch of its own with `extra` places for qualifiers."""
    return fill(asked_of(facts, row, 0, extra), facts.head[row : row + 1].long(), torch.tensor([0]))


def scored(model, batch):
    """The score of a batch of one."""
    with torch.no_grad():
        return float(model.score_facts(batch, torch.ones(len(batch), dtype=torch.bool)))


def check_by_formula(model, by_formula):
    """Whole facts and swept candidates score as `by_formula` has it: (model, facts, row, position, candidate)."""
    for row in range(5):
        own = int(FACTS.head[row])
        assert scored(model, whole(FACTS, row)) == pytest.approx(by_formula(model, FACTS, row, 0, own), abs=1e-5)
        for position in range(3 + 2 * int(FACTS.qualifier_counts()[row])):
            kind, count = (Relations(), FACTS.sizes.relations) if position % 2 else (Entities(), FACTS.sizes.entities)
            with torch.no_grad():
                found = model.score(model.read(asked_of(FACTS, row, position)), kind)[0].tolist()
            expected = [by_formula(model, FACTS, row, position, one) for one in range(count)]
            assert found == pytest.approx(expected, abs=1e-4)


def substituted(model, facts, row, position, candidates):
    """Slow and obvious: every candidate is written into the fact, and the fact is scored."""
    batch = asked_of(facts, row, position)
    return torch.tensor([scored(model, fill(batch, torch.tensor([one]), torch.tensor([one]))) for one in candidates])


def with_qualifiers(facts, pairs):
    """One fact, the first of `facts`, with these (relation, value) pairs instead of its qualifiers."""
    relation = torch.tensor([q for q, _ in pairs] + [0], dtype=torch.int32)
    value = torch.tensor([v for _, v in pairs] + [0], dtype=torch.int32)
    blank = torch.zeros(len(relation))
    return replace(
        facts,
        head=facts.head[:1],
        relation=facts.relation[:1],
        tail_entity=facts.tail_entity[:1],
        tail_value=facts.tail_value[:1],
        tail_number=facts.tail_number[:1],
        tail_is_number=facts.tail_is_number[:1],
        offsets=torch.tensor([0, len(pairs)]),
        qualifier_relation=relation,
        qualifier_entity=value,
        qualifier_value=blank.double(),
        qualifier_number=blank,
        qualifier_is_number=blank.bool(),
    )


FACTS = facts_of([0, 1, 2, 3, 5, 0, 4], literals=True)
