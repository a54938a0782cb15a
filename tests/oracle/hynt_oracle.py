"""HyNT, one fact at a time, straight from the equations of the paper's Section 4: slow, obvious, and written apart
from the model.

It shares nothing with the model but its weights, and works with plain Python lists of vectors in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hynt.models.hynt import Hynt


@dataclass
class Component:
    """One component of a fact: kind "entity", "relation" or "number", and its id or scaled value."""

    kind: str
    value: float


class HyntOracle:
    """Answers one question at a time with the weights of a model."""

    def __init__(self, model: Hynt) -> None:
        self.weights = {name: tensor.detach().double() for name, tensor in model.state_dict().items()}
        self.settings, self.sizes = model.settings, model.sizes

    def answer(self, fact: list[Component], asked: int) -> Tensor:
        """Logits over entities or relations, or the number, for the component at position `asked`; its value is not
        looked at.
        """
        kinds = [component.kind for component in fact]
        vectors = [self.embed(fact, position, asked) for position in range(len(fact))]
        triplet, qualifiers = vectors[:3], [vectors[i : i + 2] for i in range(3, len(fact), 2)]
        w = self.weights

        tokens = [self.encode("encode_triplet", triplet) + w["context_position"][0]]
        tokens += [self.encode("encode_qualifier", pair) + w["context_position"][1] for pair in qualifiers]
        contextual = self.transformer("context", tokens, self.settings.context_layers, self.settings.context_heads)

        place = w["prediction_position"]
        on_z = 1.0 if self.settings.context_position else 0.0
        if asked < 3:
            parts = [contextual[0] + on_z * place[0], *(v + p for v, p in zip(triplet, place[1:4], strict=True))]
            hidden = 1 + asked
        else:
            which = (asked - 3) // 2
            pair = zip(qualifiers[which], place[5:7], strict=True)
            parts = [contextual[1 + which] + on_z * place[4], *(v + p for v, p in pair)]
            hidden = 1 + (asked - 3) % 2
        if self.settings.prediction == "linear":
            name = "project_triplet" if asked < 3 else "project_qualifier"
            final = w[f"{name}.weight"] @ torch.cat(parts) + w[f"{name}.bias"]
        else:
            settings = self.settings
            final = self.transformer("prediction", parts, settings.prediction_layers, settings.prediction_heads)[hidden]

        if kinds[asked] == "relation":
            return w["relation_output.weight"] @ final + w["relation_output.bias"]
        if kinds[asked] == "number":
            relation = int(fact[1 if asked == 2 else asked - 1].value)
            return w["number_output"][relation] @ final + w["number_output_bias"][relation]
        table = w["entity"][: self.sizes.entities] if self.settings.tied_output else w["entity_output"]
        return table @ final + w["entity_output_bias"]

    def embed(self, fact: list[Component], position: int, asked: int) -> Tensor:
        """The vector of a component, hidden where it is asked."""
        w, component = self.weights, fact[position]
        hidden = position == asked
        if component.kind == "entity":
            return w["entity"][self.sizes.entities if hidden else int(component.value)]
        if component.kind == "relation":
            return w["relation"][self.sizes.relations if hidden else int(component.value)]
        relation_position = 1 if position == 2 else position - 1
        relation_hidden = relation_position == asked
        hidden = hidden or (relation_hidden and self.settings.number_of_hidden_relation == "hidden")
        value = w["hidden_number"] if hidden else torch.tensor(component.value, dtype=torch.float64)
        if relation_hidden and self.settings.number_of_hidden_relation == "entity":
            return value * w["entity"][self.sizes.entities]
        relation = self.sizes.relations if relation_hidden else int(fact[relation_position].value)
        vector = value * w["number_weight"][relation]
        return vector + w["number_bias"][relation] if self.settings.number_bias else vector

    def encode(self, name: str, parts: list[Tensor]) -> Tensor:
        """x_tri or x_qual."""
        if self.settings.encoding == "hadamard":
            return torch.stack(parts).prod(0)
        x = self.weights[f"{name}.weight"] @ torch.cat(parts)
        return x + self.weights[f"{name}.bias"] if self.settings.encoding_bias else x

    def transformer(self, name: str, tokens: list[Tensor], layers: int, heads: int) -> list[Tensor]:
        """All tokens after all layers."""
        for layer in range(layers):
            tokens = self.layer(f"{name}.layers.{layer}.", tokens, heads)
        return tokens

    def layer(self, prefix: str, tokens: list[Tensor], heads: int) -> list[Tensor]:
        """Attention, residual, norm, feed-forward, residual, norm."""
        w = self.weights
        d = len(tokens[0])
        width = d // heads
        projected = [w[prefix + "projection.weight"] @ x + w[prefix + "projection.bias"] for x in tokens]
        outputs = []
        for here, x in enumerate(tokens):
            mixed = torch.zeros(d, dtype=torch.float64)
            for head in range(heads):
                part = slice(head * width, (head + 1) * width)
                query = projected[here][:d][part]
                scores = [float(query @ other[d : 2 * d][part]) / math.sqrt(width) for other in projected]
                powers = [math.exp(score - max(scores)) for score in scores]
                for power, other in zip(powers, projected, strict=True):
                    mixed[part] += power / sum(powers) * other[2 * d :][part]
            attended = w[prefix + "output.weight"] @ mixed + w[prefix + "output.bias"]
            middle = self.norm(prefix + "attention_norm", x + attended)
            inner = torch.relu(w[prefix + "expand.weight"] @ middle + w[prefix + "expand.bias"])
            outer = w[prefix + "contract.weight"] @ inner + w[prefix + "contract.bias"]
            outputs.append(self.norm(prefix + "feedforward_norm", middle + outer))
        return outputs

    def norm(self, name: str, x: Tensor) -> Tensor:
        """Layer norm."""
        centred = x - x.mean()
        scaled = centred / torch.sqrt((centred**2).mean() + 1e-5)
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]
