"""The files of a folder that were not read: what each seems to hold, and what to add to the command so that it is read.

Nothing is read unasked, and nothing is passed over without a word. A file is judged by its first lines alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Container
from pathlib import Path

from hynt.errors import DataError
from hynt.formats.byte_streams import open_bytes
from hynt.formats.format import FileBeside, ReadOptions, ReadReport
from hynt.formats.numbers import looks_like_number
from hynt.formats.parts import bare_name, split_of
from hynt.graph.storage import is_graph

_SAMPLE_BYTES = 2**16
_SAMPLE_LINES = 200
_MOST = 0.8  # of the lines of a sample
_OBSERVED = {"msg", "ind_train", "train_ind", "inference", "inference_graph", "observed"}
_SIDECARS = {f"{stem}.{suffix}" for stem in ("entities", "relations") for suffix in ("jsonl", "tsv")} | {
    "entity2id.txt",
    "relation2id.txt",
}


def files_beside(
    folder: Path, read: Collection[Path], entities: Container[str], relations: Container[str]
) -> list[FileBeside]:
    """Everything in a folder that is not among the files that were read; a single file has nothing beside it."""
    if not folder.is_dir() or is_graph(folder):
        return []
    taken = {path.resolve() for path in read}
    others = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    return [
        FileBeside(str(path), *_judged(path, folder, entities, relations))
        for path in others
        if path.resolve() not in taken and bare_name(path.name) not in _SIDECARS
    ]


def sample_lines(path: Path) -> list[str]:
    """The first lines of a text file, whole ones only; none where it is no text."""
    try:
        stream = open_bytes(path, ReadOptions(), ReadReport())
        try:
            data = stream.read(_SAMPLE_BYTES)
        finally:
            stream.close()
        lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "ignore").split("\n")
    except DataError:
        return []
    whole = lines[:-1] if len(data) == _SAMPLE_BYTES else lines
    return [line.removesuffix("\r") for line in whole[:_SAMPLE_LINES] if line.strip() and "\0" not in line]


def _judged(path: Path, folder: Path, entities: Container[str], relations: Container[str]) -> tuple[str, str]:
    """What a file seems to hold, and the words that read it."""
    if path.is_dir():
        splits = any(map(split_of, path.iterdir()))
        own = ", and --keep-splits for its own splits" if splits else ""
        return "a folder", f"{shlex.quote(str(path))} after {shlex.quote(str(folder))}{own}" if any(
            path.iterdir()
        ) else ""
    if bare_name(path.name).split(".")[0].lower() in _OBSERVED:
        option = f"--train-file {shlex.quote(path.name)}, for a second graph whose valid and test facts are asked"
        return "the facts that are observed where an inductive benchmark is asked", option
    rows = [line.split("\t") for line in sample_lines(path)]
    pairs = [row for row in rows if len(row) == 2]
    if rows and len(pairs) >= _MOST * len(rows):
        return _judged_pairs(path, pairs, entities, relations)
    if rows and all(len(row) == 1 and (row[0] in entities or row[0] in relations) for row in rows):
        return "names that the facts have too", ""
    triples = [row for row in rows if len(row) >= 3]
    if rows and len(triples) >= _MOST * len(rows):
        known = sum(row[0] in entities for row in triples)
        about = f"facts, {known} of the first {len(triples)} about entities of this graph"
        numbers = sum(looks_like_number(row[2].strip('"')) for row in triples)
        option = f"{shlex.quote(str(path))} after {shlex.quote(str(folder))}"
        if numbers >= _MOST * len(triples):
            return about.replace("facts", "facts with numbers", 1), f"{option}, and --numeric auto"
        return about, option
    return "no facts that can be told from its first lines", ""


def _judged_pairs(
    path: Path, pairs: list[list[str]], entities: Container[str], relations: Container[str]
) -> tuple[str, str]:
    known = {"entity": sum(row[0] in entities for row in pairs), "relation": sum(row[0] in relations for row in pairs)}
    what = max(known, key=lambda kind: known[kind])
    if sum(row[1].isdigit() for row in pairs) >= _MOST * len(pairs):
        return "ids by number, which hynt gives itself", ""
    if not known[what]:
        return "pairs whose first column names nothing in this graph", ""
    named = "entities" if what == "entity" else "relations"
    option = f"--{what}-labels {shlex.quote(str(path))}"
    return f"texts for {known[what]} of its first {len(pairs)} {named}", option
