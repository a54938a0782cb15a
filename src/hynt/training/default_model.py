"""Which model to train where nobody names one, but says for how long: what did best on the graph most like this one.

`default_models.json` holds what a study of models, graphs and budgets found on validation, a line for each graph and
budget; `python -m benchmarks.laptop_study default` makes it of the study's results.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from typing import NamedTuple

from hynt.graph.knowledge_graph import KnowledgeGraph

USUAL = "hynt"
"""Where nothing like it was studied."""
NEAR = 1.5
"""How far a graph of the study may be from one that it speaks for, as `Case.distance` counts."""


class Case(NamedTuple):
    """A graph and a budget of the study, and the model that validation placed first there."""

    graph: str
    device: str  # cpu or cuda
    minutes: float
    facts: int  # of train
    numbers: float  # share of them whose tail is a number
    model: str

    def distance(self, minutes: float, facts: int, numbers: float) -> float:
        """Doublings of the facts and of the time, and shares of numbers: all that facts are of numbers counts eight."""
        return (
            abs(math.log2(facts / self.facts))
            + abs(math.log2(minutes / self.minutes))
            + 8 * abs(numbers - self.numbers)
        )


@cache
def cases() -> tuple[Case, ...]:
    text = (resources.files("hynt.training") / "default_models.json").read_text(encoding="utf-8")
    return tuple(Case(**case) for case in json.loads(text))


def model_for(graph: KnowledgeGraph, minutes: float, *, on_gpu: bool) -> str:
    """The model to train for so many minutes."""
    table = graph.splits.get("train")
    if table is None or not len(table):
        return USUAL
    numbers = float(graph.vocabulary.relation_is_number[table.relation].mean())
    device = "cuda" if on_gpu else "cpu"
    near = [(case.distance(minutes, len(table), numbers), case) for case in cases() if case.device == device]
    nearest = min(near, key=lambda one: one[0], default=None)
    return USUAL if nearest is None or nearest[0] > NEAR else nearest[1].model
