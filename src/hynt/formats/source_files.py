"""Which files a source consists of, and which split each holds."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import NamedTuple

from hynt.errors import DataError, UsageError
from hynt.formats.format import Format
from hynt.formats.opening import special, stat_of, unreadable

COMPRESSION_SUFFIXES = (".gz", ".bz2", ".zst")
SIDECAR_STEMS = frozenset({"entities", "relations", "entity2id", "relation2id"})
"""Files that say something about names and are no facts: see `hynt.formats.declarations`."""

_SPLIT_WORDS = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
_ORDER = ("train", "valid", "test")
# train, train-3, train-00003-of-00010; n-ary_train (NaLP), freebase_mtr100_mte100-train (FB15k), train_triples
_SPLIT_STEM = re.compile(
    r"(.+[-_.])?(train|validation|valid|val|dev|test)(?:[-_.](?:triples|facts|statements|quads|data|set))?"
    r"([-_.]\d+(?:-of-\d+)?)?",
    re.IGNORECASE,
)


class SourceFile(NamedTuple):
    """A file of facts, and the split it holds where its name says so."""

    path: Path
    split: str | None


def source_files(source: Path, format: Format) -> list[SourceFile]:  # noqa: A002 - the word users know it by
    """The files of a source: itself, or in a folder its split files, or else every file with the format's suffix."""
    mode = stat_of(source).st_mode
    if stat.S_ISREG(mode):
        return [SourceFile(source, None)]
    if not stat.S_ISDIR(mode):
        raise special(source)
    candidates = _candidates(source, format)
    named = _named_splits(candidates)
    if named:
        parts = [part for part, _ in named]
        _refuse_rivals(source, named)
        parts.sort(key=lambda part: (_ORDER.index(part.split or ""), natural_order(part.path.name)))
    else:
        parts = [SourceFile(path, None) for path, stem in candidates if stem.lower() not in SIDECAR_STEMS]
        parts.sort(key=lambda part: natural_order(part.path.name))
    if not parts:
        wanted = " or ".join(f"*{suffix}" for suffix in format.suffixes)
        raise DataError(
            f"no files of the format {format.name} in this folder: looked for train, valid and test, or any {wanted}, "
            f"plain or with {', '.join(COMPRESSION_SUFFIXES)}.",
            where=str(source),
            advice=f"Give the folder that holds the files, or one file.{_folders_with_splits(source)}",
        )
    for part in parts:
        if not stat.S_ISREG(stat_of(part.path).st_mode):
            raise special(part.path)
    return parts


def _named_splits(candidates: list[tuple[Path, str]]) -> list[tuple[SourceFile, str | None]]:
    """The files whose names say a split, each with its shard. Plain names come before longer ones, and a whole file
    before those that HypE adds for each number of entities (test.txt beside test_2.txt)."""
    found = [(path, match) for path, stem in candidates if (match := _SPLIT_STEM.fullmatch(stem)) is not None]
    if any(not match[1] for _, match in found):
        found = [(path, match) for path, match in found if not match[1]]
    named = [(SourceFile(path, _SPLIT_WORDS[match[2].lower()]), match[3]) for path, match in found]
    whole = {part.split for part, shard in named if shard is None}
    return [
        (part, shard)
        for part, shard in named
        if not (shard and shard.startswith("_") and part.split != "train" and part.split in whole)
    ]


def split_of(path: Path) -> str | None:
    """The split that a file's name says, whatever its format."""
    stem = bare_name(path.name).split(".")[0].removesuffix("2id")
    found = _SPLIT_STEM.fullmatch(stem)
    return None if found is None else _SPLIT_WORDS[found[2].lower()]


def _folders_with_splits(source: Path) -> str:
    """Where the splits may be instead."""
    below = sorted(path for path in source.iterdir() if path.is_dir() and not path.name.startswith("."))
    split = [path.name for path in below if any(map(split_of, path.iterdir()))]
    return f" There are splits in: {', '.join(split[:10])}." if split else ""


def with_train_file(source: Path, parts: list[SourceFile], name: str) -> list[SourceFile]:
    """The parts of a folder, with another file for its training split."""
    others, path = [part for part in parts if part.split not in (None, "train")], source / name
    if not source.is_dir() or not others:
        raise UsageError(
            "only a folder with valid or test files can have another training file.",
            where="--train-file",
            advice="Give a single file as the source instead.",
        )
    if not path.is_file():
        raise UsageError(
            f"there is no file {name!r} in {source}.", where="--train-file", advice="Name one that is there."
        )
    return [SourceFile(path, "train"), *others]


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
        if suffix is None and name.lower() in _SPLIT_WORDS:
            suffix = ""
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


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A sort key by which part-2 comes before part-10."""
    return [(0, int(piece[:18]), piece) if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", name)]
