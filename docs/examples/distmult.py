"""DistMult (Yang et al., ICLR 2015) as a model of hynt, with a stream of its own: S(h, r, t) = Σ e_h ∘ w_r ∘ e_t."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hynt.batches.buckets import layout_of
from hynt.batches.epoch_plan import generator_for
from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.batches.masked_batch import MaskedBatch, mask
from hynt.batches.questions import without_qualifiers
from hynt.config import Range
from hynt.graph.fact_table import HEAD, TAIL
from hynt.models.contract import (
    Candidates,
    Capability,
    EncodedQuestion,
    Entities,
    EntityIds,
    EntityRange,
    Part,
    Position,
    Task,
)
from hynt.models.registry import entry_of
from hynt.objectives.streams import ItemStream, Loss, LossFunction, Phase, PhaseSettings, ShuffledEpoch, trainable


class TripletsBothWays(ItemStream):
    """Every triplet twice an epoch: once its tail is asked for and once its head, among all entities."""

    name: ClassVar[str] = "triplets both ways"
    parts: ClassVar[tuple[str, ...]] = ("entity",)

    def __init__(self, train: FactTensors, batch_size: int, smoothing: float) -> None:
        self.facts, self.batch_size, self.smoothing = without_qualifiers(train), batch_size, smoothing
        self.links = torch.nonzero(~train.tail_is_number).squeeze(1)  # (n,) facts between entities
        self.item_count = 2 * len(self.links)

    def epoch(self, seed: int, epoch: int) -> ShuffledEpoch:
        """Drawn on the CPU, from (seed, epoch) and a word alone: so a resumed run does what it would have done."""
        order = torch.randperm(self.item_count, generator=generator_for(seed, epoch, "both ways"))
        return ShuffledEpoch(order.to(self.facts.device), self.batch_size)

    def loss_for(self, shape: Hashable) -> LossFunction:
        """Steps of `shape` questions. No value is looked at in the loss itself, so that a GPU can replay it."""
        assert isinstance(shape, int)
        layout = layout_of([(shape, 0)])  # so many rows, no places for qualifiers

        def loss(model: DistMult, tensors: tuple[Tensor, ...]) -> Loss:
            (chosen,) = tensors
            fact, asked = self.links[chosen // 2], torch.where(chosen % 2 == 0, HEAD, TAIL)
            batch, answers = mask(self.facts, fact, asked, layout)
            scores = model.score(model.read(batch), Entities())
            total = cross_entropy(scores, answers.entity, label_smoothing=self.smoothing, reduction="sum")
            count = total.new_tensor(float(len(chosen)))
            return Loss(total / count, total.unsqueeze(0), count.unsqueeze(0))

        return loss


@dataclass(frozen=True)
class DistMultSettings:
    """Every field needs a default; `--set model.dimension=128` changes one, and what is out of range is refused."""

    dimension: Annotated[int, Range(1)] = 64
    dropout: Annotated[float, Range(0, 1, below_maximum=True)] = 0.1


class DistMult(nn.Module):
    """Reads triplets alone, and answers heads and tails."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = (TripletsBothWays,)
    answers: ClassVar[frozenset[Capability]] = frozenset({(Task.LINK, Position.HEAD), (Task.LINK, Position.TAIL)})
    reads: ClassVar[frozenset[Part]] = frozenset()  # neither qualifiers nor numbers

    def __init__(self, sizes: Sizes, settings: DistMultSettings) -> None:
        super().__init__()
        self.sizes = sizes
        # The last row stands for whatever is no entity: a masked one, or a tail that is a number.
        self.entity = nn.Embedding(sizes.entities + 1, settings.dimension)
        self.relation = nn.Embedding(sizes.relations + 1, settings.dimension)
        self.dropout = nn.Dropout(settings.dropout)
        for table in (self.entity, self.relation):
            nn.init.xavier_normal_(table.weight)

    @classmethod
    def build(cls, sizes: Sizes, train: FactTensors, settings: DistMultSettings) -> DistMult:
        """`train` is there for models that need the training facts themselves; this one does not."""
        return cls(sizes, settings).to(train.device)

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:
        """One stage of training, of all parameters."""
        stream = TripletsBothWays(train, settings.batch_size, settings.losses.smoothing)
        return [Phase(stream, trainable(self), settings.epochs)]

    def read(self, batch: MaskedBatch) -> EncodedQuestion:
        """What is visible, encoded once: e ∘ w of the known entity and the relation."""
        known = torch.where(batch.asked == HEAD, batch.tail_entity, batch.head)
        encoded = self.dropout(self.entity(known)) * self.dropout(self.relation(batch.relation))
        return EncodedQuestion(encoded, batch.asked_relation())

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
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
