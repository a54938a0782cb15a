"""What a run answers with besides its model: statistics of the facts that it was trained on.

A model that was trained for minutes may know less than a count or a mean. Weighed on validation, the two together are
no worse than either, and such a run keeps the weights in `combination.json`; the statistics are made again from its
graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import nn

from hynt.batches.fact_tensors import FactTensors
from hynt.errors import DataError
from hynt.evaluation.combining import fit_weights
from hynt.evaluation.evaluator import Evaluator
from hynt.models.combination import Combination, Weights
from hynt.models.contract import Model
from hynt.models.training_statistics import number_ranges
from hynt.models.trivial import STATISTICS, statistic


def combined(models: Sequence[Model], facts: FactTensors, weights: Weights) -> Combination:
    """Trained models, in the order of the weights' first members, and the statistics that the others name."""
    strange = [name for name in weights.members[len(models) :] if name not in STATISTICS]
    if strange or len(weights.members) < len(models):
        said = f"{strange[0]!r} is no statistic" if strange else f"{len(models)} models, {len(weights.members)} members"
        raise _unfit(said)
    used = weights.only(weights.used(), len(models))
    members = [*models, *(cast(Model, statistic(name, facts)) for name in used.members[len(models) :])]
    for capability, group in used.groups.items():
        for name, member, *counts in zip(
            used.members, members, group.everywhere, *group.relations.values(), strict=True
        ):
            if any(counts) and capability not in member.answers:
                raise _unfit(f"{name!r} answers no {capability[0].name.lower()} at a {capability[1]}")
    answers = frozenset().union(*(model.answers for model in models))
    made = Combination(facts.sizes, members, used, answers, len(models), number_ranges(facts))
    return made.to(facts.device).eval()


def _unfit(said: str) -> DataError:
    return DataError(f"the weights do not fit the models they are of: {said}.", advice="Take the run again.")


def fitted(
    names: Sequence[str], models: Sequence[Model], facts: FactTensors, evaluator: Evaluator, seed: int = 0
) -> Weights:
    """The weights of trained models and of all statistics, fitted on the evaluator's split."""
    others = [cast(Model, statistic(name, facts)) for name in STATISTICS]
    answers = frozenset().union(*(model.answers for model in models))
    for model in models:
        cast(nn.Module, model).eval()
    return fit_weights([*names, *STATISTICS], [*models, *others], evaluator, answers, seed, number_ranges(facts))
