"""What a run answers: a table of candidates, or a number with its interval; as text, dict, pandas or polars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hynt.errors import UsageError
from hynt.graph.sentences import format_quantity


@dataclass(frozen=True)
class RankedAnswer:
    """An entity or a relation."""

    rank: int  # among the candidates, from 1
    id: str
    name: str
    probability: float  # among the candidates
    score: float  # the model's own, as the evaluator sees it
    known: tuple[str, ...]  # the splits that hold this very fact

    def to_dict(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "name": self.name,
            "probability": self.probability,
            "score": self.score,
            "known": list(self.known),
        }


@dataclass(frozen=True)
class KnownNumber:
    """A number that the graph already holds as an answer."""

    value: float
    splits: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "splits": list(self.splits)}


@dataclass(frozen=True)
class NumberAnswer:
    """A number in the graph's unit. For dates values are decimal years, and the texts are dates."""

    value: float
    unit: str
    interval: tuple[float, float] | None  # None where nothing is known about errors
    level: float  # the share of such intervals that hold the truth
    interval_from: str  # "this relation" or "all relations with few values"; "" where there is no interval
    training_range: tuple[float, float] | None  # None where training has no number of this relation
    known: tuple[KnownNumber, ...]

    def text(self, value: float) -> str:
        """A number of this answer's unit in words."""
        return format_quantity(value, self.unit)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        least, most = self.training_range or (None, None)
        return {
            "value": self.value,
            "text": self.text(self.value),
            "unit": self.unit,
            "low": low,
            "high": high,
            "low_text": None if low is None else self.text(low),
            "high_text": None if high is None else self.text(high),
            "level": self.level,
            "interval_from": self.interval_from,
            "training_low": least,
            "training_high": most,
            "known": [one.to_dict() for one in self.known],
        }


Answer: TypeAlias = RankedAnswer | NumberAnswer


@dataclass(frozen=True)
class Answers:
    """The answers to one question, best first."""

    question: str  # on one line, with ? for the blank
    hole: str  # where the blank is: tail, value of qualifier 1, …
    kind: str  # entity, relation or number
    answers: tuple[Answer, ...]
    candidates: int  # how many were ranked; 0 for a number
    calibrated: bool  # whether probabilities and intervals were fitted on held-out questions
    notes: tuple[str, ...] = field(default=())  # what a reader of the answers should know

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "question": self.question,
            "hole": self.hole,
            "kind": self.kind,
            "candidates": self.candidates,
            "calibrated": self.calibrated,
            "notes": list(self.notes),
            "answers": [answer.to_dict() for answer in self.answers],
        }

    def to_pandas(self) -> Any:
        """A pandas data frame, a row an answer."""
        try:
            import pandas
        except ImportError:
            raise _missing("pandas") from None
        return pandas.DataFrame([answer.to_dict() for answer in self.answers])

    def to_polars(self) -> Any:
        """A polars data frame, a row an answer."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        rows = [answer.to_dict() for answer in self.answers]
        of_known = None if self.kind == "number" else {"known": polars.List(polars.String)}
        return polars.DataFrame(rows, schema_overrides=of_known, infer_schema_length=None)

    def __str__(self) -> str:
        lines = [self.question]
        for answer in self.answers:
            if isinstance(answer, RankedAnswer):
                known = f"  known in {', '.join(answer.known)}" if answer.known else ""
                named = answer.name if answer.name == answer.id else f"{answer.name} ({answer.id})"
                lines.append(f"{answer.rank:>4}  {answer.probability:.3f}  {named}{known}")
            else:
                lines.append(f"  {answer.text(answer.value)}{_interval_text(answer)}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _interval_text(answer: NumberAnswer) -> str:
    if answer.interval is None:
        return ""
    return f"  ({answer.level:.0%} interval: {answer.text(answer.interval[0])} to {answer.text(answer.interval[1])})"


def _missing(package: str) -> UsageError:
    return UsageError(f"{package} is not installed.", advice=f"pip install {package}, or use .to_dict().")
