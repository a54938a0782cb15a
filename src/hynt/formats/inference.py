"""Which format a source has, where its names and first lines leave no doubt; where two fit, both are shown.

Nothing is read unasked, and nothing is passed over without a word: of the files of a folder that were not read it is
said what each seems to hold, by its first lines alone, and what to add to the command so that it is read.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Container, Iterator
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.formats.csv_columns import ENDS, RELATIONS
from hynt.formats.format import EVERYWHERE, FileBeside, Format, ReadOptions, ReadReport, changed_options
from hynt.formats.hynt import read_back
from hynt.formats.opening import open_bytes, stat_of
from hynt.formats.plain import is_time, split_cells
from hynt.formats.registry import FORMATS
from hynt.formats.source_files import SIDECAR_STEMS, bare_name, split_of
from hynt.formats.values import looks_like_number
from hynt.graph.fact import Number
from hynt.graph.storage import is_graph
from hynt.names import shortened

_MARKED = re.compile(r"=[-+.\d]\S*( .*)?|@-?\d{4}\S*")
_NEO4J = re.compile(r".*:(START_ID|END_ID|ID)(\(.*\))?")
_CERTAIN_SUFFIXES = ("rdf", "parquet", "openke")
_UNMISTAKABLE = frozenset({"jsonl", "graph-json", *_CERTAIN_SUFFIXES})  # whatever is said of other sources beside it


def infer_format(source: Path, options: ReadOptions | None = None) -> Format:
    """The one format that a source fits, or that knows what the user said of it; a `UsageError` where there are
    several, or none."""
    stat_of(source)  # refuses what is not there
    if source.is_file():
        _refuse_other_kinds(source)
    options = options or ReadOptions()
    said = {option for option in changed_options(options) if option not in EVERYWHERE}
    knowing = [known for known in FORMATS.values() if said <= known.options]
    if said and len(knowing) == 1:
        seen = list(fitting(source)) if source.is_file() else []
        return FORMATS[seen[0]] if len(seen) == 1 and seen[0] in _UNMISTAKABLE else knowing[0]
    path = _example(source)
    found = list(dict.fromkeys(fitting(path)))
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
    columns = [cell.strip().strip('"') for cell in re.split("[\t,;|]", next(iter(sample_lines(path)), ""))]
    if not found and len(columns) > 2 and bare_name(path.name).lower().endswith((".csv", ".tsv", ".tab")):
        raise UsageError(
            f"{path} seems to be a table with the columns {', '.join(map(repr, columns))[:300]}.",
            where="--format",
            advice=f"If each row is about one thing, named in {columns[0]!r}, and the other columns say what is known "
            f"of it, add: --wide --head {shlex.quote(columns[0])}. If each row is one fact, name the columns with "
            "--head, --relation and --tail, or with --relation-name NAME for one relation.",
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


_OTHER_KINDS = {
    b"PK\x03\x04": ("a zip archive, as workbooks of Excel are", "Unpack it, or save each sheet as CSV (UTF-8)."),
    b"\xd0\xcf\x11\xe0": ("a workbook of an old Excel", "Save each sheet as CSV (UTF-8)."),
    b"SQLite f": ("a database of SQLite", "Write each of its tables as CSV."),
    b"\xff\xfe": ("text in UTF-16", "Save it as UTF-8."),
    b"\xfe\xff": ("text in UTF-16", "Save it as UTF-8."),
}
"""What people have and no format reads, by its first bytes."""


def _refuse_other_kinds(source: Path) -> None:
    with source.open("rb") as file:
        start = file.read(max(map(len, _OTHER_KINDS)))
    for first, (kind, advice) in _OTHER_KINDS.items():
        if start.startswith(first):
            raise UsageError(f"{source} is {kind}, which hynt does not read.", advice=advice)


def _example(source: Path) -> Path:
    """The file to judge a source by: itself, or in a folder its train file, or else the first that is no sidecar."""
    if not source.is_dir():
        return source
    if is_graph(source):
        return source / "train.parquet"
    files = sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))
    splits = [path for path in files if split_of(path)]
    others = [path for path in files if bare_name(path.name).split(".")[0].lower() not in SIDECAR_STEMS]
    of_known = [path for path in others if any(True for _ in fitting(path))]
    for path in sorted(splits, key=lambda path: split_of(path) != "train") or of_known:
        return path
    raise UsageError(
        "there is no file here that can be told to hold facts.",
        where=str(source),
        advice="Give the folder that holds the files, or say --format.",
    )


def fitting(path: Path) -> Iterator[str]:
    """The formats that a file fits, by its name and its first lines."""
    name = bare_name(path.name).lower()
    certain = [known for known in _CERTAIN_SUFFIXES if name.endswith(FORMATS[known].suffixes)]
    if certain:
        yield from certain
        return
    lines = sample_lines(path)
    if not lines:
        return
    if lines[0].lstrip().startswith("["):
        _refuse_list(lines)
    elif lines[0].lstrip().startswith("{"):
        yield from _fitting_json(lines, name)
    elif _is_header(lines[0]):
        cells = lines[0].split("\t")
        yield "tsv" if cells == ["head", "relation", "tail"] or _has_marks(lines) else "csv-edges"
    elif not name.endswith(".csv"):  # whether a table without a known header has one at all cannot be told
        yield from _fitting_rows(lines)


def _refuse_list(lines: list[str]) -> None:
    """A list in JSON is read by no format: the whole of it would have to be held. Its first member says what to do,
    unless it is longer than what was looked at."""
    text = "\n".join(lines).lstrip("[ \t\n")
    try:
        _refuse_wikidata(json.JSONDecoder().raw_decode(text)[0] if text else None)
    except (ValueError, RecursionError):
        return
    raise UsageError(
        "this is one list in JSON, and facts are read line by line.",
        advice="Write each member on a line of its own: jq -c '.[]' FILE > FILE.jsonl. Of a dump of Wikidata: hynt "
        "create wikidata FILE --all --out GRAPH.",
    )


def _refuse_wikidata(record: Any) -> None:
    if isinstance(record, dict) and record.keys() & {"claims", "entities"}:
        raise UsageError(
            "this is Wikidata's JSON, of which a graph is created.",
            advice="Say: hynt create wikidata FILE --all --out GRAPH.",
        )


def _fitting_json(lines: list[str], name: str) -> Iterator[str]:
    try:
        record = json.loads(lines[0])
    except (ValueError, RecursionError):  # a document over several lines
        if re.search(r'"(nodes|vertices)"\s*:', "\n".join(lines)):
            yield "graph-json"
        elif name.endswith(FORMATS["jsonl"].suffixes):
            yield "jsonl"  # which says what is wrong with the line
        return
    if not isinstance(record, dict):
        return
    _refuse_wikidata(record)
    if len(record.keys() & {"head", "relation", "tail"}) > 1:  # with one missing, jsonl says which
        yield "jsonl"
    elif record.get("type") in ("node", "relationship") or record.keys() & {"nodes", "vertices"}:
        yield "graph-json"
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


_SAMPLE_BYTES = 2**16
_SAMPLE_LINES = 200
_MOST = 0.8  # of the lines of a sample
_OBSERVED = {"msg", "ind_train", "train_ind", "inference", "inference_graph", "observed"}
_SIDECARS = {f"{stem}.{suffix}" for stem in ("entities", "relations") for suffix in ("jsonl", "tsv")} | {
    "entity2id.txt",
    "relation2id.txt",
    "croissant.json",  # what an export says of itself
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
