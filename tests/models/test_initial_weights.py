"""Scales at the start: what the model learns of qualifiers depends on them."""

from __future__ import annotations

import pytest
import torch

from hynt.batches.fact_tensors import Sizes
from hynt.models.hynt import Hynt, HyntSettings
from hynt.models.layers.transformer import embedding_table, linear, position_vectors


def _fills(weights: torch.Tensor, bound: float) -> None:
    assert weights.abs().max() <= bound
    assert weights.abs().max() > 0.98 * bound
    assert abs(weights.mean()) < 0.1 * bound


def test_tables_and_linear_maps_start_by_xaviers_rule():
    torch.manual_seed(0)
    _fills(embedding_table(1000, 24), (6 / 1024) ** 0.5)
    made = linear(200, 40)
    _fills(made.weight, (6 / 240) ** 0.5)
    assert made.bias.count_nonzero() == 0
    assert linear(4, 2, bias=False).bias is None


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_scale_of_a_position_vector_does_not_depend_on_how_many_there_are(count):
    torch.manual_seed(0)
    _fills(position_vectors(count, 5000), (3 / 5000) ** 0.5)
    _fills(position_vectors(count, 5000, 0.25), 0.25 * (3 / 5000) ** 0.5)


def test_encodings_do_not_drown_in_positions():
    torch.manual_seed(0)
    model = Hynt(Sizes(200, 20), HyntSettings(dimension=64, context_heads=4, prediction_heads=4))
    q, v = model.relation[:20], model.entity[:20]
    encoded = model.encode_qualifier(torch.cat([q, v], 1))
    assert encoded.std() > 0.5 * model.context_position.std()


def test_the_outputs_and_encodings_of_the_model_start_by_xaviers_rule():
    torch.manual_seed(0)
    d, relations = 64, 500
    settings = HyntSettings(dimension=d, context_heads=4, prediction_heads=4, encoding_bias=True)
    model = Hynt(Sizes(1000, relations), settings)
    _fills(model.encode_triplet.weight, (6 / (4 * d)) ** 0.5)
    _fills(model.encode_qualifier.weight, (6 / (3 * d)) ** 0.5)
    _fills(model.relation_output.weight, (6 / (relations + d)) ** 0.5)
    for map_ in (model.encode_triplet, model.encode_qualifier, model.relation_output):
        assert map_.bias.count_nonzero() == 0
