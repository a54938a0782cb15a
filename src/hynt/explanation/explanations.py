"""What mattered to an answer: what it becomes when parts of the question are taken away, and where the model looked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hynt.asking.answers import Answers
from hynt.errors import UsageError
from hynt.explanation.attention_weights import AttentionWeights

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
