"""The attention that is shown is the attention that the model has: both ways of computing end in the same vector."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.batches.buckets import bucket_capacity, layout_of
from hynt.batches.masked_batch import mask
from hynt.explanation.explaining import attention_weights
from hynt.models.hynt import HyntSettings
from tests.models.small_models import FORMS, SMALL, facts_of, small_model

LENGTHS = [0, 1, 2, 3, 5]


@pytest.mark.parametrize("form", [*FORMS, "discrete numbers"])
def test_the_outcome_is_the_models_own(form):
    facts = facts_of(LENGTHS, literals=form == "discrete numbers")
    settings = FORMS.get(form) or HyntSettings(**SMALL, numbers="discrete")
    model = small_model(settings, facts)
    for row, count in enumerate(LENGTHS):
        layout = layout_of([(1, bucket_capacity(count))])
        for position in range(3 + 2 * count):
            batch, _ = mask(facts, torch.tensor([row]), torch.tensor([position]), layout)
            with torch.no_grad():
                found = attention_weights(model, batch)
                own = model.read(batch).encoded[0]
            np.testing.assert_allclose(found.encoded, own.double().numpy(), atol=2e-5)
            assert found.context.shape == (settings.context_layers, settings.context_heads, 1 + count)
            np.testing.assert_allclose(found.context.sum(-1), 1, atol=1e-5)
            assert found.on_context.sum() == pytest.approx(1.0, abs=1e-5)
            assert position in found.parts
            assert len(found.parts) == (4 if position < 3 else 3)
            if settings.prediction == "linear":
                assert found.prediction is found.on_parts is None
            else:
                assert found.prediction.shape == (
                    settings.prediction_layers,
                    settings.prediction_heads,
                    len(found.parts),
                )
                np.testing.assert_allclose(found.on_parts.sum(), 1, atol=1e-5)
