"""Writing a graph as a folder of text files: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.files import new_folder
from hynt.formats.names import check_writable
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph


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
    """Write lines as UTF-8 with \\n ends."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(facts: Iterable[Fact], written: Callable[[Fact], str], first: str, where: str) -> Iterator[str]:
    if first:
        yield first
    for fact in facts:
        check_writable(fact, where=where)
        yield written(fact)
