"""The shapes of tables: as the paper prints them, and as they are printed here with ours beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from benchmarks.result_file import Figure

NOT_RUN, NO_ANSWER = "not run", "–"

LINKS_OF_TRIPLETS = "link.triplet.mrr link.triplet.hits@10 link.triplet.hits@3 link.triplet.hits@1"
LINKS_OF_ALL = "link.all.mrr link.all.hits@10 link.all.hits@3 link.all.hits@1"
RELATIONS_OF_TRIPLETS = "relation.triplet.mrr relation.triplet.hits@10 relation.triplet.hits@3 relation.triplet.hits@1"
RELATIONS_OF_ALL = "relation.all.mrr relation.all.hits@10 relation.all.hits@3 relation.all.hits@1"
BENCHMARK_TRIPLETS = "link.triplet.mrr link.triplet.hits@10 link.triplet.hits@1"
BENCHMARK_ALL = "link.all.mrr link.all.hits@10 link.all.hits@1"
NUMBERS = "number.triplet.rmse number.all.rmse"
ABLATIONS = "link.triplet.mrr link.all.mrr relation.triplet.mrr relation.all.mrr number.triplet.rmse number.all.rmse"
NUMERIC_HANDLING = LINKS_OF_ALL + " number.all.rmse"
ATTRIBUTES = "P1352 P1081 P4841 P585"
GRAPHS = "HN-WK HN-YG HN-FB HN-FB-S"


@dataclass(frozen=True)
class Section:
    """A part of a table: one graph, its columns, and a line for each row."""

    graph: str
    columns_text: str
    text: str

    @property
    def columns(self) -> list[str]:
        return self.columns_text.split()

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """The figures of each row as they are printed, by its name."""
        found = {}
        for line in self.text.strip().splitlines():
            words = line.split()
            found[" ".join(words[: -len(self.columns)])] = words[-len(self.columns) :]
        return found

    def without_figures(self, graph: str) -> Section:
        """The same rows on a graph of which the paper prints none."""
        lines = [f"{name}{' -' * len(self.columns)}" for name in self.rows]
        return Section(graph, self.columns_text, "\n".join(lines))


@dataclass(frozen=True)
class Table:
    """A numbered table."""

    name: str
    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Grid:
    """A table of ready text, with a record of plain values for each of its figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: str = ""
    records: Sequence[dict[str, Any]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of ours stands in it."""
        return not any(record.get("ours") is not None for record in self.records)


def number(value: float, digits: int = 4) -> str:
    """`.2036`, `12.4`, `76,383`."""
    if digits == 0:
        return f"{value:,.0f}"
    text = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 else "") + (text.removeprefix("0") if abs(value) < 1 else text)


def difference(ours: float, theirs: float, digits: int = 4) -> str:
    gap = round(ours, digits) - round(theirs, digits)
    return f"{'+' if gap > 0 else '−' if gap < 0 else ''}{number(abs(gap), digits)}"


def figure(found: Figure | None, digits: int = 4, spread: bool = True) -> str:
    """`.2036 ± .0015`, or without its deviation."""
    if found is None:
        return NO_ANSWER
    deviation = None if found.deviation is None or not spread else number(found.deviation, digits)
    return number(found.mean, digits) + ("" if deviation is None else f" ± {deviation}")


def markdown(grids: Sequence[Grid], level: int = 3) -> str:
    """For a page; of a table that has nothing of ours only a sentence is told."""
    parts = []
    for grid in grids:
        if grid.is_empty:
            parts.append(f"{grid.title}: nothing was run.")
            continue
        lines = [f"| {' | '.join(row)} |" for row in (grid.columns, ["---"] * len(grid.columns), *grid.rows)]
        lines[1] = f"|{'---|' * len(grid.columns)}"
        parts += [f"{'#' * level} {grid.title}", *([grid.words] if grid.words else []), "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def plain(grids: Sequence[Grid]) -> str:
    """For a terminal."""
    parts = []
    for grid in grids:
        whole = [list(grid.columns), *map(list, grid.rows)]
        widths = [max(len(row[at]) for row in whole) for at in range(len(grid.columns))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in whole]
        parts.append("\n".join([grid.title, *([grid.words] if grid.words else []), "", *lines]).replace("\\*", "*"))
    return "\n\n".join(parts)
