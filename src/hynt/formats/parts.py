"""Which files a source consists of, and which split each holds."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import NamedTuple

from hynt.errors import DataError
from hynt.formats.byte_streams import unreadable
from hynt.formats.format import Format

COMPRESSION_SUFFIXES = (".gz", ".bz2", ".zst")
SIDECAR_STEMS = frozenset({"entities", "relations", "entity2id", "relation2id"})
"""Files that say something about names and are no facts: see `hynt.formats.declarations`."""

_SPLIT_WORDS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}
_ORDER = ("train", "valid", "test")
# train, n-ary_train (as NaLP's authors name it), train-3, train-00003-of-00010
_SPLIT_STEM = re.compile(r"(?:n-ary_)?(train|validation|valid|dev|test)([-_.]\d+(?:-of-\d+)?)?", re.IGNORECASE)


class SourceFile(NamedTuple):
    """A file of facts, and the split it holds where its name says so."""

    path: Path
    split: str | None


def find_parts(source: Path, format: Format) -> list[SourceFile]:  # noqa: A002 - the word users know it by
    """The files of a source: itself, or in a folder its split files, or else every file with the format's suffix."""
    mode = _mode(source)
    if stat.S_ISREG(mode):
        return [SourceFile(source, None)]
    if not stat.S_ISDIR(mode):
        raise _special(source)
    candidates = _candidates(source, format)
    named = [(path, found) for path, stem in candidates if (found := _SPLIT_STEM.fullmatch(stem)) is not None]
    if named:
        parts = [SourceFile(path, _SPLIT_WORDS[found[1].lower()]) for path, found in named]
        _refuse_rivals(source, [(part, found[2]) for part, (_, found) in zip(parts, named, strict=True)])
        parts.sort(key=lambda part: (_ORDER.index(part.split or ""), _natural(part.path.name)))
    else:
        parts = [SourceFile(path, None) for path, stem in candidates if stem.lower() not in SIDECAR_STEMS]
        parts.sort(key=lambda part: _natural(part.path.name))
    if not parts:
        wanted = " or ".join(f"*{suffix}" for suffix in format.suffixes)
        raise DataError(
            f"no files of the format {format.name} in this folder: looked for train, valid and test, or any {wanted}, "
            f"plain or with {', '.join(COMPRESSION_SUFFIXES)}.",
            where=str(source),
            advice="Give the folder that holds the files, or one file.",
        )
    for part in parts:
        if not stat.S_ISREG(_mode(part.path)):
            raise _special(part.path)
    return parts


def bare_name(name: str) -> str:
    """A file's name without its compression suffix."""
    for suffix in COMPRESSION_SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def title_of(source: Path, format: Format) -> str:  # noqa: A002
    """What a graph is called unless someone says: `facts` for facts.jsonl.gz, and a folder's own name."""
    name = source.name or source.resolve().name  # "." has none
    if source.is_dir():
        return name
    name = bare_name(name)
    suffix = next((suffix for suffix in format.suffixes if name.endswith(suffix)), "")
    return name.removesuffix(suffix) or name


def _candidates(source: Path, format: Format) -> list[tuple[Path, str]]:  # noqa: A002
    """Files whose name has one of the format's suffixes, with the stem before it."""
    try:
        paths = sorted(source.iterdir())
    except OSError as problem:
        raise unreadable(source, problem) from None
    candidates = []
    for path in paths:
        name = bare_name(path.name)
        suffix = next((suffix for suffix in format.suffixes if name.endswith(suffix)), None)
        if suffix is not None and not name.startswith("."):
            candidates.append((path, name.removesuffix(suffix)))
    return candidates


def _refuse_rivals(source: Path, parts: list[tuple[SourceFile, str | None]]) -> None:
    """train.txt beside train.txt.gz: reading both would double the facts, reading one would be a guess."""
    seen: dict[tuple[str | None, str | None], Path] = {}
    for part, shard in sorted(parts, key=lambda named: named[1] is not None):
        rival = seen.get((part.split, shard)) or (seen.get((part.split, None)) if shard else None)
        if rival is not None:
            raise DataError(
                f"both {rival.name} and {part.path.name} hold the {part.split} split.",
                where=str(source),
                advice="Keep one of them in the folder.",
            )
        seen[(part.split, shard)] = part.path


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key by which part-2 comes before part-10."""
    return [(0, int(piece[:18]), piece) if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", name)]


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as problem:
        raise unreadable(path, problem) from None


def _special(path: Path) -> DataError:
    return DataError("is not a regular file.", where=str(path), advice="Give a file or a folder of files.")
