"""What a build may be told."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hynt.creation.reading import LONGEST_LINE
from hynt.errors import UsageError
from hynt.formats.format import UnitRule
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.encoding import MixedRelations


@dataclass(frozen=True)
class EngineOptions:
    """Where and with how much the work is done."""

    name: Literal["duckdb", "spark"] = "duckdb"
    master: str = "local[*]"  # Spark's
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory_bytes: int = 1 << 30  # for the queries; DuckDB spills to disk beyond it

    def __post_init__(self) -> None:
        if self.name not in ("duckdb", "spark"):
            raise UsageError(f"unknown engine {self.name!r}.", where="--engine", advice="Give duckdb or spark.")
        if self.workers < 1:
            raise UsageError(f"{self.workers} workers do no work.", where="--workers", advice="Give 1 or more.")
        if self.memory_bytes < 64 << 20:
            raise UsageError("the queries need at least 64 MB.", where="--memory", advice="Give for instance 1GB.")


@dataclass(frozen=True)
class CreationOptions:
    """How a dump becomes a graph."""

    entities: Path | None = None
    types: tuple[str, ...] = ()
    subclasses: bool = False
    everything: bool = False
    mappings: tuple[Path, ...] = ()
    redirects: Path | None = None
    language: str = "en"
    text: Literal["drop", "keep"] = "drop"
    preferred_only: bool = False
    mediators: Path | None = None  # Freebase: the types of mediators, where the dump does not say
    primaries: Path | None = None  # Freebase: link TAB property that holds the primary value
    units: UnitRule = "si"
    unknown_units: Literal["drop", "keep"] = "drop"
    other_units: Literal["drop", "keep", "split"] = "drop"
    keep_tails: bool = False  # values outside the chosen entities stay; without, the set is closed, as in the paper
    min_tail_uses: int = 1  # how often a value outside must occur to be kept
    max_qualifiers: int | None = None
    long_facts: Literal["shorten", "drop"] = "shorten"
    mixed_relations: MixedRelations = "split"
    max_bad_lines: float = 0.001  # share of the lines read; ten are always borne
    longest_line: int = LONGEST_LINE
    part_bytes: int = 0  # of wanted lines; 0 to choose by the size of the dump
    assembly: AssemblyPolicy = field(default_factory=lambda: AssemblyPolicy(remove_leakage=True))
    engine: EngineOptions = field(default_factory=EngineOptions)
    work: Path | None = None
    keep_work: bool = False
    rejects: Path | None = None
    name: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        if self.rejects is not None and not self.rejects.parent.is_dir():
            raise UsageError(f"there is no folder {self.rejects.parent}.", where="--rejects", advice="Make it first.")
        if self.subclasses and not self.types:
            raise UsageError(
                "--subclasses widens --instance-of.", where="--subclasses", advice="Give --instance-of TYPE."
            )
        if self.max_qualifiers is not None and self.max_qualifiers < 0:
            raise UsageError(
                "a fact cannot have fewer than no qualifiers.", where="--max-qualifiers", advice="Give 0 or more."
            )
        if self.min_tail_uses < 1:
            raise UsageError(
                "a value that is there occurs at least once.", where="--min-tail-uses", advice="Give 1 or more."
            )
        if not 0 <= self.max_bad_lines <= 1:
            raise UsageError(
                f"{self.max_bad_lines} is no share of lines.",
                where="--max-bad-lines",
                advice="Give 0 to 1, such as 0.001.",
            )


def memory_bytes(text: str) -> int:
    """Bytes from 512MB, 1GB, 1.5GiB: decimal and binary units are the same here, 1 GB being 2^30."""
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    scale = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}.get(number[-1:])
    digits = number[:-1].strip() if scale else ""
    if scale is None or not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        raise UsageError(f"{text!r} is no size of memory.", where="--memory", advice="Give for instance 512MB or 1GB.")
    return int(float(digits) * scale)
