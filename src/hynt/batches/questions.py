"""What a model can be asked, among which candidates it looks for the answer, and what it makes of a question.

Facts that differ only in the masked component are one question with several true answers. Questions are told apart by
the order-free key that filtering uses, so the order of qualifiers does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import (
    ENTITY_KIND,
    FIRST_QUALIFIER,
    HEAD,
    TAIL,
    component_starts,
    components,
    qualifier_components,
)
from hynt.graph.vocabulary import begins


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
OF_TRIPLETS: frozenset[Capability] = frozenset(
    {(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL), (Task.NUMBER, Position.TAIL)}
)
"""What models of plain triplets can be asked."""


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

    def answered(self) -> Tensor | None:
        """(rows,) bool: which of them there is an answer to; None: to all. Statistics may have none."""
        return None

    def answered_by_all(self) -> Tensor | None:
        """(rows,) bool: of several models that answer together, whether each had an answer; None: always."""
        return None


@runtime_checkable
class Reader(Protocol):
    """A model as far as it is asked: whoever trains, evaluates or asks it needs this."""

    sizes: Sizes

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """Encodes what is visible, once. Rows come out in the order of the batch."""

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates), higher is better; for `ScaledNumber` (rows,) scaled values."""


class Observer(Protocol):
    """A model that answers from facts it is given beside the question: one whose `reads` has `OBSERVED_FACTS`."""

    def observe(self, facts: FactTensors) -> None:
        """What the questions to come are asked of, until other facts are given."""

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: whether it knows enough numbers of these relations, (n,) int64, to say one."""


def position_of(asked: Tensor) -> Tensor:
    """(rows,) int64 indices into `list(Position)` from asked positions: all qualifiers are alike."""
    return torch.where(asked <= TAIL, asked, FIRST_QUALIFIER + (asked - FIRST_QUALIFIER) % 2)


@dataclass(frozen=True)
class Grouping:
    """Which questions a model learns from."""

    heads: bool = True
    tails: bool = True
    qualifiers: bool = True  # false: facts are read as plain triplets, and those that then agree are one
    qualifier_values: float = 0.0  # how likely each value of a qualifier is asked for in an epoch


@dataclass(frozen=True, eq=False)
class QuestionGroups:
    """`q` distinct questions with `a` answers in all.

    Where literals have ids, numbers are answers too, and answers are numbers of `Tokens`; else they are entities,
    and facts whose tail is a number are left out.
    """

    facts: FactTensors  # the facts that `row` counts; without qualifiers where they are not read
    row: Tensor  # (q,) int64 a fact that asks the question
    position: Tensor  # (q,) int64 what is masked in it
    members: Tensor  # (q,) int64 how many facts ask it
    offsets: Tensor  # (q + 1,) int64 answers of question i are offsets[i] … offsets[i + 1]
    answers: Tensor  # (a,) int64 numbers of candidates, ascending and distinct within a question

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, facts: FactTensors, grouping: Grouping) -> QuestionGroups:
        """All questions of these facts, on their device."""
        facts = facts if grouping.qualifiers else without_qualifiers(facts)
        table, is_number = facts.columns(), facts.relation_is_number[:-1].cpu().numpy()
        parts = components(table, is_number)
        starts, pairs = component_starts(table)[:-1], qualifier_components(table)
        column = np.zeros(len(parts), dtype=np.int64)
        column[starts + HEAD], column[starts + TAIL] = table.head, table.tail_entity
        column[pairs + 1] = table.qualifier_entity
        column -= column > facts.sizes.mask_entity  # the id of a masked entity lies before the literals

        asked = (parts.position == HEAD) & grouping.heads | (parts.position == TAIL) & grouping.tails
        if grouping.qualifier_values:
            asked |= (parts.position > TAIL) & (parts.position % 2 == 0)
        if not facts.sizes.literals:
            asked &= (parts.kind == ENTITY_KIND) & ~is_number[table.relation][parts.row]
        chosen = np.flatnonzero(asked)

        keys, answer = question_keys(table, is_number)[chosen], column[chosen]
        order = np.lexsort((answer, keys[:, 1], keys[:, 0]))
        keys, answer, chosen = keys[order], answer[order], chosen[order]
        first = begins(*keys.T)  # starts a new question
        asks, kept = np.flatnonzero(first), np.flatnonzero(begins(*keys.T, answer))
        columns = (
            parts.row[chosen[asks]],
            parts.position[chosen[asks]],
            np.diff(np.append(asks, len(order))),
            np.append(np.flatnonzero(first[kept]), len(kept)),
            answer[kept],
        )
        return cls(facts, *(torch.from_numpy(one.astype(np.int64)).to(facts.device) for one in columns))

    def counts(self) -> Tensor:
        """(q,) int64: how many answers each question has."""
        return self.offsets[1:] - self.offsets[:-1]

    def chance(self, grouping: Grouping) -> Tensor:
        """(q,) float64: how likely each is asked in an epoch, when each fact asks for a qualifier's value by itself."""
        share = 1 - (1 - grouping.qualifier_values) ** self.members.double()
        return torch.where(self.position > TAIL, share, torch.ones_like(share))


def without_qualifiers(facts: FactTensors) -> FactTensors:
    """The same facts as plain triplets."""
    columns = (one.name for one in fields(facts) if one.name.startswith("qualifier"))
    fillers = {name: getattr(facts, name)[-1:] for name in columns}
    return replace(facts, offsets=torch.zeros_like(facts.offsets), **fillers)
