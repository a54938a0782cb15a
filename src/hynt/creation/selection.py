"""Which entities a graph is about: given ids, given types, or everything; and what other ids they are known by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.opening import text_lines
from hynt.formats.values import check_name


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
    for line, where in _lines(path):
        name = line.split("\t")[0].strip()
        if name and not name.startswith("#"):
            yield _checked(name, where)


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Two ids a line, with a tab between; such a file maps one id to another."""
    for line, where in _lines(path):
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


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    report = ReadReport()
    for line in text_lines(path, ReadOptions(), report):
        yield line, report.where
    if report.rejected:
        problem = report.problems[0]
        raise DataError(problem.what, where=problem.where, advice=problem.advice)


def _checked(name: str, where: str) -> str:
    try:
        return check_name(name, "id")
    except RecordProblem as problem:
        raise DataError.of(problem, where) from None
