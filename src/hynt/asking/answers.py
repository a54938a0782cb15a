"""What a run answers: a table of candidates, a number with its interval, or entities that are alike; as text, plain
values or a data frame. No torch here: a client has them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from hynt.graph.sentences import format_estimate
from hynt.graph.units.conversion import display_of, with_display
from hynt.names import plural
from hynt.results import PlainValues, Table, arrow_table, box, notebook_table, pandas_or_refusal, quiet

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS = 4


def format_probability(probability: float) -> str:
    """Four digits; what is not quite sure or impossible is never shown as 1 or 0."""
    least = 10.0**-_DIGITS
    if 0 < probability < least / 2:
        return f"<{least:.{_DIGITS}f}"
    if 1 - least / 2 < probability < 1:
        return f">{1 - least:.{_DIGITS}f}"
    return f"{probability:.{_DIGITS}f}"


NEW_FROM = 0.5
"""The probability from which on an answer that the graph does not hold is called new; below it is a guess."""
HARDLY = 0.001
"""Guesses below this are not named in a short view."""


@dataclass(frozen=True)
class StoredAnswer:
    """What the graph holds, and how the model sees it."""

    text: str  # the entity's or relation's name, or the number with its unit
    splits: tuple[str, ...]
    id: str | None  # None for a number
    value: float | None  # None for an entity or a relation
    qualifiers: str  # what the stored fact says beyond the question: "point in time 2024; sex female"
    rank: int | None  # among the candidates of the question; None for a number, and for what is no candidate
    probability: float | None  # likewise
    predicted: float | None  # the model's own number, where a number is asked for
    judged_without: bool  # whether the model, which reads facts, was not shown those that hold the answer
    added: str = ""  # where the fact came from, if it came after training; told only then

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self) | {"splits": list(self.splits)}
        return found if self.added else {name: value for name, value in found.items() if name != "added"}

    @property
    def place(self) -> str:
        """Where it stands; of a fact that came after training, where that came from."""
        return f"added ({self.added})" if self.added else " and ".join(self.splits)

    @property
    def named(self) -> str:
        """The answer with what the fact says beyond the question."""
        return f"{self.text} ({self.qualifiers})" if self.qualifiers else self.text

    @property
    def judged(self) -> str:
        """How the model sees it, in words; "" where nothing is to be said."""
        if self.rank is None or self.probability is None:
            return ""
        without = ", judged without it" if self.judged_without else ""
        return f"rank {self.rank:,}, probability {format_probability(self.probability)}{without}"


@dataclass(frozen=True)
class MissingQualifier:
    """A qualifier that training facts of the question's relation nearly always have, and the question does not."""

    relation: str  # its id
    name: str
    share: float  # of the relation's training facts
    facts: int  # how many these are
    offered: str  # what the stored answers say there, else what is commonest; "" where each fact has its own number

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RankedAnswer:
    """An entity or a relation."""

    rank: int  # among the candidates, from 1
    id: str
    name: str
    probability: float  # among the candidates
    score: float  # the model's own, as the evaluator sees it
    known: tuple[str, ...]  # the splits that hold this very fact
    new: bool  # whether the graph holds no such answer and its probability is at least `NEW_FROM`

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"known": list(self.known)}


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
    interval_from: str  # "this relation" where it has enough held-out numbers, else "all relations"; "" without one
    training_range: tuple[float, float] | None  # None where training has no number of this relation
    known: tuple[KnownNumber, ...]

    def text(self, value: float) -> str:
        """A number of this answer's unit in words, with as many digits as can be sure."""
        return format_estimate(value, self.unit, self.interval, self.training_range)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        least, most = self.training_range or (None, None)
        return {
            "value": self.value,
            "text": self.text(self.value),
            "unit": self.unit,
            "display_unit": display_of(self.unit),
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
    """The answers to one question, best first: a sequence, and a table with a row per answer. `stored` holds what the
    graph itself says.

    >>> answers = run.predict("Japan", "capital", "?", top=3)
    >>> [answer.rank for answer in answers]
    [1, 2, 3]
    >>> answers.kind, answers.question
    ('entity', 'Japan · capital · ?')
    >>> answers.to_arrow().column_names
    ['rank', 'id', 'name', 'probability', 'score', 'known', 'new']
    >>> answers.stored[0].text, answers.stored[0].splits
    ('Tokyo', ('valid',))
    """

    question: str  # on one line, with ? for the blank
    hole: str  # where the blank is: tail, value of qualifier 1, …
    kind: str  # entity, relation or number
    answers: tuple[Answer, ...]
    candidates: int  # how many were ranked; 0 for a number
    calibrated: bool  # whether probabilities and intervals were fitted on held-out questions
    notes: tuple[str, ...] = field(default=())  # what a reader of the answers should know
    stored: tuple[StoredAnswer, ...] = field(default=())  # what the graph holds: the closest facts, then the latest
    stored_total: int = 0  # how many different answers the graph holds
    missing: tuple[MissingQualifier, ...] = field(default=())  # what facts of the relation nearly always say

    def __repr__(self) -> str:
        first = self.answers[0] if self.answers else None
        if isinstance(first, NumberAnswer):
            return f"<answer to {self.question}: {first.text(first.value)}{_interval_text(first)}>"
        best = "none" if first is None else f"the first is {first.name} ({first.probability:.3f})"
        return f"<{plural(len(self.answers), 'answer')} to {self.question}: {best}>"

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
        stored = tuple(StoredAnswer(**{**one, "splits": tuple(one["splits"])}) for one in found.get("stored", ()))
        missing = tuple(MissingQualifier(**one) for one in found.get("missing", ()))
        told = (stored, found.get("stored_total", 0), missing)
        rest = (found["candidates"], found["calibrated"], tuple(found["notes"]), *told)
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
            "stored": [one.to_dict() for one in self.stored],
            "stored_total": self.stored_total,
            "new_from": NEW_FROM,
            "candidates": self.candidates,
            "calibrated": self.calibrated,
            "notes": list(self.notes),
            "missing": [one.to_dict() for one in self.missing],
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

    @property
    def guesses(self) -> tuple[RankedAnswer, ...]:
        """The answers that the graph does not hold and whose probability is below `new_from`: a short view leaves them
        out.

        >>> all(answer.probability < 0.5 for answer in run.predict("Japan", "capital", "?").guesses)
        True
        """
        stored = {one.id for one in self.stored}
        ranked = (one for one in self.answers if isinstance(one, RankedAnswer) and one.probability < NEW_FROM)
        return tuple(one for one in ranked if not one.known and one.id not in stored)

    @property
    def new(self) -> tuple[RankedAnswer, ...]:
        """The answers that the graph does not hold and whose probability is at least `new_from`."""
        return tuple(one for one in self.answers if isinstance(one, RankedAnswer) and one.new)

    def _repr_html_(self) -> str:
        parts = [quiet(*(f"{told}: {text}" for told, text in told_of_graph(self)))]
        if self.kind == "number":
            parts.append(
                notebook_table(
                    ["answer", *(f"{one.level:.0%} interval" for one in self._numbers() if one.interval is not None)],
                    [[one.text(one.value), *filter(None, [_between(one)])] for one in self._numbers()],
                )
            )
        else:
            ids = ("id",) if self.is_ambiguous else ()  # where names do not tell answers apart
            rows = [
                [str(one.rank), one.name, *(one.id for _ in ids), format_probability(one.probability), self.status(one)]
                for one in self.answers
                if isinstance(one, RankedAnswer)
            ]
            headings = ["rank", self.kind, *ids, "probability", "status"]
            parts.append(notebook_table(headings, rows, numbers=(0, 2 + len(ids))))
            parts.append(quiet(f"of {plural(self.candidates, 'candidate')}{in_view(self)}"))
        return box(self.question, *parts, quiet(*self.notes))

    def _numbers(self) -> list[NumberAnswer]:
        return [one for one in self.answers if isinstance(one, NumberAnswer)]

    def status(self, answer: RankedAnswer) -> str:
        """Whether an answer is stored, new or a guess, in words.

        >>> run.predict("Japan", "capital", "?").status(run.predict("Japan", "capital", "?")[0])
        'guess'
        """
        stored = next((one.splits for one in self.stored if one.id == answer.id), answer.known)
        return f"in {', '.join(stored)}" if stored else "new" if answer.new else "guess"

    @property
    def is_ambiguous(self) -> bool:
        """Whether two answers have the same name, so that only their ids tell them apart.

        >>> run.predict("Japan", "capital", "?").is_ambiguous
        False
        """
        names = [answer.name for answer in self.answers if isinstance(answer, RankedAnswer)]
        return len(set(names)) < len(names)

    def __str__(self) -> str:
        lines = [self.question, *(f"  {told}: {text}" for told, text in told_of_graph(self))]
        for answer in self.new:
            named = f"{answer.name} ({answer.id})" if self.is_ambiguous else answer.name
            lines.append(f"  new: {named}; rank {answer.rank:,}, probability {format_probability(answer.probability)}")
        if self.kind != "number" and not self.new:
            lines.append(f"  new: none with probability {NEW_FROM:g} or more")
        lines += [f"  {answer.text(answer.value)}{_interval_text(answer)}" for answer in self._numbers()]
        folded = told_of_guesses(self)
        return "\n".join([*lines, *([f"  {folded}"] if folded else []), *(f"note: {note}" for note in self.notes)])


def told_of_graph(answers: Answers) -> list[tuple[str, str]]:
    """What the graph holds, in pairs of words: where it stands, and the answer with the model's view of it."""
    if not answers.stored:
        return [("in the graph", "no answer to this question")]
    told = [
        (f"in the graph, {one.place}", "; ".join(part for part in (one.named, one.judged) if part))
        for one in answers.stored
    ]
    more = answers.stored_total - len(answers.stored)
    return told + ([("in the graph", f"and {more:,} more")] if more else [])


def told_of_guesses(answers: Answers, shown: int = 0) -> str:
    """What a short view leaves away, in words, where it shows so many of the guesses; "" where that is nothing."""
    left = answers.guesses[shown:]
    if not left:
        return ""
    guesses = plural(len(left), "guess", "guesses")
    if left[0].probability < HARDLY:
        return f"{guesses} below probability {HARDLY:g}{in_view(answers)}"
    first = f"the first of them {left[0].name} ({left[0].probability:.3f})"
    return f"{guesses} below probability {NEW_FROM:g}{in_view(answers)}: {first}"


def in_view(answers: Answers) -> str:
    """Why a list may say otherwise than the lines above it, which judge a stored answer without itself."""
    return ", with all facts in view" if any(one.judged_without for one in answers.stored) else ""


def _number(found: Mapping[str, Any]) -> NumberAnswer:
    interval = None if found["low"] is None else (found["low"], found["high"])
    trained = None if found["training_low"] is None else (found["training_low"], found["training_high"])
    known = tuple(KnownNumber(one["value"], tuple(one["splits"])) for one in found["known"])
    unit = with_display(found["unit"], found.get("display_unit", ""))
    return NumberAnswer(found["value"], unit, interval, found["level"], found["interval_from"], trained, known)


def _interval_text(answer: NumberAnswer) -> str:
    return "" if answer.interval is None else f"  ({answer.level:.0%} interval: {_between(answer)})"


def _between(answer: NumberAnswer) -> str:
    return "" if answer.interval is None else " to ".join(answer.text(end) for end in answer.interval)


def _schema(kind: str) -> pa.Schema:
    import pyarrow as pa

    splits = pa.list_(pa.string())
    if kind != "number":
        texts = [("id", pa.string()), ("name", pa.string())]
        judged = [("probability", pa.float64()), ("score", pa.float64()), ("known", splits), ("new", pa.bool_())]
        return pa.schema([("rank", pa.int64()), *texts, *judged])
    numbers = {"value", "low", "high", "level", "training_low", "training_high"}
    names = ("value", "text", "unit", "display_unit", "low", "high", "low_text", "high_text", "level", "interval_from")
    columns = [(name, pa.float64() if name in numbers else pa.string()) for name in names]
    ends = [("training_low", pa.float64()), ("training_high", pa.float64())]
    known = pa.list_(pa.struct([("value", pa.float64()), ("splits", splits)]))
    return pa.schema([*columns, *ends, ("known", known)])


@dataclass(frozen=True, eq=False)
class SimilarEntity(PlainValues):
    """An entity and how alike it is: the cosine of the angle between the two vectors."""

    rank: int
    id: str
    name: str
    type: str
    similarity: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
