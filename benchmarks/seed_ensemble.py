"""Kept runs of one setting, asked as one: scores of links and relations averaged, and distributions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.questions import Candidates, EncodedQuestion, ScaledNumber
from hynt.objectives.number_distribution import NumberDistribution
from hynt.runs.opening import LoadedRun, load_run


@dataclass(frozen=True, eq=False)
class SeedQuestion(EncodedQuestion):
    """What each run made of the same questions."""

    each: tuple[EncodedQuestion, ...]

    def take(self, rows: torch.Tensor) -> SeedQuestion:
        """The questions at these row numbers."""
        return SeedQuestion(self.encoded[rows], self.relation[rows], tuple(one.take(rows) for one in self.each))


class SeedEnsemble(nn.Module):
    """Adding scores averages log-probabilities: what a run adds to all candidates of a question changes no rank."""

    streams = ()

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__()
        self.models, first = nn.ModuleList(models), models[0]
        self.sizes, self.answers, self.reads = first.sizes, first.answers, first.reads
        if hasattr(first, "distribution"):
            self.distribution = self._distribution

    @property
    def _runs(self) -> list[Any]:
        return list(self.models)

    def observe(self, facts: FactTensors) -> None:
        """Gives all runs these facts."""
        for one in self._runs:
            one.observe(facts)

    def predicts(self, relation: torch.Tensor) -> torch.Tensor:
        """As the first run says."""
        found: torch.Tensor = self._runs[0].predicts(relation)
        return found

    def read(self, batch: Any) -> SeedQuestion:
        """Every run reads the questions."""
        each = tuple(one.read(batch) for one in self._runs)
        return SeedQuestion(each[0].encoded, each[0].relation, each)

    def score(self, question: Any, candidates: Candidates) -> torch.Tensor:
        """The mean over runs; of numbers with distributions, the mean of the joint one."""
        if isinstance(candidates, ScaledNumber) and hasattr(self, "distribution"):
            return self._distribution(question).mean()
        scores = [one.score(part, candidates) for one, part in zip(self._runs, question.each, strict=True)]
        return torch.stack(scores).mean(0)

    def _distribution(self, question: Any) -> NumberDistribution:
        each = [one.distribution(part) for one, part in zip(self._runs, question.each, strict=True)]
        return NumberDistribution(each[0].bins, torch.stack([one.probability for one in each]).mean(0))


def ensemble_of(folders: Sequence[Path], device: torch.device) -> tuple[LoadedRun, SeedEnsemble]:
    """The first run, for its graph and scale, and all of them as one model."""
    runs = [load_run(folder, device) for folder in folders]
    return runs[0], SeedEnsemble([one.model for one in runs]).eval()
