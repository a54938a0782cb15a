"""Hostile folders, files, settings, graphs, runs and questions, each a function of a seed.

`case(seed, place, originals)` lays one out in `place` and gives the command that meets it. Whoever finds a seed that
breaks something has the whole attack in one number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.attacks import hostile_uses
from tests.attacks.forging import sign_graph, sign_run
from tests.attacks.mutations import Originals, changed, mutated, sign_anyway, write_json

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
        hostile_uses.updates,
        hostile_uses.calibration,
        hostile_uses.ensemble,
        hostile_uses.decisions,
        hostile_uses.questions,
        hostile_uses.elsewhere,
    )
    return kinds[seed % len(kinds)](chance, place, originals)


def _source(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    name = chance.choice(list(LINES))
    path = place / "source.txt"
    path.write_bytes(mutated(chance, "\n".join([LINES[name]] * chance.randint(1, 5)).encode()))
    verb = chance.choice((["check"], ["import", "--out", str(place / "out")]))
    return ["data", verb[0], str(path), "--format", name, *verb[1:], *chance.choice(([], ["--on-error", "skip"]))]


def _rdf(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    ending = chance.choice(list(RDF_LINES))
    path = place / f"source.{ending}"
    path.write_bytes(mutated(chance, RDF_LINES[ending].encode()))
    return ["data", "check", str(path), "--format", "rdf"]


def _table(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    del originals
    path = place / "source.parquet"
    pq.write_table(_random_table(chance), path)
    if chance.random() < 0.5:
        path.write_bytes(mutated(chance, path.read_bytes()))
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
        path.write_bytes(mutated(chance, path.read_bytes()))
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


def _manifest(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A manifest of a graph or a run says something else."""
    if chance.random() < 0.5:
        shutil.copytree(originals.graph, place / "graph")
        path = place / "graph" / "manifest.json"
        write_json(path, changed(chance, json.loads(path.read_bytes())))
        if chance.random() < 0.7:
            sign_anyway(sign_graph, place / "graph")
        return ["data", "stats", str(place / "graph")]
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / "manifest.json"
    content = json.loads(path.read_bytes())
    content.pop("sha256")
    said = changed(chance, content)
    write_json(path, said if isinstance(said, dict) else content)
    sign_anyway(sign_run, place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _settings(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / "config.toml"
    lines = path.read_text().splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([number for number, line in enumerate(lines) if "=" in line])
        lines[at] = f"{lines[at].partition('=')[0]}= {chance.choice(SETTINGS)}"
    path.write_text("\n".join(lines) + "\n")
    if chance.random() < 0.2:
        path.write_bytes(mutated(chance, path.read_bytes()))
    sign_run(place / "away")
    return ["pull", str(place / "away"), str(place / "out")]


def _scaling(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    shutil.copytree(originals.away, place / "away")
    path = place / "away" / chance.choice(("scaling.json", "environment.json", "reads.json", "metrics.jsonl"))
    if path.suffix == ".json":
        write_json(path, changed(chance, json.loads(path.read_bytes())))
    else:
        path.write_bytes(mutated(chance, path.read_bytes()))
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
        header[name] = changed(chance, header[name])
        text = json.dumps(header).encode("utf-8", "surrogatepass")
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    else:
        path.write_bytes(mutated(chance, content)[: len(content) + 1000])
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
