"""What mattered to an answer: what it becomes when parts of the question are taken away, and where the model looked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from hynt.asking.answers import Answers, NumberAnswer, format_probability
from hynt.graph.sentences import format_difference
from hynt.graph.vocabulary import Floats
from hynt.results import PlainValues, Table, arrow_table, box, notebook_table, quiet

if TYPE_CHECKING:
    import pyarrow as pa

Change: TypeAlias = Literal["removed", "hidden"]
"""A qualifier is taken out of the fact; a component is replaced by what the model has for a hidden one."""


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """How much the asked token looks at each token; the weights of a layer's head add up to 1."""

    context: Floats  # (layers, heads, 1 + qualifiers) of the context transformer: the triplet, then each qualifier
    prediction: Floats | None  # (layers, heads, parts) of the prediction transformer; None where the model has none
    parts: tuple[int | None, ...]  # (parts,) the fact's position that each part is; None for the context's outcome
    encoded: Floats | None = None  # (dimension,) the representation that all this ends in; a service does not send it

    @property
    def on_context(self) -> Floats:
        """(1 + qualifiers,) the mean over layers and heads."""
        return cast(Floats, self.context.mean((0, 1)))

    @property
    def on_parts(self) -> Floats | None:
        """(parts,) the mean over layers and heads."""
        return None if self.prediction is None else cast(Floats, self.prediction.mean((0, 1)))


@dataclass(frozen=True)
class Influence:
    """What the answer becomes without one part of the question. What does not apply to the kind of answer is None."""

    part: str  # head, relation, tail, qualifier 1, value of qualifier 1, all qualifiers; facts of the head, of the tail
    says: str  # what is there: Japan; point in time 2024; "" for all qualifiers; of facts, their relation and number
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
        return asdict(self)


COLUMNS = tuple(one.name for one in fields(Influence))
"""Of the table that an explanation makes: a row for each part."""


@dataclass(frozen=True)
class Explained:
    """The answer whose probability and rank are followed."""

    id: str
    name: str
    probability: float
    rank: int

    def __str__(self) -> str:
        return f"{self.name}, rank {self.rank:,}, probability {format_probability(self.probability)}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Explanation(PlainValues, Table):
    """An answer, and what mattered to it: a table with a row for each part of the question that was taken away."""

    answers: Answers  # to the whole question
    about: Explained | None  # None where the answer is a number
    influences: tuple[Influence, ...]  # most influential first
    attention: AttentionWeights | None  # None where the model has no such thing
    tokens: tuple[str, ...]  # what the context transformer's tokens say; empty without attention
    notes: tuple[str, ...]

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Explanation:
        """Reads what `to_dict` wrote."""
        looked = found["attention"]
        attention = None
        if looked is not None:
            prediction = None if looked["prediction"] is None else np.array(looked["prediction"])
            attention = AttentionWeights(np.array(looked["context"]), prediction, tuple(looked["parts"]))
        return cls(
            Answers.from_dict(found),
            found["about"] and Explained(**found["about"]),
            tuple(Influence(**one) for one in found["influences"]),
            attention,
            () if looked is None else tuple(looked["tokens"]),
            tuple(found["notes"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values that JSON can hold."""
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

    def to_arrow(self) -> pa.Table:
        """An Arrow table with `COLUMNS`, a row for each part."""
        import pyarrow as pa

        texts = {"part", "says", "change", "answer_id", "answer"}
        kinds = {name: pa.string() if name in texts else pa.float64() for name in COLUMNS} | {"rank": pa.int64()}
        return arrow_table((one.to_dict() for one in self.influences), pa.schema(list(kinds.items())))

    def __repr__(self) -> str:
        lines = [str(self.answers), *([] if self.about is None else [f"  explained: {self.about}"])]
        lines += [f"  {self._words(one)}" for one in self.influences]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes if note not in self.answers.notes)])

    def _repr_html_(self) -> str:
        rows = [[one.part, one.says, one.change, *self.cells(one)] for one in self.influences]
        named = "first answer" if self.about is None else f"explained: {self.about}"
        outcome = ["answer", "change"] if self.about is None else ["probability", "change", "rank"]
        shown = notebook_table(["without", "says", "", *outcome], rows, numbers=range(3, 3 + len(outcome)))
        return box(self.answers.question, quiet(named), shown, quiet(*self.notes))

    def _words(self, one: Influence) -> str:
        cells = self.cells(one)
        return f"without {one.part}{f' ({one.says})' if one.says else ''}: {cells[0]} ({cells[1]})"

    def cells(self, one: Influence) -> list[str]:
        """What the answer becomes, by how much that differs, and its rank where it has one."""
        if one.value is not None:
            answer, change = self.answers.answers[0], one.value_change or 0.0
            assert isinstance(answer, NumberAnswer)
            sign = "−" if change < 0 else "+"
            return [answer.text(one.value), sign + format_difference(abs(change), answer.unit)]
        return [format_probability(one.probability or 0.0), signed(one.probability_change, 4), str(one.rank)]


def signed(value: float | None, digits: int) -> str:
    """A change, with the minus sign that numbers have everywhere; one that rounds to nothing has no sign."""
    if value is None:
        return ""
    return f"{value:+.{digits}f}".replace("-", "−") if round(value, digits) else f"{0:.{digits}f}"
