"""What every model offers: it reads questions once, scores candidates for their answers, and brings its training.

Two calls, not one: a single map from a batch to scores of all entities would rule out sampled candidates, graphs
with ten million entities, and models that score fact by fact.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.batches.questions import (
    EVERYWHERE,
    OF_TRIPLETS,
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
from hynt.objectives.number_distribution import NumberDistribution
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings

__all__ = [
    "EVERYWHERE",
    "OF_TRIPLETS",
    "READS_A_FACT",
    "AnswersDistributions",
    "Attention",
    "Candidates",
    "Capability",
    "EmbedsEntities",
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
    "ReadsSeveralMasks",
    "Relations",
    "ScaledNumber",
    "ShowsAttention",
    "Sizes",
    "Task",
    "Tokens",
    "give_observed",
    "mean_number",
    "median_number",
    "position_of",
    "reads_several_masks",
    "unpredictable",
]


@runtime_checkable
class Model(Reader, Protocol):
    """A plain `nn.Module` that says what it can do, as data."""

    streams: ClassVar[tuple[type[ItemStream], ...]]
    """What its phases train on, in their order; empty for a model that is made from the training facts at once."""

    @property
    def answers(self) -> frozenset[Capability]:
        """What it can be asked."""

    @property
    def reads(self) -> frozenset[Part]:
        """The parts of a fact that it looks at."""

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """The stages of its training. A later one may be missing where the facts give it nothing to learn from."""


def unpredictable(model: Model, relation: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """(n,) relations of whose numbers a model that reads observed facts knows too few to say one."""
    if Part.OBSERVED_FACTS not in model.reads:
        return np.zeros(len(relation), dtype=np.bool_)
    device = next(cast(nn.Module, model).parameters()).device
    found = cast(Observer, model).predicts(torch.from_numpy(relation.astype(np.int64)).to(device))
    return ~found.cpu().numpy()


@runtime_checkable
class AnswersDistributions(Protocol):
    """A model that says how likely each number is, and not one number alone."""

    def distribution(self, question: EncodedQuestion) -> NumberDistribution:
        """What it believes of the numbers asked for, on its scale."""


class Attention(NamedTuple):
    """How much the asked token of one question looks at each token; the weights of a layer's head add up to 1."""

    context: Tensor  # (layers, heads, 1 + qualifiers) the triplet, then each qualifier
    prediction: Tensor | None  # (layers, heads, parts); None where the model has no second transformer
    parts: tuple[int | None, ...]  # (parts,) the fact's position that each part is; None for the context's outcome
    encoded: Tensor  # (dimension,) the representation that all this ends in


@runtime_checkable
class ShowsAttention(Protocol):
    """A model that can say where it looks."""

    def attention(self, batch: MaskedBatch) -> Attention:
        """Of a batch of one question, read without dropout."""


@runtime_checkable
class EmbedsEntities(Protocol):
    """A model with a vector for each entity: it learned them, or they follow from the facts it observes."""

    def entity_vectors(self) -> Tensor:
        """(at least entities, width) the vectors, row by row those of the entities; other tokens may follow."""


@runtime_checkable
class ReadsSeveralMasks(Protocol):
    """A model with a vector for a masked component at any place, so that it reads facts with several of them."""

    @property
    def reads_several_masks(self) -> bool:
        """Whether it does; a combination does where all its members do."""


def reads_several_masks(model: Model) -> bool:
    """Whether a model reads facts with several masked components; those that do not say so do not."""
    return isinstance(model, ReadsSeveralMasks) and model.reads_several_masks


def median_number(model: Reader, question: EncodedQuestion) -> Tensor:
    """(n,) float32 what is answered, on the model's scale: the median of what it believes, or its one number."""
    if isinstance(model, AnswersDistributions):
        return model.distribution(question).median()
    return model.score(question, ScaledNumber()).float()


def mean_number(model: Reader, question: EncodedQuestion, log_width: Tensor) -> Tensor:
    """(n,) float32 where the mean in the graph's unit lies on the model's scale; `log_width` (n,) is how far a log
    scale reaches, and 0 for a linear one. A model with one number is asked for it.
    """
    if isinstance(model, AnswersDistributions):
        return model.distribution(question).mean_of_exponentials(log_width)
    return model.score(question, ScaledNumber()).float()


def give_observed(model: Model, facts: FactTensors) -> None:
    """Gives a model that says it reads observed facts these ones; to any other it does nothing."""
    if Part.OBSERVED_FACTS in model.reads:
        cast(Observer, model).observe(facts)
