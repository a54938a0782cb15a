"""StarE's graph encoder: entities gather messages from their neighbours, whose relations are changed by qualifiers."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.models.layers.token_scores import token_rows

Composition: TypeAlias = Literal["rotate", "multiply", "subtract", "correlate"]
Degrees: TypeAlias = Literal["symmetric", "mean"]

DIRECTIONS = 2
"""Along a fact, from its tail to its head, and against it."""


def composed(entity: Tensor, relation: Tensor, how: Composition) -> Tensor:
    """(n, d) from the same. "rotate" takes halves for real and imaginary parts and multiplies as complex numbers."""
    match how:
        case "rotate":
            (real, imaginary), (cosine, sine) = entity.chunk(2, -1), relation.expand_as(entity).chunk(2, -1)
            return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
        case "multiply":
            return entity * relation
        case "subtract":
            return entity - relation
        case "correlate":
            width = entity.shape[-1]
            spectrum = torch.conj(torch.fft.rfft(entity.float())) * torch.fft.rfft(relation.float())
            correlated: Tensor = torch.fft.irfft(spectrum, n=width)
            return correlated


class StarGraph(nn.Module):
    """The training facts as edges between tokens. Not learned, and not saved: it is made from the training facts."""

    receiver: Tensor  # (2, edges) int64 rows of tokens: heads, then tails
    sender: Tensor  # (2, edges) int64: tails, then heads
    relation: Tensor  # (2, edges) int64 rows of relations: direct ones, then reverse ones
    share: Tensor  # (2, edges) float32 what each message counts
    qualified: Tensor  # (q,) int64 edges that have qualifiers
    qualifier_edge: Tensor  # (m,) int64 which of `qualified` each qualifier belongs to
    qualifier_relation: Tensor  # (m,) int64
    qualifier_value: Tensor  # (m,) int64 rows of tokens

    def __init__(self, train: FactTensors, degrees: Degrees) -> None:
        super().__init__()
        sizes = train.sizes
        self.tokens = sizes.entities + sizes.literals
        ends = token_rows(torch.stack([train.head, train.tail_entity]).long(), sizes, self.tokens)
        value = token_rows(train.qualifier_entity[:-1].long(), sizes, self.tokens)
        relation = train.relation.long()
        counts = train.qualifier_counts()
        qualified = torch.nonzero(counts).squeeze(1)
        number = torch.arange(len(qualified), device=counts.device)
        columns = {
            "receiver": ends,
            "sender": ends.flip(0),
            "relation": torch.stack([relation, relation + sizes.relations]),
            "share": self._shares(ends, degrees),
            "qualified": qualified,
            "qualifier_edge": torch.repeat_interleave(number, counts[qualified]),
            "qualifier_relation": train.qualifier_relation[:-1].long(),
            "qualifier_value": value,
        }
        for name, column in columns.items():
            self.register_buffer(name, column, persistent=False)

    def _shares(self, ends: Tensor, degrees: Degrees) -> Tensor:
        """(2, edges): one over the root of both ends' degrees, each counted as receiver in that direction.

        So a sender that never receives in a direction is silent in it, as in StarE's code; "mean" divides by the
        receiver's degree alone.
        """
        found = []
        for receiver, sender in (ends, ends.flip(0)):
            degree = torch.bincount(receiver, minlength=self.tokens).float()
            if degrees == "mean":
                found.append(1 / degree[receiver])
            else:
                root = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, 0.0)
                found.append(root[receiver] * root[sender])
        return torch.stack(found)


class StarLayer(nn.Module):
    """One round of messages. Maps after sums instead of before are exact, and cost by entity instead of by edge."""

    def __init__(self, dimension: int, composition: Composition, qualifier_weight: float, dropout: float) -> None:
        super().__init__()
        self.composition, self.qualifier_weight, self.dropout = composition, qualifier_weight, dropout
        d = dimension
        self.message = nn.Parameter(_weights(DIRECTIONS, d, d))  # W_in and W_out
        self.loop, self.of_relations = nn.Parameter(_weights(d, d)), nn.Parameter(_weights(d, d))  # W_loop, W_rel
        self.of_qualifiers = nn.Parameter(_weights(d, d))  # W_q
        self.loop_relation = nn.Parameter(_weights(1, d))
        self.norm = nn.BatchNorm1d(d)

    def forward(self, x: Tensor, relations: Tensor, graph: StarGraph) -> tuple[Tensor, Tensor]:
        """(tokens, d) and (2 × relations, d) from the same."""
        rate = self.dropout if self.training else 0.0
        keep = 1 - self.qualifier_weight  # α
        # Looked up as embeddings, whose way back shares the sums over a much-used row among many threads of a GPU.
        values = functional.embedding(graph.qualifier_value, x)
        pairs = composed(values, functional.embedding(graph.qualifier_relation, relations), self.composition)
        context = x.new_zeros(len(graph.qualified), x.shape[1]).index_add(0, graph.qualifier_edge, pairs.to(x.dtype))
        context = self.qualifier_weight * (context @ self.of_qualifiers)
        total = composed(x, self.loop_relation, self.composition) @ self.loop
        for direction in range(DIRECTIONS):
            of_edge = keep * functional.embedding(graph.relation[direction], relations)
            of_edge = of_edge.index_add(0, graph.qualified, context.to(of_edge.dtype))
            messages = composed(functional.embedding(graph.sender[direction], x), of_edge, self.composition)
            messages = messages * graph.share[direction].unsqueeze(1)
            gathered = x.new_zeros(x.shape).index_add(0, graph.receiver[direction], messages.to(x.dtype))
            total = total + functional.dropout(gathered @ self.message[direction], rate, rate > 0)
        return torch.tanh(self.norm(total / 3)), relations @ self.of_relations


def _weights(*shape: int) -> Tensor:
    """Each matrix on its own by Xavier's rule."""
    made = torch.empty(shape)
    for matrix in made if made.dim() == 3 else made.unsqueeze(0):
        nn.init.xavier_normal_(matrix)
    return made
