"""The benchmark of large vocabularies: its facts are facts, and its slopes are slopes."""

from __future__ import annotations

import pytest
import torch

from benchmarks.large_vocabulary import generated_facts, slopes
from hynt.batches.masked_batch import Masking, Task
from hynt.objectives.losses import LossSettings
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import affine_loss


def test_slopes_are_exponents():
    points = [{"entities": n, "bytes": 7 * n**1.5} for n in (10, 100, 1000)] + [{"entities": 10_000}]
    assert slopes(points, "bytes") == {"over_all": pytest.approx(1.5), "between": [pytest.approx(1.5)] * 2}
    assert slopes(points[:1], "bytes") == {}


def test_generated_facts_ask_for_everything():
    facts = generated_facts(500, 2000, torch.device("cpu"))
    stream = MaskedFacts(facts, 100, Masking(), LossSettings(softmax="sampled", negatives=30), affine_loss)
    assert (facts.tail_entity[~facts.tail_is_number] < 500).all()
    assert (facts.tail_entity[facts.tail_is_number] == 500).all()
    asked = [stream.regular.outputs[task.value] for task in Task]
    assert min(asked) > 0
    assert stream.entity_loss is not None
    assert float(stream.entity_loss.answer_share.sum()) == pytest.approx(1, rel=1e-3)
