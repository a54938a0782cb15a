"""What a model can be asked, among which candidates it looks for the answer, and what it makes of a question."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.graph.fact_table import FIRST_QUALIFIER, TAIL


class Position(StrEnum):
    """Where in a fact the asked component stands."""

    HEAD = "head"
    RELATION = "relation"
    TAIL = "tail"
    QUALIFIER_RELATION = "qualifier relation"
    QUALIFIER_VALUE = "qualifier value"


class Part(StrEnum):
    """What a model looks at besides head, relation and tail entity."""

    QUALIFIERS = "qualifiers"
    NUMBERS = "numbers"
    OBSERVED_FACTS = "observed facts"


READS_A_FACT: frozenset[Part] = frozenset({Part.QUALIFIERS, Part.NUMBERS})
"""What a model reads that looks at everything in a fact, and at no other facts."""


Capability: TypeAlias = tuple[Task, Position]

EVERYWHERE: frozenset[Capability] = frozenset(
    {
        (Task.LINK, Position.HEAD),
        (Task.LINK, Position.TAIL),
        (Task.LINK, Position.QUALIFIER_VALUE),
        (Task.RELATION, Position.RELATION),
        (Task.RELATION, Position.QUALIFIER_RELATION),
        (Task.NUMBER, Position.TAIL),
        (Task.NUMBER, Position.QUALIFIER_VALUE),
    }
)
"""Every task at every position it can have."""


class Entities(NamedTuple):
    """All entities, in the order of their ids."""


class EntityRange(NamedTuple):
    """The entities with ids start … end − 1."""

    start: int
    end: int


class EntityIds(NamedTuple):
    """These entities: (candidates,) the same for all rows, or (rows, candidates)."""

    ids: Tensor


class Tokens(NamedTuple):
    """All entities and then all literals, for models that take a literal for an entity of its own."""


class Relations(NamedTuple):
    """All relations, in the order of their ids."""


class ScaledNumber(NamedTuple):
    """The number itself: not scores but a value per row, on the scale the model was trained on."""


Candidates: TypeAlias = Entities | EntityRange | EntityIds | Tokens | Relations | ScaledNumber

Q = TypeVar("Q", bound="EncodedQuestion")


@dataclass(frozen=True, eq=False)
class EncodedQuestion:
    """What a model made of the visible part of a batch. A model that needs more keeps it in a subclass."""

    encoded: Tensor  # (rows, width) the masked component, encoded
    relation: Tensor  # (rows,) int64 the relation beside it; the id of a masked relation where that is what is asked

    def take(self: Q, rows: Tensor) -> Q:
        """The questions at these row numbers, (k,) int64. Every field has rows first."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@runtime_checkable
class Reader(Protocol):
    """A model as far as it is asked: whoever trains, evaluates or asks it needs this."""

    sizes: Sizes

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """Encodes what is visible, once. Rows come out in the order of the batch."""
        ...

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), higher is better; for `ScaledNumber` (rows,) scaled values."""
        ...


class Observer(Protocol):
    """A model that answers from facts it is given beside the question: one whose `reads` has `OBSERVED_FACTS`."""

    def observe(self, facts: FactTensors) -> None:
        """What the questions to come are asked of, until other facts are given."""
        ...

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: whether it knows enough numbers of these relations, (n,) int64, to say one."""
        ...


def position_of(asked: Tensor) -> Tensor:
    """(rows,) int64 indices into `list(Position)` from asked positions: all qualifiers are alike."""
    return torch.where(asked <= TAIL, asked, FIRST_QUALIFIER + (asked - FIRST_QUALIFIER) % 2)
