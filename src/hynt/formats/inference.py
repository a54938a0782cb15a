"""Which format a source has, where its names and first lines leave no doubt; where two fit, both are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from hynt.errors import UsageError
from hynt.formats.beside import sample_lines
from hynt.formats.csv_columns import ENDS, RELATIONS
from hynt.formats.format import EVERYWHERE, Format, ReadOptions, changed_options
from hynt.formats.hynt import read_back
from hynt.formats.names import shortened
from hynt.formats.numbers import looks_like_number
from hynt.formats.parts import SIDECAR_STEMS, bare_name, mode_of, split_of
from hynt.formats.plain import is_time, split_cells
from hynt.formats.registry import FORMATS
from hynt.graph.fact import Number
from hynt.graph.storage import is_graph

_MARKED = re.compile(r"=[-+.\d]\S*( .*)?|@-?\d{4}\S*")
_NEO4J = re.compile(r".*:(START_ID|END_ID|ID)(\(.*\))?")
_CERTAIN_SUFFIXES = ("rdf", "parquet", "openke")


def infer_format(source: Path, options: ReadOptions | None = None) -> Format:
    """The one format that a source fits, or that knows what the user said of it; a `UsageError` where there are
    several, or none."""
    mode_of(source)  # refuses what is not there
    options = options or ReadOptions()
    said = {option for option in changed_options(options) if option not in EVERYWHERE}
    knowing = [known for known in FORMATS.values() if said <= known.options]
    if said and len(knowing) == 1:
        return knowing[0]
    path = _example(source)
    found = list(dict.fromkeys(_fitting(path)))
    if found[:2] == ["hynt", "triples"] and options.numeric:
        return FORMATS["triples"]  # the user says which values are numbers
    if len(found) == 1:
        return FORMATS[found[0]]
    if not found and path.is_file() and not path.stat().st_size:
        raise UsageError(f"{path} is empty.", advice="Give a file that holds facts.")
    if not found and all(line.count("\t") == 1 for line in sample_lines(path) or ["none"]):
        raise UsageError(
            f"{path} holds pairs and no facts.",
            advice="Names of entities or relations are given beside facts: --entity-labels or --relation-labels FILE.",
        )
    if not found:
        raise UsageError(
            f"no format can be told from {path}.",
            where="--format",
            advice="A table: name its columns with --head, --relation and --tail, or say --relation-name NAME for one "
            "relation, or --wide --head COLUMN. Anything else: say --format; `hynt data list` names the formats.",
        )
    raise UsageError(
        f"{path} fits {' and '.join(found)}. {_difference(found, path)}",
        where="--format",
        advice=f"Say {' or '.join(f'--format {name}' for name in found)}.",
    )


def _example(source: Path) -> Path:
    """The file to judge a source by: itself, or in a folder its train file, or else the first that is no sidecar."""
    if not source.is_dir():
        return source
    if is_graph(source):
        return source / "train.parquet"
    files = sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))
    splits = [path for path in files if split_of(path)]
    others = [path for path in files if bare_name(path.name).split(".")[0].lower() not in SIDECAR_STEMS]
    of_known = [path for path in others if any(True for _ in _fitting(path))]
    for path in sorted(splits, key=lambda path: split_of(path) != "train") or of_known:
        return path
    raise UsageError(
        "there is no file here that can be told to hold facts.",
        where=str(source),
        advice="Give the folder that holds the files, or say --format.",
    )


def _fitting(path: Path) -> Iterator[str]:
    """The formats that a file fits."""
    name = bare_name(path.name).lower()
    certain = [known for known in _CERTAIN_SUFFIXES if name.endswith(FORMATS[known].suffixes)]
    if certain:
        yield from certain
        return
    lines = sample_lines(path)
    if not lines:
        return
    if lines[0].lstrip().startswith(("{", "[")):
        yield from _fitting_json(lines)
    elif _is_header(lines[0]):
        cells = lines[0].split("\t")
        yield "tsv" if cells == ["head", "relation", "tail"] or _has_marks(lines) else "csv-edges"
    elif not name.endswith(".csv"):  # whether a table without a known header has one at all cannot be told
        yield from _fitting_rows(lines)


def _fitting_json(lines: list[str]) -> Iterator[str]:
    try:
        record = json.loads(lines[0])
    except (ValueError, RecursionError):  # a document over several lines
        if re.search(r'"(nodes|vertices)"\s*:', "\n".join(lines)):
            yield "graph-json"
        return
    if not isinstance(record, dict):
        return
    if record.keys() >= {"head", "relation", "tail"}:
        yield "jsonl"
    elif record.get("type") in ("node", "relationship") or record.keys() & {"nodes", "vertices"}:
        yield "graph-json"
    elif record.keys() & {"claims", "entities"}:
        raise UsageError(
            "this is Wikidata's JSON, of which a graph is created.",
            advice="Say: hynt create wikidata FILE --all --out GRAPH.",
        )
    elif all(isinstance(value, str | list | int) for value in record.values()):
        yield "nary-json"


def _is_header(line: str) -> bool:
    cells = [cell.strip().strip('"') for cell in re.split("[\t,;|]", line)]
    lowered = {cell.lower() for cell in cells}
    pair = any(head in lowered and tail in lowered for head, tail in ENDS)
    neo4j = any(_NEO4J.fullmatch(cell) for cell in cells) or {"_start", "_end", "_type"} <= lowered
    return neo4j or (pair and bool(lowered & set(RELATIONS)))


def _has_marks(lines: list[str]) -> bool:
    return any(_MARKED.fullmatch(cell) for line in lines for cell in line.split("\t")[2:])


def _fitting_rows(lines: list[str]) -> Iterator[str]:
    """Rows without a header: by their separator, their number of columns, and how values are spelt."""
    if lines[0].isdigit():
        yield "hynt"
        return
    if "\t" not in lines[0] and lines[0].count(",") >= 2:
        if all(line.count(",") % 2 == 0 for line in lines):
            yield "stare"
        return
    rows = [cells for line in lines if (cells := split_cells(line)) is not None]
    widths = {len(cells) for cells in rows}
    by_tabs = "\t" in lines[0]
    if not rows or min(widths) < 3 or (not by_tabs and max(widths) > 4) or _has_unknown_header(rows):
        return  # longer lines with spaces are sentences
    if _has_marks(lines):
        yield "tsv"
    elif widths <= {3, 4, 5} and widths != {3} and all(is_time(cells[-1]) for cells in rows if len(cells) > 3):
        yield "temporal"
    elif any(width % 2 == 0 for width in widths):
        if len(widths) > 1:
            yield "hype"
    else:
        yield from _fitting_facts(rows)


def _has_unknown_header(rows: list[list[str]]) -> bool:
    """Whether the first row names the columns: it alone is not written as its column is. Or whether these are rows of a
    table and no facts, since the relations of facts recur."""
    width = len(rows[0])
    columns = list(zip(*(cells for cells in rows[1:] if len(cells) == width), strict=True))
    named = any(all(map(is_time, column)) and not is_time(cell) for cell, column in zip(rows[0], columns, strict=False))
    relations = {cells[1] for cells in rows}
    return named or (len(rows) >= 20 and len(relations) > 0.8 * len(rows) and len({cells[0] for cells in rows}) > 5)


def _fitting_facts(rows: list[list[str]]) -> Iterator[str]:
    """Rows of head, relation, tail and pairs: their values may be numbers by their spelling, or names."""
    values = [cells[place] for cells in rows for place in range(2, len(cells), 2)]
    if any(value.startswith('"') and "^^" in value for value in values):
        yield "hynt"
        return
    if any(looks_like_number(value) or _is_literal(value) for value in values) and not any(
        looks_like_number(cells[0]) for cells in rows
    ):
        yield "hynt"
    yield "triples"
    first, second = ({cells[place] for cells in rows} for place in (0, 1))
    if len(rows) >= 20 and 4 * len(first) < len(second):
        yield "hype"  # few relations stand in the first column and many entities in the second


def _is_literal(value: str) -> bool:
    return value[:1] in ('"', "+", "-") and isinstance(read_back(value), Number)


def _difference(found: list[str], path: Path) -> str:
    if found[:2] == ["hynt", "triples"]:
        rows = [cells for line in sample_lines(path) if (cells := split_cells(line))]
        number = next(cell for cells in rows for cell in cells[2::2] if looks_like_number(cell) or _is_literal(cell))
        return f"As hynt, {shortened(number)} is a number; as triples it is a name, or a number with --numeric auto."
    return "As triples, the first column is the head; as hype, it is the relation."
