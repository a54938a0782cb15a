"""What every model offers: it reads questions once, scores candidates for their answers, and brings its training.

Two calls, not one: a single map from a batch to scores of all entities would rule out sampled candidates, graphs
with ten million entities, and models that score fact by fact.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, cast, runtime_checkable

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import Task
from hynt.batches.questions import (
    EVERYWHERE,
    READS_A_FACT,
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Observer,
    Part,
    Position,
    Reader,
    Relations,
    ScaledNumber,
    Tokens,
    position_of,
)
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

__all__ = [
    "EVERYWHERE",
    "READS_A_FACT",
    "Candidates",
    "Capability",
    "EncodedQuestion",
    "Entities",
    "EntityIds",
    "EntityRange",
    "Model",
    "Observer",
    "Part",
    "Phase",
    "PhaseSettings",
    "Position",
    "Relations",
    "ScaledNumber",
    "Sizes",
    "Task",
    "Tokens",
    "give_observed",
    "position_of",
]


@runtime_checkable
class Model(Reader, Protocol):
    """A plain `nn.Module` that says what it can do, as data."""

    streams: ClassVar[tuple[type[ItemStream], ...]]
    """What its phases train on, in their order; empty for a model that is made from the training facts at once."""

    @property
    def answers(self) -> frozenset[Capability]:
        """What it can be asked."""
        ...

    @property
    def reads(self) -> frozenset[Part]:
        """The parts of a fact that it looks at."""
        ...

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """The stages of its training. A later one may be missing where the facts give it nothing to learn from."""
        ...


def give_observed(model: Model, facts: FactTensors) -> None:
    """Gives a model that says it reads observed facts these ones; to any other it does nothing."""
    if Part.OBSERVED_FACTS in model.reads:
        cast(Observer, model).observe(facts)
