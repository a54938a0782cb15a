"""DistMult (Yang et al., ICLR 2015) as a model of hynt: S(h, r, t) = Σ e_h ∘ w_r ∘ e_t."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import HEAD, MaskedBatch
from hynt.batches.question_groups import Grouping
from hynt.config import Range
from hynt.models.contract import (
    Candidates,
    Capability,
    Entities,
    EntityIds,
    EntityRange,
    ItemStream,
    Part,
    Position,
    Question,
    Task,
)
from hynt.models.registry import entry_of


@dataclass(frozen=True)
class DistMultSettings:
    """Every field needs a default; `--set model.dimension=128` changes one, and what is out of range is refused."""

    dimension: Annotated[int, Range(1)] = 64
    dropout: Annotated[float, Range(0, 1, below_maximum=True)] = 0.1


class DistMult(nn.Module):
    """Reads triplets alone, and answers heads and tails."""

    item_stream: ClassVar[ItemStream] = ItemStream.GROUPED_QUESTIONS  # a question with all its true answers
    grouping: ClassVar[Grouping] = Grouping(qualifiers=False)  # facts that differ in qualifiers alone are one
    answers: ClassVar[frozenset[Capability]] = frozenset({(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL)})
    reads: ClassVar[frozenset[Part]] = frozenset()  # neither qualifiers nor numbers

    def __init__(self, sizes: Sizes, settings: DistMultSettings) -> None:
        super().__init__()
        self.sizes = sizes
        # The last row stands for whatever is no entity: a hidden one, or a tail that is a number.
        self.entity = nn.Embedding(sizes.entities + 1, settings.dimension)
        self.relation = nn.Embedding(sizes.relations + 1, settings.dimension)
        self.dropout = nn.Dropout(settings.dropout)
        for table in (self.entity, self.relation):
            nn.init.xavier_normal_(table.weight)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: DistMultSettings) -> DistMult:
        """`train` is there for models that need the training facts themselves; this one does not."""
        return cls(sizes, settings).to(train.device)

    def read(self, batch: MaskedBatch) -> Question:
        """What is visible, encoded once: e ∘ w of the known entity and the relation."""
        known = torch.where(batch.asked == HEAD, batch.tail_entity, batch.head)
        encoded = self.dropout(self.entity(known)) * self.dropout(self.relation(batch.relation))
        return Question(encoded, batch.asked_relation())

    def score(self, question: Question, candidates: Candidates) -> Tensor:
        """(rows, candidates), higher is better."""
        match candidates:
            case Entities():
                rows = self.entity.weight[: self.sizes.entities]
            case EntityRange(start, end):
                rows = self.entity.weight[start:end]
            case EntityIds(ids):
                rows = self.entity(ids)
            case _:
                raise ValueError(f"DistMult scores entities, not {type(candidates).__name__}")
        if rows.dim() == 2:  # the same candidates for all questions
            return question.encoded @ rows.t()
        return (rows @ question.encoded.unsqueeze(2)).squeeze(2)


ENTRY = entry_of(DistMult, DistMultSettings, "products of entities and relations (2015)")
