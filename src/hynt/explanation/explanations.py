"""What mattered to an answer: what it becomes when parts of the question are taken away, and where the model looked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.asking.answers import Answers
from hynt.asking.question import AskedFact
from hynt.batches.buckets import bucket_capacity, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch
from hynt.batches.masking import mask
from hynt.errors import UsageError
from hynt.evaluation.evaluator import scoring_conditions
from hynt.graph.arrays import Floats
from hynt.models.hynt import Hynt
from hynt.models.layers.transformer import Transformer, TransformerLayer
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import with_stored_literals

# Where HyNT looks: the attention weights of its two transformers for one question.
#
# They are worked out here from the model's own weights, layer by layer as the paper writes it, and not taken from the
# scoring path, which is built for speed and keeps none. A test holds that both end in the same representation.

CONTEXT, HIDDEN = "context", "hidden part"


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """How much the asked token looks at each token; the weights of a layer's head add up to 1."""

    context: Floats  # (layers, heads, 1 + qualifiers) of the context transformer: the triplet, then each qualifier
    prediction: Floats | None  # (layers, heads, parts) of the prediction transformer; None where the model has none
    parts: tuple[int | None, ...]  # (parts,) the fact's position that each part is; None for the context's outcome
    encoded: Floats  # (dimension,) the representation that all this ends in

    @property
    def on_context(self) -> Floats:
        """(1 + qualifiers,) the mean over layers and heads."""
        return cast(Floats, self.context.mean((0, 1)))

    @property
    def on_parts(self) -> Floats | None:
        """(parts,) the mean over layers and heads."""
        return None if self.prediction is None else cast(Floats, self.prediction.mean((0, 1)))


def attention_of(loaded: LoadedRun, device: torch.device, asked: AskedFact, row: int = 0) -> AttentionWeights | None:
    """Of one row of a question; None where the model is not HyNT."""
    if not isinstance(loaded.model, Hynt):
        return None
    table = with_stored_literals(asked.table.take(np.array([row], dtype=np.int64)), loaded)
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, device, loaded.literals)
    layout = layout_of([(1, bucket_capacity(int(table.offsets[1])))])
    place, position = (torch.tensor([one], dtype=torch.int64, device=device) for one in (0, asked.position))
    batch, _ = mask(facts, place, position, layout)
    with scoring_conditions(loaded.model):
        return attention_weights(loaded.model, batch)


def attention_weights(model: Hynt, batch: MaskedBatch) -> AttentionWeights:
    """Of a batch of one question, read without dropout."""
    position = int(batch.asked[0])
    own = (position - 3) // 2 if position > 2 else None  # the asked qualifier
    parts = model._embed(batch)
    present = batch.qualifier_present
    relation, value = parts.qualifier_relation[present], parts.qualifier_value[present]
    if model.settings.encoding == "hadamard":
        triplet, qualifiers = parts.head * parts.relation * parts.tail, relation * value
    else:
        triplet = model.encode_triplet(torch.cat([parts.head, parts.relation, parts.tail], 1))
        qualifiers = model.encode_qualifier(torch.cat([relation, value], 1))
    tokens = torch.cat([triplet + model.context_position[0], qualifiers + model.context_position[1]])
    z, context = _through(model.context, tokens, 0 if own is None else 1 + own)

    place = list(model.prediction_position)
    if not model.settings.context_position:
        place[0] = place[4] = torch.zeros_like(place[0])
    if own is None:
        sequence = [z, parts.head[0], parts.relation[0], parts.tail[0]]
        positions: tuple[int | None, ...] = (None, 0, 1, 2)
        places, asked = place[:4], 1 + position
    else:
        sequence = [z, relation[own], value[own]]
        positions = (None, 3 + 2 * own, 4 + 2 * own)
        places, asked = place[4:], 1 + (position - 3) % 2
    both = torch.stack([part + where for part, where in zip(sequence, places, strict=True)])
    if model.prediction is None:
        project = model.project_triplet if own is None else model.project_qualifier
        return AttentionWeights(context, None, positions, _plain(project(both.flatten())))
    encoded, prediction = _through(model.prediction, both, asked)
    return AttentionWeights(context, prediction, positions, _plain(encoded))


def _through(transformer: Transformer, tokens: Tensor, asked: int) -> tuple[Tensor, Floats]:
    """(dimension,) the asked token after all layers; (layers, heads, tokens) where it looked in each."""
    looked = []
    for layer in transformer.layers:
        tokens, weights = _layer(cast(TransformerLayer, layer), tokens)
        looked.append(weights[:, asked])
    return tokens[asked], _plain(torch.stack(looked))


def _layer(layer: TransformerLayer, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """(tokens, dimension) the outcome of one layer; (heads, tokens, tokens) its attention, from row to column."""
    query, key, value = (
        part.reshape(len(tokens), layer.heads, -1).transpose(0, 1) for part in layer.projection(tokens).chunk(3, -1)
    )
    weights = (query @ key.transpose(1, 2) * query.shape[-1] ** -0.5).softmax(-1)
    mixed = (weights @ value).transpose(0, 1).flatten(1)
    middle = layer.attention_norm(tokens + layer.output(mixed))
    return layer.feedforward_norm(middle + layer.contract(functional.relu(layer.expand(middle)))), weights


def _plain(tensor: Tensor) -> Floats:
    return tensor.detach().double().cpu().numpy()


Change: TypeAlias = Literal["removed", "hidden"]
"""A qualifier is taken out of the fact; a component is replaced by what the model has for a hidden one."""

COLUMNS = (
    "part",
    "says",
    "change",
    "answer_id",
    "answer",
    "probability",
    "probability_change",
    "rank",
    "value",
    "value_change",
    "change_in_widths",
    "context_attention",
    "prediction_attention",
)
"""Of the table that an explanation makes: a row for each part."""


@dataclass(frozen=True)
class Influence:
    """What the answer becomes without one part of the question. What does not apply to the kind of answer is None."""

    part: str  # head, relation, tail, qualifier 1, value of qualifier 1, all qualifiers
    says: str  # what stands there: Japan, point in time 2024; "" for all qualifiers
    change: Change
    answer_id: str | None  # the first answer without the part
    answer: str | None
    probability: float | None  # of the explained answer, without the part
    probability_change: float | None  # against the whole question: below 0 where the part spoke for the answer
    rank: int | None  # of the explained answer, without the part
    value: float | None  # the number that is answered without the part
    value_change: float | None
    change_in_widths: float | None  # the same in widths of the whole question's interval; None without an interval
    context_attention: float | None  # mean over layers and heads; of qualifiers, and of those alone
    prediction_attention: float | None  # likewise; of the parts of the asked triplet or qualifier

    @property
    def size(self) -> float:
        """How much the part mattered, to sort by."""
        return abs(self.probability_change if self.probability_change is not None else self.value_change or 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True)
class Explained:
    """The answer whose probability and rank are followed."""

    id: str
    name: str
    probability: float
    rank: int

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "probability": self.probability, "rank": self.rank}


@dataclass(frozen=True, eq=False)
class Explanation:
    """An answer, and what mattered to it."""

    answers: Answers  # to the whole question
    about: Explained | None  # None where the answer is a number
    influences: tuple[Influence, ...]  # most influential first
    attention: AttentionWeights | None  # None where the model has no such thing
    tokens: tuple[str, ...]  # what the context transformer's tokens say; empty without attention
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = {
            **self.answers.to_dict(),
            "about": self.about and self.about.to_dict(),
            "influences": [one.to_dict() for one in self.influences],
            "notes": list(self.notes),
            "attention": None,
        }
        if self.attention is not None:
            found["attention"] = {
                "tokens": list(self.tokens),
                "context": self.attention.context.tolist(),
                "parts": [None if part is None else int(part) for part in self.attention.parts],
                "prediction": None if self.attention.prediction is None else self.attention.prediction.tolist(),
            }
        return found

    def to_pandas(self) -> Any:
        """A pandas data frame with `COLUMNS`, a row for each part."""
        try:
            import pandas
        except ImportError:
            raise UsageError("pandas is not installed.", advice="pip install pandas, or use .to_dict().") from None
        return pandas.DataFrame([one.to_dict() for one in self.influences], columns=list(COLUMNS))
