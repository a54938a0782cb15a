"""Files of bare names without a header, as most published benchmarks have them. Every value is an entity, but times.

    triples     head relation tail (qualifier-relation value)*        by tabs, or else by spaces
    hype        relation e1 e2 … en: e1 is the head, e2 the tail, the others qualifiers named relation2, relation3 …
    temporal    head relation tail time, or head relation tail start end: the times become qualifiers
    openke      head tail relation, all as ids of the folder's entity2id.txt and relation2id.txt, below a count
    stare       as triples, by commas: the folders of the StarE paper, such as WD50K

Ids that the folder's id maps know are read as the names they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import DataError, RecordProblem
from hynt.formats.declarations import find_sidecar, read_id_map
from hynt.formats.format import ReadOptions, ReadReport, write_text_folder
from hynt.formats.lines import facts_from_lines, wrong_shape
from hynt.formats.values import looks_like_number, parse_number, read_date
from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.names import shortened

if TYPE_CHECKING:
    from hynt.graph.knowledge_graph import KnowledgeGraph

POINT, START, END, TIME = "point in time", "start time", "end time", "time"
"""The qualifiers that times become: a date, the ends of an interval, and a number that only counts."""


def read_triples(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a file of triples, or of the StarE paper's statements with tabs."""
    names = _Names(path)

    def fact(cells: list[str]) -> Fact:
        if len(cells) < 3 or not len(cells) & 1 or "" in cells:
            raise wrong_shape(cells, "a tab")
        return names.fact(cells)

    return _facts_of_cells(path, options, report, fact)


def read_hype(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a file with the relation first."""

    def fact(cells: list[str]) -> Fact:
        if len(cells) < 3 or "" in cells:
            what = f"{len(cells)} columns where a fact has at least 3: relation, head, tail."
            raise RecordProblem("missing-columns", what, "Separate them with a tab.")
        relation, head, tail, *others = cells
        pairs = (Qualifier(f"{relation}{place}", value) for place, value in enumerate(others, start=2))
        return Fact(head, relation, tail, tuple(pairs))

    return _facts_of_cells(path, options, report, fact)


def read_temporal(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a file with one or two columns of times, or with YAGO's `<occursSince>` and a date."""
    names = _Names(path)

    def fact(cells: list[str]) -> Fact:
        if not 3 <= len(cells) <= 5 or "" in cells:
            raise wrong_shape(cells, "a tab") if len(cells) < 3 or "" in cells else _too_many(cells)
        times = cells[3:]
        if len(times) == 2 and not is_time(times[0]):
            pairs = [(times[0], times[1])]
        elif len(times) == 2 and times[1] in ("0", "-1") and looks_like_number(times[0]):
            report.leave_out("unused-column", f"the fifth column is {times[1]}, and says nothing.")
            pairs = [(TIME, times[0])]
        elif len(times) == 2:
            pairs = [(START, times[0]), (END, times[1])]
        else:
            pairs = [(TIME if looks_like_number(time) else POINT, time) for time in times]
        qualifiers = []
        for relation, text in pairs:
            if is_open(text):
                report.leave_out("open-end", f"the {shortened(relation)} {shortened(text)} is not known.")
            else:
                qualifiers.append(Qualifier(relation, _time(text)))
        return names.fact(cells[:3])._replace(qualifiers=tuple(qualifiers))

    return _facts_of_cells(path, options, report, fact)


def read_openke(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of one of OpenKE's files of ids."""
    names = _Names(path)
    if not names.entities or not names.relations:
        raise DataError(
            "the ids mean nothing without entity2id.txt and relation2id.txt beside them.",
            where=str(path),
            advice="Put both into the same folder.",
        )

    def parse(line: str) -> Fact | None:
        cells = line.split()
        if not cells or (len(cells) == 1 and report.line == 1):
            return None
        if len(cells) != 3:
            raise RecordProblem(
                "missing-columns", f"{len(cells)} columns where there are 3 ids.", "Write: head tail relation."
            )
        head, tail, relation = cells
        for cell, known in ((head, names.entities), (tail, names.entities), (relation, names.relations)):
            if cell not in known:
                raise RecordProblem(
                    "unknown-id", f"the id map does not have {shortened(cell)}.", "Get the files again."
                )
        return names.fact([head, relation, tail])

    return facts_from_lines(path, options, report, parse)


def _facts_of_cells(
    path: Path, options: ReadOptions, report: ReadReport, fact: Callable[[list[str]], Fact]
) -> Iterator[Fact]:
    """The facts of a file by the cells of its lines; blank lines are none."""

    def parse(line: str) -> Fact | None:
        cells = split_cells(line)
        return None if cells is None else fact(cells)

    return facts_from_lines(path, options, report, parse)


def split_cells(line: str) -> list[str] | None:
    """The cells of a line: by tabs, or where it has none by spaces; None for a blank line."""
    if "\t" in line:
        return [cell.strip(" ") for cell in line.rstrip("\t").split("\t")]
    return line.split() or None


def is_time(text: str) -> bool:
    """Whether a cell holds a date, a number that counts, or a time that is not known."""
    try:
        return is_open(text) or looks_like_number(text) or isinstance(_time(text), Number)
    except RecordProblem:
        return False


def is_open(text: str) -> bool:
    """Whether a time is there and says nothing: `####-##-##`, `-`, `None`."""
    return not text.strip('"#-') or text.lower() in ("none", "null", "nan")


def _time(text: str) -> Value:
    return Number(parse_number(text), text) if looks_like_number(text) else read_date(text.strip('"'))


def _too_many(cells: list[str]) -> RecordProblem:
    what = f"{len(cells)} columns where a fact with a time has 4, or 5 with a start and an end."
    return RecordProblem("too-many-columns", what, "Use the format triples for other qualifiers.")


class _Names:
    """What the ids in a file stand for, by the id maps beside it; any other cell stands for itself."""

    def __init__(self, path: Path) -> None:
        self.entities, self.relations = (_by_id(path.parent, name) for name in ("entity2id.txt", "relation2id.txt"))

    def fact(self, cells: list[str]) -> Fact:
        entity, relation = self.entities.get, self.relations.get
        pairs = (
            Qualifier(relation(cells[place], cells[place]), entity(cells[place + 1], cells[place + 1]))
            for place in range(3, len(cells), 2)
        )
        head, between, tail = cells[:3]
        return Fact(entity(head, head), relation(between, between), entity(tail, tail), tuple(pairs))


def _by_id(folder: Path, name: str) -> Mapping[str, str]:
    path = find_sidecar(folder, {name})
    names = [] if path is None else read_id_map(path)
    return {str(identity): name for identity, name in enumerate(names) if str(identity) not in names}


def read_stare(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Fact]:
    """The facts of a file of the StarE paper."""
    return facts_from_lines(path, options, report, _parse_stare)


def _parse_stare(line: str) -> Fact | None:
    cells = line.split(",")
    count = len(cells)
    if count < 3 or not count & 1 or "" in cells:
        if not line:
            return None
        raise wrong_shape(cells, "a comma")
    if count == 3:
        return Fact(cells[0], cells[1], cells[2])
    qualifiers = [Qualifier(cells[index], cells[index + 1]) for index in range(3, count, 2)]
    return Fact(cells[0], cells[1], cells[2], tuple(qualifiers))


def write_graph(graph: KnowledgeGraph, path: Path) -> Iterable[Path]:
    """A folder of comma-separated files; a graph with numbers, or with a comma in a name, is refused."""
    return write_text_folder(graph, path, ".txt", write_fact)


def write_fact(fact: Fact) -> str:
    """A fact as a line; a `DataError` where the format cannot say it."""
    cells: list[str] = []
    for value in (fact.head, fact.relation, fact.tail, *(part for pair in fact.qualifiers for part in pair)):
        if isinstance(value, Number):
            raise DataError(
                f"the format stare cannot write numbers, and a fact of {shortened(fact.head, 100)!r} has one.",
                advice="Export to tsv, jsonl or hynt.",
            )
        if any(mark in value for mark in ",\n\r") or value.startswith("\ufeff"):
            raise DataError(
                f"the format stare cannot write the name {shortened(value)!r}: "
                "it has no way to write a comma, a line end or a byte order mark.",
                advice="Export to tsv or jsonl, which can write every fact.",
            )
        cells.append(value)
    return ",".join(cells)
