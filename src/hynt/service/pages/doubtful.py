"""Doubtful facts: what `hynt audit` wrote about the run's graph, page by page, most doubtful first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.errors import DataError, UsageError
from hynt.files import check_regular
from hynt.graph.columns import UNREADABLE, bounded_table
from hynt.graph.sentences import format_multiple

PAGE = 25
FEW = 5
WORST = 0.05
"""The share of the judged facts that is said to look wrong on the page of an entity."""
KINDS = ("entity", "number", "relation")
DEFAULT = Path("audit") / "suspicious.parquet"
"""Where an audit of a run is looked for unless the service was given one."""
JUDGED = b"judged"
"""In the metadata of a file that holds the most doubtful facts alone: how many were judged."""

ALWAYS = ("split", "row", "fact", "head", "relation", "tail", "component", "kind", "stored", "said")
"""What every judged fact has."""
COLUMNS = (
    "rank",
    "score",
    *ALWAYS,
    "stored_id",
    "probability",
    "residual",
    "said_id",
    "said_probability",
    "low",
    "high",
)
_WHOLE, _REAL = ("rank", "row"), ("score", "probability", "residual", "said_probability", "low", "high")
_AGAIN = "Make one: hynt audit RUN --out FILE.parquet."


@dataclass(frozen=True)
class DoubtfulPage:
    """Some of the facts that were judged."""

    rows: list[dict[str, Any]]
    total: int  # of the kind asked for
    kept: int  # of all kinds
    judged: int  # facts in all
    not_judged: int


def check_audit(path: Path) -> None:
    """Refuses what `hynt audit` did not write; looks at the names of its columns alone."""
    try:
        check_regular(path)
        missing = {*COLUMNS, "reason"} - set(pq.read_schema(path).names)
    except FileNotFoundError:
        raise UsageError("there is no such file.", where=str(path), advice="Make it with `hynt audit`.") from None
    except UNREADABLE:
        missing = {"rank"}
    if missing:
        raise UsageError("this is not the result of an audit.", where=str(path), advice=_AGAIN)


def _type(column: str) -> pa.DataType:
    return pa.int64() if column in _WHOLE else pa.float64() if column in _REAL else pa.string()


def why(row: Mapping[str, Any], part: str) -> str:
    """What makes a fact doubtful, in words; `part` is what people call the doubtful part of it."""
    stored, said = str(row["stored"]), str(row["said"])
    if row["kind"] == "number":
        between = f", between {row['low_text']} and {row['high_text']} in 9 of 10 cases" if row.get("low_text") else ""
        told = f"Without this fact the model expects {said} as {part}{between}; the graph says {stored}."
        if row["residual"] is None:
            return told
        return f"{told} That is {format_multiple(row['residual'])} times as far away as the interval reaches."
    chance = "hardly any chance" if row["probability"] < 0.001 else f"a chance of {100 * row['probability']:.1f}\u00a0%"
    own = f"Without this fact the model gives {stored} {chance} as the {part}"
    return f"{own}, and {said} {100 * row['said_probability']:.1f}\u00a0%."


class Doubtful:
    """An audit's file, read once and kept as columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            check_regular(path)
            schema = pq.read_schema(path)
            told = [name for name in ("low_text", "high_text") if name in schema.names]  # not of 0.1.0
            names = [*COLUMNS, *told, "reason"]
            table = bounded_table(path, names, str(path)).select(names)
            table = table.cast(pa.schema([(name, _type(name)) for name in names]))
            self._judged = table.filter(pa.compute.is_valid(table["rank"]))
            self._total = int((schema.metadata or {}).get(JUDGED, len(self._judged)))
            self._check()
        except (OSError, ValueError, KeyError, pa.ArrowException) as problem:
            raise DataError(
                f"this is not the result of an audit: {str(problem)[:120].rstrip('.')}.", where=str(path), advice=_AGAIN
            ) from None
        self._not_judged = len(table) - len(self._judged)

    def _check(self) -> None:
        """Refuses judged facts of which something is missing that the page says."""
        is_number = pa.compute.equal(self._judged["kind"], "number")
        by_chance = self._judged.filter(pa.compute.invert(is_number))
        lacking = [name for name in ALWAYS if self._judged[name].null_count]
        lacking += [name for name in ("probability", "said_probability") if by_chance[name].null_count]
        if lacking:
            raise ValueError(f"a judged fact lacks its {lacking[0]!r}")
        odd = {*self._judged["kind"].unique().to_pylist()} - {*KINDS}
        if odd:
            raise ValueError(f"{odd.pop()!r} is no kind of component")
        if self._total < len(self._judged):
            raise ValueError("it holds more facts than were judged")

    def page(self, kind: str | None, offset: int) -> DoubtfulPage:
        """One page, of all kinds or of one."""
        chosen = self._judged if kind is None else self._judged.filter(pa.compute.equal(self._judged["kind"], kind))
        rows = chosen.slice(offset, PAGE).to_pylist()
        return DoubtfulPage(rows, len(chosen), len(self._judged), self._total, self._not_judged)

    def about(self, entity: str) -> list[dict[str, Any]]:
        """The most doubtful facts with this head or tail, of those that are among the most doubtful of all."""
        worst = self._judged.slice(0, most_doubtful(self._total))
        own = pa.compute.or_kleene(*(pa.compute.equal(worst[name], entity) for name in ("head", "tail")))
        rows: list[dict[str, Any]] = worst.filter(own).slice(0, FEW).to_pylist()
        return rows


def most_doubtful(judged: int) -> int:
    """How many of the judged facts are said to look wrong."""
    return math.ceil(WORST * judged)


def audit_path(run: Path, told: Path | None) -> Path | None:
    """The audit to show: the one the service was given, else the one in the run; None where there is none."""
    if told is not None:
        return told
    return run / DEFAULT if (run / DEFAULT).is_file() else None
