"""What a build may be told, and which entities its graph is about: given ids, given types, or everything."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hynt.creation.reading import LONGEST_LINE
from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.declarations import lines_of
from hynt.formats.format import UnitRule
from hynt.formats.values import check_name
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
                f"{self.max_bad_lines} is not a share of lines.",
                where="--max-bad-lines",
                advice="Give 0 to 1, such as 0.001.",
            )


def memory_bytes(text: str) -> int:
    """Bytes from 512MB, 1GB, 1.5GiB: decimal and binary units are the same here, 1 GB being 2^30."""
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    scale = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}.get(number[-1:])
    digits = number[:-1].strip() if scale else ""
    if scale is None or not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        raise UsageError(
            f"{text!r} is not a size of memory.", where="--memory", advice="Give for instance 512MB or 1GB."
        )
    return int(float(digits) * scale)


@dataclass(frozen=True)
class Selection:
    """`entities` is None where the dump decides: all of it, or what has one of `types`."""

    entities: frozenset[str] | None = None
    types: frozenset[str] = frozenset()
    asked: int = 0  # how many ids the file of entities held
    unmapped: int = 0  # how many of them, or of what they were mapped to, a mapping file did not know

    @property
    def is_closed(self) -> bool:
        """Whether the set is known before the dump is read."""
        return self.entities is not None

    def digest(self) -> str:
        """A hash of the whole selection: parts made for another one are not used again."""
        hasher = hashlib.sha256(b"closed" if self.is_closed else b"open")
        for name in [*sorted(self.entities or ()), "", *sorted(self.types)]:
            hasher.update(name.encode() + b"\n")
        return hasher.hexdigest()


def select(
    entities: Path | None,
    types: Iterable[str],
    everything: bool,
    mappings: Iterable[Path],
    redirects: Mapping[str, str],
) -> Selection:
    """A selection as the command line says it."""
    types = frozenset(types)
    given = {"--entities": entities is not None, "--instance-of": bool(types), "--all": everything}
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) != 1:
        said = f"not {' and '.join(chosen)} together" if chosen else "and none was said"
        raise UsageError(
            f"a graph needs one choice of entities, {said}.",
            advice="Give one of --entities FILE, --instance-of TYPE or --all.",
        )
    mappings = list(mappings)
    if entities is None:
        if mappings:
            raise UsageError("--mapping maps the ids of --entities FILE.", where="--mapping", advice="Give --entities.")
        return Selection(types=types)
    names = set(read_ids(entities))
    asked, unmapped = len(names), 0
    for path in mappings:
        mapping: dict[str, set[str]] = {}
        for source, target in read_pairs(path):
            mapping.setdefault(source, set()).add(target)
        unmapped += sum(name not in mapping for name in names)
        names = {target for name in names for target in mapping.get(name, ())}
    if not names:
        what = "no id is left after the mapping." if asked else "the file has no ids."
        raise DataError(
            what, where=str(mappings[-1] if asked else entities), advice="Check that its ids are the dump's."
        )
    return Selection(frozenset(redirects.get(name, name) for name in names), asked=asked, unmapped=unmapped)


def read_ids(path: Path) -> Iterator[str]:
    """The first cell of each line; blank lines and lines that start with # are no ids."""
    for line, where in lines_of(path):
        name = line.split("\t")[0].strip()
        if name and not name.startswith("#"):
            yield _checked(name, where)


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Two ids per line, with a tab between; such a file maps one id to another."""
    for line, where in lines_of(path):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            raise DataError(f"the line has {len(cells)} cells, not two.", where=where, advice="Write: id TAB id.")
        yield _checked(cells[0], where), _checked(cells[1], where)


def read_redirects(path: Path | None) -> dict[str, str]:
    """Old id → the id it leads to, chains followed to their end."""
    if path is None:
        return {}
    return followed(dict(read_pairs(path)), str(path))


def followed(steps: dict[str, str], where: str) -> dict[str, str]:
    """Each redirect with its last target; a circle is an error."""
    ends: dict[str, str] = {}
    for name in steps:
        target, seen = steps[name], {name}
        while target in steps:
            if target in seen:
                raise DataError(f"the redirect of {name} goes in a circle.", where=where, advice="Correct the file.")
            seen.add(target)
            target = steps[target]
        ends[name] = target
    return ends


def _checked(name: str, where: str) -> str:
    try:
        return check_name(name, "id")
    except RecordProblem as problem:
        raise DataError.of(problem, where) from None
