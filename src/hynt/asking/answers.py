"""What a run answers: a table of candidates, or a number with its interval; as text, plain values or a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from hynt.graph.sentences import format_quantity
from hynt.notebook import box, quiet, table
from hynt.tables import Table, arrow_table, pandas_or_refusal

if TYPE_CHECKING:
    import pyarrow as pa


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
class Answers(Table):
    """The answers to one question, best first: a sequence, and a table with a row per answer.

    >>> answers = run.predict("Japan", "capital", "?", top=3)
    >>> [answer.rank for answer in answers]
    [1, 2, 3]
    >>> answers.kind, answers.question
    ('entity', 'Japan · capital · ?')
    >>> answers.to_arrow().column_names
    ['rank', 'id', 'name', 'probability', 'score', 'known']
    """

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

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Answers:
        """What `to_dict` wrote.

        >>> answers = run.predict("Japan", "capital", "?")
        >>> hynt.Answers.from_dict(answers.to_dict()) == answers
        True
        """
        answers = tuple(
            _number(one) if found["kind"] == "number" else RankedAnswer(**{**one, "known": tuple(one["known"])})
            for one in found["answers"]
        )
        rest = (found["candidates"], found["calibrated"], tuple(found["notes"]))
        return cls(found["question"], found["hole"], found["kind"], answers, *rest)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON.

        >>> run.predict("Japan", "capital", "?").to_dict()["kind"]
        'entity'
        """
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
        """A pandas data frame, a row per answer.

        >>> run.predict("Japan", "capital", "?", top=3).to_pandas()["rank"].tolist()
        [1, 2, 3]
        """
        return pandas_or_refusal().DataFrame([answer.to_dict() for answer in self.answers])

    def to_arrow(self) -> pa.Table:
        """An Arrow table, a row per answer.

        >>> run.predict("Japan", "capital", "?", top=3).to_arrow().num_rows
        3
        """
        return arrow_table((answer.to_dict() for answer in self.answers), _schema(self.kind))

    def _repr_html_(self) -> str:
        if self.kind == "number":
            parts = [table(["answer", "interval"], [[one.text(one.value), _between(one)] for one in self._numbers()])]
        else:
            rows = [
                [str(one.rank), one.name, one.id, f"{one.probability:.4f}", ", ".join(one.known)]
                for one in self.answers
                if isinstance(one, RankedAnswer)
            ]
            parts = [table(["rank", self.kind, "id", "probability", "known in"], rows, numbers=(0, 3))]
            parts.append(quiet(f"of {self.candidates:,} candidate{'' if self.candidates == 1 else 's'}"))
        return box(self.question, *parts, quiet(*self.notes))

    def _numbers(self) -> list[NumberAnswer]:
        return [one for one in self.answers if isinstance(one, NumberAnswer)]

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


def _number(found: Mapping[str, Any]) -> NumberAnswer:
    interval = None if found["low"] is None else (found["low"], found["high"])
    trained = None if found["training_low"] is None else (found["training_low"], found["training_high"])
    known = tuple(KnownNumber(one["value"], tuple(one["splits"])) for one in found["known"])
    return NumberAnswer(found["value"], found["unit"], interval, found["level"], found["interval_from"], trained, known)


def _interval_text(answer: NumberAnswer) -> str:
    return "" if answer.interval is None else f"  ({answer.level:.0%} interval: {_between(answer)})"


def _between(answer: NumberAnswer) -> str:
    return "" if answer.interval is None else " to ".join(answer.text(end) for end in answer.interval)


def _schema(kind: str) -> pa.Schema:
    import pyarrow as pa

    splits = pa.list_(pa.string())
    if kind != "number":
        texts = [("id", pa.string()), ("name", pa.string())]
        return pa.schema(
            [("rank", pa.int64()), *texts, ("probability", pa.float64()), ("score", pa.float64()), ("known", splits)]
        )
    numbers = {"value", "low", "high", "level", "training_low", "training_high"}
    names = ("value", "text", "unit", "low", "high", "low_text", "high_text", "level", "interval_from")
    columns = [(name, pa.float64() if name in numbers else pa.string()) for name in names]
    ends = [("training_low", pa.float64()), ("training_high", pa.float64())]
    known = pa.list_(pa.struct([("value", pa.float64()), ("splits", splits)]))
    return pa.schema([*columns, *ends, ("known", known)])
