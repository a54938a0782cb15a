"""Runs of several seeds asked as one."""

from __future__ import annotations

import torch

from benchmarks.seed_ensemble import SeedEnsemble
from hynt.models.contract import Entities, Relations, ScaledNumber
from tests.models.question_batches import every_question
from tests.models.test_hynt_inductive import FACTS, model_of


def test_scores_and_distributions_are_means_over_runs():
    runs = [model_of(FACTS, seed=seed) for seed in range(3)]
    together = SeedEnsemble(runs).eval()
    batch = every_question(FACTS, torch.arange(4))[0]
    with torch.no_grad():
        read, alone = together.read(batch), [one.read(batch) for one in runs]
        for candidates in (Entities(), Relations()):
            each = torch.stack([one.score(part, candidates) for one, part in zip(runs, alone, strict=True)])
            torch.testing.assert_close(together.score(read, candidates), each.mean(0))
        believed = torch.stack([one.distribution(part).probability for one, part in zip(runs, alone, strict=True)])
        torch.testing.assert_close(together.distribution(read).probability, believed.mean(0))
        torch.testing.assert_close(together.score(read, ScaledNumber()), together.distribution(read).mean())
        few = read.take(torch.tensor([2, 0]))
        torch.testing.assert_close(together.score(few, Relations()), together.score(read, Relations())[[2, 0]])
