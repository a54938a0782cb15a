"""What every model offers: it reads questions once, and then scores candidates for their answers.

Two calls, not one: a single map from a batch to scores of all entities would rule out sampled candidates, graphs
with ten million entities, and models that score fact by fact.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from torch import Tensor

from hynt.batches.fact_tensors import Sizes
from hynt.batches.masked_batch import MaskedBatch, Task

__all__ = [
    "EVERYWHERE",
    "Candidates",
    "EncodedQuestion",
    "Entities",
    "EntityIds",
    "EntityRange",
    "Model",
    "Part",
    "Position",
    "Relations",
    "ScaledNumber",
    "Sizes",
    "StreamKind",
    "Task",
    "Tokens",
]


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


class StreamKind(StrEnum):
    """What a model is trained on; the trainer knows how to make each."""

    MASKED_FACTS = "masked facts"  # one component hidden, drawn anew each epoch (HyNT)
    MASKED_COMPONENTS = "masked components"  # every component of every fact hidden in turn (GRAN, RAM)
    GROUPED_QUESTIONS = (
        "grouped questions"  # a question with all its true answers (StarE, Hy-Transformer, LiteralE, KBLN)
    )
    FACTS_WITH_NEGATIVES = "facts with negatives"  # (NaLP, tNaLP, HINGE, NeuInfer)
    ATTRIBUTE_TRIPLES = "attribute triples"  # (entity, attribute, value) beside triplets (TransEA, MT-KGNN)
    NONE = "none"  # nothing is learned by steps: the model is made from the training facts at once


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
    """The number itself: not scores but a value a row, on the scale the model was trained on."""


Candidates: TypeAlias = Entities | EntityRange | EntityIds | Tokens | Relations | ScaledNumber

Q = TypeVar("Q", bound="EncodedQuestion")


@dataclass(frozen=True, eq=False)
class EncodedQuestion:
    """What a model made of the visible part of a batch. A model that needs more keeps it in a subclass."""

    encoded: Tensor  # (rows, width) the hidden component, encoded
    relation: Tensor  # (rows,) int64 the relation beside it; the id of a hidden relation where that is what is asked

    def take(self: Q, rows: Tensor) -> Q:
        """The questions at these row numbers, (k,) int64. Every field has rows first."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@runtime_checkable
class Model(Protocol):
    """A plain `nn.Module` that says what it can do, as data."""

    item_stream: ClassVar[StreamKind]
    sizes: Sizes

    @property
    def answers(self) -> frozenset[Capability]:
        """What it can be asked."""
        ...

    @property
    def reads(self) -> frozenset[Part]:
        """What it looks at."""
        ...

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """Encodes what is visible, once. Rows come out in the order of the batch."""
        ...

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), higher is better; for `ScaledNumber` (rows,) scaled values."""
        ...


def position_of(asked: Tensor) -> Tensor:
    """(rows,) int64 indices into `list(Position)` from asked positions: all qualifiers are alike."""
    from torch import where

    return where(asked <= 2, asked, 3 + (asked - 3) % 2)
