"""Hostile folders, files, settings, graphs, runs, questions, messages and requests, each a function of a seed.

`case(seed, place, originals)` lays one out in `place` and gives the command that meets it. Whoever finds a seed that
breaks something has the whole attack in one number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq

from tests.attacks.forging import sign_graph, sign_run

TEXTS = (
    "",
    "?",
    "a",
    "=1+1",
    "../../etc/passwd",
    "\0",
    "\ud800",
    "é" * 300,
    "x" * 20_000,
    "NaN",
    "1e999",
    "-0",
    "[]",
    "{}",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    10**30,
    1e308,
    float("nan"),
    [],
    {},
    [[]],
    {"a": {"b": []}},
    *TEXTS,
)
SETTINGS = (
    "0",
    "-1",
    "1000000000",
    "1e308",
    "nan",
    "inf",
    '"x"',
    "true",
    "[]",
    "[1, 2]",
    "{ a = 1 }",
    "1979-05-27",
    "0x7fffffff",
)
LINES = {
    "jsonl": '{"head": "a", "relation": "r", "tail": {"number": 80, "unit": "kg"}, "qualifiers": {"q": ["x", 5]}}',
    "tsv": "Robert\tweight\t=80 kg\tpoint in time\t@1922-01-28",
    "nary-json": '{"P19_h": "Q1", "P19_t": "Q2", "P585": ["+1922"], "N": 2}',
    "hynt": "a\tr\tb\tq\tc",
    "stare": "a,r,b,q,c",
    "csv-edges": "head,relation,tail,year\nAnn,height,1.7,2020",
}
RDF_LINES = {
    "nt": '<http://e/a> <http://e/r> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "ttl": "@prefix e: <http://e/> . e:a e:r e:b {| e:q 5 |} . << e:a e:r e:c >> e:q e:v .",
    "rdf": '<?xml version="1.0"?><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<r:Description r:about="http://e/a"><e:r r:resource="http://e/b"/></r:Description></r:RDF>',
}
PIECES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"<!DOCTYPE a [",
    b"<<",
    b"[" * 500,
    b"{" * 500,
    b"\r",
    b"\n" * 50,
    b"\t" * 50,
    b'"',
    b"\\",
    b"=",
    b"@-99999",
    b"1e9999",
    b"\xef\xbb\xbf",
    b"\x1f\x8b\x08",
    b"(\xb5/\xfd",
    b"BZh9",
    b"PK\x03\x04",
    "\u2028".encode(),
)


@dataclass(frozen=True)
class Originals:
    """What is changed: a graph, and a run that was given away. Nobody writes to them."""

    graph: Path
    away: Path


def case(seed: int, place: Path, originals: Originals) -> list[str]:
    """One attack: the command line that meets it."""
    chance = random.Random(seed)
    kinds: tuple[Callable[[random.Random, Path, Originals], list[str]], ...] = (
        _source,
        _source,
        _rdf,
        _table,
        _graph,
        _graph,
        _manifest,
        _settings,
        _scaling,
        _weights,
        _folder,
        _question,
    )
    return kinds[seed % len(kinds)](chance, place, originals)


def _mutated(chance: random.Random, content: bytes) -> bytes:
    for _ in range(chance.randint(1, 6)):
        at, to = sorted(chance.randint(0, len(content)) for _ in range(2))
        how = chance.randrange(5)
        piece = chance.choice(PIECES)
        if how == 0:
            content = content[:at] + piece + content[at:]
        elif how == 1:
            content = content[:at] + content[to:]
        elif how == 2:
            content = content[:at] + content[at:to] * chance.randint(2, 40) + content[to:]
        elif how == 3 and content:
            flipped = bytearray(content)
            flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            content = bytes(flipped)
        else:
            content = content[:at] + bytes(chance.randrange(256) for _ in range(chance.randint(1, 20))) + content[at:]
    return content[:200_000]


def _source(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    name = chance.choice(list(LINES))
    path = place / "source.txt"
    path.write_bytes(_mutated(chance, "\n".join([LINES[name]] * chance.randint(1, 5)).encode()))
    verb = chance.choice((["check"], ["import", "--out", str(place / "out")]))
    return ["data", verb[0], str(path), "--format", name, *verb[1:], *chance.choice(([], ["--on-error", "skip"]))]


def _rdf(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    ending = chance.choice(list(RDF_LINES))
    path = place / f"source.{ending}"
    path.write_bytes(_mutated(chance, RDF_LINES[ending].encode()))
    return ["data", "check", str(path), "--format", "rdf"]


def _table(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    path = place / "source.parquet"
    pq.write_table(_random_table(chance), path)
    if chance.random() < 0.5:
        path.write_bytes(_mutated(chance, path.read_bytes()))
    return ["data", "check", str(path), "--format", "parquet"]


def _random_table(chance: random.Random) -> pa.Table:
    rows = chance.randint(0, 5)
    kinds: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
        (pa.string(), ("", "a", "?", "x" * 5000, None)),
        (pa.float64(), (0.0, float("nan"), 1e308, None)),
        (pa.int64(), (0, -(2**63), None)),
        (pa.binary(), (b"\xff", None)),
        (
            pa.list_(pa.struct([("relation", pa.string()), ("entity", pa.string()), ("number", pa.float64())])),
            ([], None, [None], [{"relation": "q", "entity": "x", "number": 5.0}], [{"relation": None}]),
        ),
    )
    columns = {}
    for name in ("head", "relation", "tail", "tail_entity", "tail_number", "tail_literal", "qualifiers", "unit"):
        if chance.random() < 0.6:
            kind, values = chance.choice(kinds)
            columns[name] = pa.array([chance.choice(values) for _ in range(rows)], kind)
    return pa.table(columns)


def _graph(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A table of a saved graph is another one, or its bytes are changed; the hashes agree."""
    shutil.copytree(originals.graph, place / "graph")
    path = place / "graph" / chance.choice(("entities", "relations", "train", "valid", "test"))
    path = path.with_suffix(".parquet")
    if chance.random() < 0.5:
        path.write_bytes(_mutated(chance, path.read_bytes()))
    else:
        table = pq.read_table(path)
        for _ in range(chance.randint(1, 3)):
            column = chance.randrange(table.num_columns)
            name, kind = table.schema.names[column], table.schema.field(column).type
            how = chance.randrange(4)
            if how == 0:
                table = table.drop_columns([name])
            elif how == 1 and table.num_rows:
                table = table.set_column(column, name, pa.nulls(table.num_rows, kind))
            elif how == 2 and pa.types.is_string(kind):
                texts = [chance.choice(("", "a", "x" * 5000)) for _ in range(table.num_rows)]
                table = table.set_column(column, name, pa.array(texts, kind))
            else:
                table = pa.concat_tables([table, table.slice(0, 1)] * chance.randint(1, 3))
            if not table.num_columns:
                break
        pq.write_table(table, path, store_schema=False)
    sign_graph(place / "graph")
    return ["data", "stats", str(place / "graph")]


def _changed(chance: random.Random, content: Any) -> Any:
    """JSON with one value, somewhere, that is of another kind."""
    if isinstance(content, dict) and content and chance.random() < 0.85:
        key = chance.choice(sorted(content))
        return {**content, key: _changed(chance, content[key])}
    if isinstance(content, list) and content and chance.random() < 0.85:
        return [*content[:-1], _changed(chance, content[-1])]
    return chance.choice(VALUES)


def _write_json(path: Path, content: Any) -> None:
    path.write_bytes(json.dumps(content).encode("utf-8", "surrogatepass"))


def _manifest(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A manifest of a graph or a run says something else."""
    if chance.random() < 0.5:
        shutil.copytree(originals.graph, place / "graph")
        path = place / "graph" / "manifest.json"
        _write_json(path, _changed(chance, json.loads(path.read_bytes())))
        if chance.random() < 0.7:
            _sign_anyway(sign_graph, place / "graph")
        return ["data", "stats", str(place / "graph")]
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / "manifest.json"
    content = json.loads(path.read_bytes())
    content.pop("sha256")
    changed = _changed(chance, content)
    _write_json(path, changed if isinstance(changed, dict) else content)
    _sign_anyway(sign_run, place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _sign_anyway(sign: Callable[[Path], None], folder: Path) -> None:
    try:
        sign(folder)
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return  # it is too far gone to be signed: met as it is


def _settings(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / "config.toml"
    lines = path.read_text().splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([number for number, line in enumerate(lines) if "=" in line])
        lines[at] = f"{lines[at].partition('=')[0]}= {chance.choice(SETTINGS)}"
    path.write_text("\n".join(lines) + "\n")
    if chance.random() < 0.2:
        path.write_bytes(_mutated(chance, path.read_bytes()))
    sign_run(place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _scaling(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / chance.choice(("scaling.json", "environment.json", "reads.json", "metrics.jsonl"))
    if path.suffix == ".json":
        _write_json(path, _changed(chance, json.loads(path.read_bytes())))
    else:
        path.write_bytes(_mutated(chance, path.read_bytes()))
    sign_run(place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _weights(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / "weights.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if chance.random() < 0.5:
        name = chance.choice(sorted(header))
        header[name] = _changed(chance, header[name])
        text = json.dumps(header).encode("utf-8", "surrogatepass")
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    else:
        path.write_bytes(_mutated(chance, content)[: len(content) + 1000])
    sign_run(place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _folder(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """Where a file is expected there is a folder, a pipe, a link to itself, or nothing."""
    run = chance.random() < 0.5
    folder = place / "folder"
    shutil.copytree(originals.away if run else originals.graph, folder)
    path = chance.choice(sorted(one for one in folder.rglob("*") if one.is_file()))
    path.unlink()
    how = chance.randrange(4)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        path.symlink_to(chance.choice((path.name, "/dev/zero", "/etc/hostname", "..")))
    return ["pull", str(folder), str(place / "out")] if run else ["data", "stats", str(folder)]


def _question(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A question in which some names are known and others are anything at all."""
    shutil.copytree(originals.away, place / "asked")
    odd = (
        "-5",
        "1e999",
        "nan",
        "5 kg",
        "@2020",
        "x" * 2000,
        "",
        "=1",
        "\ud800",
        "*",
        "%s",
        "\0",
        "5 \u00b5m",
        "1e-400 nm",
    )

    def one(*known: str) -> str:
        return chance.choice((*known * 3, "?", *odd))

    given = {"--head": one("person 0", "person 1"), "--relation": one("knows", "height"), "--tail": one("town 0", "?")}
    qualifiers = [f"{one('year', 'in')}={one('2000', 'town 1')}" for _ in range(chance.randrange(3))]
    words = [part for name, value in given.items() if chance.random() < 0.95 for part in (name, value)]
    return ["predict", str(place / "asked"), "--json", *words, *(f"--qualifier={one}" for one in qualifiers)]


TOOLS = ("search_entities", "facts_of", "numbers_of", "predict", "explain", "trends", "propose", "doubtful_facts", "no")
ARGUMENTS = ("query", "entity", "relation", "head", "tail", "heads", "qualifiers", "limit", "offset", "points", "kind")


def message(seed: int) -> bytes:
    """One line for `hynt mcp`: a call with arguments of any kind, JSON that is no call, or no JSON at all."""
    chance = random.Random(seed)
    values = (*VALUES, "person 0", "knows", "height", [["person 0"]], [{"relation": "year", "value": "?"}])
    arguments = {chance.choice(ARGUMENTS): chance.choice(values) for _ in range(chance.randint(0, 6))}
    call = {
        "jsonrpc": "2.0",
        "id": seed,
        "method": "tools/call",
        "params": {"name": chance.choice(TOOLS), "arguments": arguments},
    }
    how = chance.randrange(6)
    if how == 0:
        call = _changed(chance, call)
    elif how == 1:
        arguments["query"] = "x" * chance.choice((1_000, 60_000, 70_000, 5_000_000))
    text = json.dumps(call).encode("utf-8", "surrogatepass")
    if how == 2:
        depth = chance.choice((10, 200, 20_000))
        text = text.replace(b'"arguments": {', b'"arguments": {"query": ' + b"[" * depth + b"]" * depth + b", ", 1)
    elif how == 3:
        text = _mutated(chance, text)
    return text.replace(b"\n", b" ").replace(b"\r", b" ")


PATHS = ("/v1/predict", "/v1/explain", "/v1/trends", "/v1/facts", "/v1/entities", "/v1/relations", "/v1/similar")
PAGES = ("/", "/ask", "/trends", "/entity", "/relation", "/relations", "/fact", "/doubtful", "/about", "/docs", "/mcp")
FIELDS = ("head", "relation", "tail", "qualifier", "value", "query", "id", "top", "offset", "split", "row", "words")


def request(seed: int) -> tuple[bytes, bool]:
    """One request, whose connection is to be closed after the answer: odd values, or bytes that are hardly HTTP; and
    whether it is whole, so that an answer must come.
    """
    chance = random.Random(seed)
    address = chance.choice((*PATHS, *PAGES, "/entity/", "/v1/entities/%00"))
    if chance.random() < 0.5:
        given = [(chance.choice(FIELDS), str(chance.choice((*VALUES, "Japan", "?")))[:3_000]) for _ in range(4)]
        text = urlencode(given[: chance.randint(1, 4)], errors="surrogatepass")
        head, body = f"GET {address}?{text} HTTP/1.1", b""
    else:
        content = {chance.choice(FIELDS): chance.choice(VALUES) for _ in range(chance.randint(0, 5))}
        asked = {"head": "p0", "relation": "born in", "tail": "?", "questions": [content], "heads": [content]}
        body = json.dumps(_changed(chance, {**asked, **content})).encode("utf-8", "surrogatepass")
        head = f"{chance.choice(('POST', 'POST', 'DELETE', 'PUT'))} {address} HTTP/1.1"
    kind = chance.choice(("application/json", "application/json", "text/html", "a/b; charset=x"))
    lines = [head, "Host: localhost", "Connection: close", f"Accept: {kind}", f"Content-Type: {kind}"]
    whole = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    return (_mutated(chance, whole), False) if chance.random() < 0.1 else (whole, True)
