"""Writing a graph as a folder of text files: all of it, or nothing.

The folder is built beside its final place and renamed at the end, so that a failure leaves nothing half-written behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import DataError
from hynt.formats.byte_streams import unreadable
from hynt.formats.names import check_writable
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `path` when the block ends well and vanishes when it does not."""
    if path.exists() or path.is_symlink():
        raise DataError("already exists.", where=str(path), advice="Choose a new name, or remove it first.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    except OSError as problem:
        raise _unwritable(path, problem) from None
    try:
        partial.chmod(0o755)
        yield partial
        partial.rename(path)
    except OSError as problem:
        raise _unwritable(path, problem) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_folder(
    graph: KnowledgeGraph,
    path: Path,
    suffix: str,
    written: Callable[[Fact], str],
    *,
    header: str = "",
    count_line: bool = False,
) -> list[Path]:
    """Write each split as one file of lines, and beside them what is known of entities and relations."""
    from hynt.formats.declarations import write_declarations

    names = []
    with new_folder(path) as folder:
        for split, table in graph.splits.items():
            first = f"{len(table)}" if count_line else header
            name = f"{split}{suffix}"
            write_lines(folder / name, _lines(graph.facts(split), written, first, str(path / name)))
            names.append(name)
        names += [made.name for made in write_declarations(graph, folder)]
    return [path / name for name in names]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8 with \\n ends, down to the disk."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _lines(facts: Iterable[Fact], written: Callable[[Fact], str], first: str, where: str) -> Iterator[str]:
    if first:
        yield first
    for fact in facts:
        check_writable(fact, where=where)
        yield written(fact)


def _unwritable(path: Path, problem: OSError) -> DataError:
    error = unreadable(path, problem)
    return DataError(error.what.replace("read", "written", 1), where=error.where, advice=error.advice)
