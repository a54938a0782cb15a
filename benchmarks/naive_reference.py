"""HyNT written the plain way, to hold the project's own step against: as slow as it is obvious.

Facts are Python lists. One component of each is hidden by Python code, every fact is padded to the longest, PyTorch's
own transformer encoder gets a padding mask, and all four tokens of the prediction transformer are projected onto all
entities, all relations and all numbers. This is how the released code works, told in this project's names. Weights
can be carried to and from `hynt.models.hynt.Hynt`, so one evaluator judges both.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.models.hynt import Hynt, HyntSettings

_LAYER_NAMES = {
    "self_attn.in_proj_weight": "projection.weight",
    "self_attn.in_proj_bias": "projection.bias",
    "self_attn.out_proj.weight": "output.weight",
    "self_attn.out_proj.bias": "output.bias",
    "linear1.weight": "expand.weight",
    "linear1.bias": "expand.bias",
    "linear2.weight": "contract.weight",
    "linear2.bias": "contract.bias",
    "norm1.weight": "attention_norm.weight",
    "norm1.bias": "attention_norm.bias",
    "norm2.weight": "feedforward_norm.weight",
    "norm2.bias": "feedforward_norm.bias",
}
"""What PyTorch calls the parts of a layer, and what this project calls them."""


@dataclass
class Fact:
    """A fact as a list: h, r, t, q_1, v_1, …. An entity or relation is its id; a number is its scaled value."""

    components: list[float]
    is_number: list[bool]


def facts_as_lists(facts: FactTensors) -> list[Fact]:
    """All facts of a table as Python lists."""
    found = []
    starts = facts.offsets.tolist()
    triplets = zip(
        facts.head.tolist(),
        facts.relation.tolist(),
        facts.tail_entity.tolist(),
        facts.tail_number.tolist(),
        facts.tail_is_number.tolist(),
        strict=True,
    )
    relations, entities = facts.qualifier_relation.tolist(), facts.qualifier_entity.tolist()
    numbers, kinds = facts.qualifier_number.tolist(), facts.qualifier_is_number.tolist()
    for index, (head, relation, entity, number, kind) in enumerate(triplets):
        fact = Fact([head, relation, number if kind else entity], [False, False, kind])
        for slot in range(starts[index], starts[index + 1]):
            fact.components += [relations[slot], numbers[slot] if kinds[slot] else entities[slot]]
            fact.is_number += [False, kinds[slot]]
        found.append(fact)
    return found


_FILLER = (0, 0, 0.0, False, False)
"""What padding holds: relation, entity, number, whether it is a number, whether that is hidden."""


@dataclass
class PaddedBatch:
    """Facts padded to one length of `tokens` (the triplet and its qualifiers), one component hidden in each."""

    relation: Tensor  # (rows, tokens) int64
    head: Tensor  # (rows,) int64
    value_entity: Tensor  # (rows, tokens) int64 the tail, then the values of qualifiers
    value_number: Tensor  # (rows, tokens) float32
    value_is_number: Tensor  # (rows, tokens) bool
    number_hidden: Tensor  # (rows, tokens) bool
    padding: Tensor  # (rows, tokens) bool
    token: Tensor  # (rows,) int64 which token has the masked component
    place: Tensor  # (rows,) int64 where the masked component stands in the prediction transformer, 1 to 3
    task: Tensor  # (rows,) int64 0 an entity, 1 a relation, 2 a number is asked
    answer: Tensor  # (rows,) float64 an id or a scaled number
    answer_relation: Tensor  # (rows,) int64 the relation of an asked number


def padded_batch(facts: list[Fact], sizes: Sizes, longest: int | None, choice: random.Random) -> PaddedBatch:
    """Hides one component of each fact, drawn by `choice`, and pads to `longest` tokens or the longest in the batch."""
    tokens = longest or max(len(fact.components) // 2 for fact in facts)
    columns: dict[str, list[object]] = {name: [] for name in PaddedBatch.__annotations__}
    for fact in facts:
        relation: list[int] = []
        entity: list[int] = []
        number: list[float] = []
        kind: list[bool] = []
        hidden: list[bool] = []
        padding: list[bool] = []
        asked = choice.randrange(len(fact.components))
        head = sizes.mask_entity if asked == 0 else int(fact.components[0])
        for token in range(tokens):
            here = 2 * token + 1
            if here >= len(fact.components):
                for column, filler in zip((relation, entity, number, kind, hidden), _FILLER, strict=True):
                    column.append(filler)  # type: ignore[attr-defined]
                padding.append(True)
                continue
            value, is_number = fact.components[here + 1], fact.is_number[here + 1]
            relation.append(sizes.mask_relation if asked == here else int(fact.components[here]))
            entity.append(sizes.mask_entity if is_number or asked == here + 1 else int(value))
            number.append(value if is_number and asked != here + 1 else 0.0)
            kind.append(is_number)
            hidden.append(is_number and asked == here + 1)
            padding.append(False)
        answer = fact.components[asked]
        row = {
            "relation": relation,
            "head": head,
            "value_entity": entity,
            "value_number": number,
            "value_is_number": kind,
            "number_hidden": hidden,
            "padding": padding,
            "token": max(asked - 1, 0) // 2,
            "place": 1 + asked if asked < 3 else 2 - asked % 2,
            "task": 1 if asked % 2 else 2 if fact.is_number[asked] else 0,
            "answer": answer,
            "answer_relation": fact.components[asked - 1] if asked and not asked % 2 else 0,
        }
        for name, value_of_row in row.items():
            columns[name].append(value_of_row)
    floats = {"value_number": torch.float32, "answer": torch.float64}
    bools = {"value_is_number": torch.bool, "number_hidden": torch.bool, "padding": torch.bool}
    kinds = floats | bools
    return PaddedBatch(
        **{name: torch.tensor(rows, dtype=kinds.get(name, torch.int64)) for name, rows in columns.items()}
    )


class NaiveHynt(nn.Module):
    """The model in the paper's form, or with the released code's differences where `settings` says so."""

    def __init__(self, sizes: Sizes, settings: HyntSettings) -> None:
        super().__init__()
        d = settings.dimension
        self.sizes, self.settings = sizes, settings
        self.entity = nn.Parameter(torch.empty(sizes.entities + 1, d))
        self.relation = nn.Parameter(torch.empty(sizes.relations + 1, d))
        self.number_weight = nn.Parameter(torch.empty(sizes.relations + 1, d))
        if settings.number_bias:
            self.number_bias = nn.Parameter(torch.empty(sizes.relations + 1, d))
        self.hidden_number = nn.Parameter(torch.tensor(0.5))
        self.encode_triplet = nn.Linear(3 * d, d, bias=settings.encoding_bias)
        self.encode_qualifier = nn.Linear(2 * d, d, bias=settings.encoding_bias)
        self.context_position = nn.Parameter(torch.empty(2, d))
        self.prediction_position = nn.Parameter(torch.empty(7, d))
        self.context = _encoder(
            d, settings.context_layers, settings.context_heads, settings.context_feedforward, settings.dropout
        )
        self.prediction = _encoder(
            d, settings.prediction_layers, settings.prediction_heads, settings.prediction_feedforward, settings.dropout
        )
        self.entity_output = nn.Parameter(torch.empty(sizes.entities, d))
        self.entity_output_bias = nn.Parameter(torch.zeros(sizes.entities))
        self.relation_output = nn.Linear(d, sizes.relations)
        self.number_output = nn.Parameter(torch.empty(sizes.relations, d))
        self.number_output_bias = nn.Parameter(torch.zeros(sizes.relations))

    def take_weights(self, model: Hynt) -> None:
        """Starts from the weights of the project's model."""
        self.load_state_dict({_plain(name): tensor.clone() for name, tensor in model.state_dict().items()})

    def give_weights(self, model: Hynt) -> None:
        """Hands its weights to the project's model."""
        mine = self.state_dict()
        model.load_state_dict({name: mine[_plain(name)] for name in model.state_dict()})

    def forward(self, batch: PaddedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of (rows, 4 tokens) for all entities, all relations, and the numbers of all relations."""
        head = functional.embedding(batch.head, self.entity)
        relation = functional.embedding(batch.relation, self.relation)
        value = torch.where(
            batch.value_is_number.unsqueeze(2),
            self._numbers(batch),
            functional.embedding(batch.value_entity, self.entity),
        )
        triplet = self.encode_triplet(torch.cat([head, relation[:, 0], value[:, 0]], 1)) + self.context_position[0]
        qualifiers = self.encode_qualifier(torch.cat([relation[:, 1:], value[:, 1:]], 2)) + self.context_position[1]
        encoded = self.context(torch.cat([triplet.unsqueeze(1), qualifiers], 1), src_key_padding_mask=batch.padding)

        rows = torch.arange(len(batch.head))
        place, of_qualifier = self.prediction_position, (batch.token > 0).unsqueeze(1)
        z, relation, value = (tokens[rows, batch.token] for tokens in (encoded, relation, value))
        if self.settings.context_position:
            z = z + torch.where(of_qualifier, place[4], place[0])
        first = torch.where(of_qualifier, relation + place[5], head + place[1])
        second = torch.where(of_qualifier, value + place[6], relation + place[2])
        third = torch.where(of_qualifier, torch.zeros_like(value), value + place[3])
        absent = torch.zeros(len(rows), 4, dtype=torch.bool)
        absent[:, 3] = batch.token > 0
        final = self.prediction(torch.stack([z, first, second, third], 1), src_key_padding_mask=absent)
        entities = functional.linear(final, self.entity_output, self.entity_output_bias)
        numbers = functional.linear(final, self.number_output, self.number_output_bias)
        return entities, self.relation_output(final), numbers

    def _numbers(self, batch: PaddedBatch) -> Tensor:
        shown = torch.where(batch.number_hidden, self.hidden_number, batch.value_number).unsqueeze(2)
        numbers = shown * functional.embedding(batch.relation, self.number_weight)
        if self.settings.number_bias:
            numbers = numbers + functional.embedding(batch.relation, self.number_bias)
        return numbers


def _encoder(dimension: int, layers: int, heads: int, feedforward: int, dropout: float) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(dimension, heads, feedforward, dropout, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def _plain(name: str) -> str:
    """What the weight `name` of the project's model is called here."""
    for plain, ours in _LAYER_NAMES.items():
        if ".layers." in name and name.endswith(f".{ours}"):
            return name.removesuffix(ours) + plain
    return name


def naive_loss(model: NaiveHynt, batch: PaddedBatch, smoothing: float) -> Tensor:
    """The sum of the mean losses of the three tasks, as PyTorch computes them."""
    entities, relations, numbers = model(batch)
    rows = torch.arange(len(batch.task))
    total = torch.zeros(())
    for task, scores in enumerate((entities, relations)):
        chosen = batch.task == task
        if chosen.any():
            picked = scores[rows, batch.place][chosen]
            total = total + functional.cross_entropy(picked, batch.answer[chosen].long(), label_smoothing=smoothing)
    chosen = batch.task == 2
    if chosen.any():
        predicted = numbers[rows, batch.place, batch.answer_relation][chosen]
        total = total + functional.mse_loss(predicted, batch.answer[chosen].float())
    return total


def naive_steps(
    facts: list[Fact], sizes: Sizes, batch_size: int, choice: random.Random, longest: int | None
) -> Iterator[PaddedBatch]:
    """The batches of an epoch, plainly shuffled."""
    order = list(range(len(facts)))
    choice.shuffle(order)
    for start in range(0, len(order), batch_size):
        yield padded_batch([facts[i] for i in order[start : start + batch_size]], sizes, longest, choice)


def naive_update(
    model: NaiveHynt, optimiser: torch.optim.Optimizer, batch: PaddedBatch, smoothing: float, clip: float
) -> float:
    """One step of Adam; the loss is read back each time."""
    optimiser.zero_grad()
    loss = naive_loss(model, batch, smoothing)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimiser.step()
    return loss.item()
