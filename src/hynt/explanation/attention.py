"""Where HyNT looks: the attention weights of its two transformers for one question.

They are worked out here from the model's own weights, layer by layer as the paper writes it, and not taken from the
scoring path, which is built for speed and keeps none. A test holds that both end in the same representation.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from hynt.asking.columns import AskedFact
from hynt.batches.buckets import bucket_capacity, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, mask
from hynt.evaluation.evaluator import scoring_conditions
from hynt.explanation.explanations import AttentionWeights
from hynt.graph.fact_table import HEAD, RELATION, TAIL, qualifier_of, relation_position
from hynt.graph.vocabulary import Floats
from hynt.models.hynt import Hynt
from hynt.models.layers.transformer import Transformer, TransformerLayer
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import with_stored_literals


def attention_of(loaded: LoadedRun, device: torch.device, asked: AskedFact, row: int = 0) -> AttentionWeights | None:
    """Of one row of a question; None where the model is not HyNT."""
    model = loaded.trained
    if not isinstance(model, Hynt):
        return None
    table = with_stored_literals(asked.table.take(np.array([row], dtype=np.int64)), loaded)
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, device, loaded.literals)
    layout = layout_of([(1, bucket_capacity(int(table.offsets[1])))])
    place, position = (torch.tensor([one], dtype=torch.int64, device=device) for one in (0, asked.position))
    batch, _ = mask(facts, place, position, layout)
    with scoring_conditions(model):
        return attention_weights(model, batch)


def attention_weights(model: Hynt, batch: MaskedBatch) -> AttentionWeights:
    """Of a batch of one question, read without dropout."""
    position = int(batch.asked[0])
    own = qualifier_of(position) if position > TAIL else None  # the asked qualifier
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
        positions: tuple[int | None, ...] = (None, HEAD, RELATION, TAIL)
        places, asked = place[:4], 1 + position
    else:
        sequence = [z, relation[own], value[own]]
        positions = (None, relation_position(own), relation_position(own) + 1)
        places, asked = place[4:], 1 + position - relation_position(own)
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
