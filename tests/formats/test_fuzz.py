"""Mutated lines: only a well-formed fact or a located problem may come out, and read = kept + rejected."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from hynt.errors import DataError, UsageError
from hynt.formats.format import PROBLEMS_SHOWN, ReadOptions, ReadReport
from hynt.formats.inference import infer_format
from hynt.formats.jsonl import write_fact
from hynt.formats.registry import get_format
from hynt.formats.values import check_writable
from hynt.graph.fact import Fact, Number, Qualifier
from tests.formats.graphs import read_text

SEEDS = {
    "hynt": [
        'YAGO_Kyushu\thasArea\t"73.32"^^<km2>\tin\t"1949-12-25"^^xsd:date',
        "Q2119\tP1082\t+296690\tP585\t+00000002013-12-31T00:00:00Z",
        'm.03s5t\t<http://rdf.freebase.com/ns/population>\t"1391802"\tq\t"1980"^^<http://www.w3.org/2001/XMLSchema#gYear>',
        "Q1\tP2\tQ3",
        "a\tr\t4.2681785207785885e-06\tq\t-22.89824\tq\tQ9",
        "61105",
    ],
    "stare": ["Q12174,P2293,Q18052481,P459,Q1098876,P459,Q23190853", "Q1,P2,Q3"],
    "nary-json": [
        '{"P166_h": "Q7186", "P166_t": "Q38104", "N": 4, "P585": ["+1903-01-01T00:00:00Z#0#0#0#9#http://www.wikidata.org'
        '/entity/Q1985727"], "P1706": ["Q41269"]}',
        '{"film.cast0": "m.1", "film.cast1": "m.2", "film.cast2": "m.3", "N": 3}',
        '{"P1_h": "Q1", "P1_t": "+180#http://www.wikidata.org/entity/Q174728", "N": 2}',
    ],
    "triples": ["Q12174\tP2293\tQ18052481\tP459\tQ1098876", "Q1\tP2\tQ3", "a r b"],
    "hype": ["film.cast\tm.1\tm.2\tm.3", "film.cast\tm.1\tm.2"],
    "temporal": [
        "South Korea\tMake statement\tChina\t2014-05-05",
        "1\t2\t3\t1999-##-##\t####-##-##",
        '<a>\t<plays>\t<b>\t<occursSince>\t"2012-##-##"',
        "0\t1\t2\t132\t0",
    ],
    "graph-json": [
        '{"type": "node", "id": "1", "labels": ["Person"], "properties": {"name": "Keanu Reeves", "born": 1964}}',
        '{"type": "relationship", "label": "IN", "start": {"id": "1"}, "end": {"id": "2"}, "properties": {"a": 5}}',
    ],
    "tsv": [
        "Robert\tweight\t=80 kg\tpoint in time\t@1922-01-28",
        "a\\tb\tr\t\\=x\tq\t=80.0 kg|176.4 lb\tq\t@1922|in \\\\ 1922",
        "head\trelation\ttail",
    ],
    "jsonl": [
        '{"head": "a", "relation": "r", "tail": {"number": 80, "unit": "kg"}, "qualifiers": [["q", {"date": "1922"}]]}',
        '{"head": "a", "relation": "r", "tail": -1.5e3, "qualifiers": {"q": ["x", 5], "s": "\\u00e9"}}',
        '{"head": "a", "relation": "r", "tail": "b", "qualifiers": [{"relation": "q", "value": "x"}]}',
    ],
}
TOKENS = [
    b"\t",
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    "１２".encode(),
    "\u2028".encode(),
    b"\x1b",
    b"\x7f",
    b"nan",
    b"inf",
    b"1e999",
    b"1e-999",
    b"9" * 500,
    b"=",
    b"@",
    b"\\",
    b"|",
    b'"',
    b"^^",
    b"<",
    b">",
    b"xsd:date",
    b"xsd:string",
    b"+",
    b"-",
    b"-0",
    b"0000",
    b"-13-45",
    b"T",
    b"Z",
    b"#",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[" * 3000,
    b":",
    b"null",
    b"true",
    b"\\u0000",
    b"\\ud800",
    b"_h",
    b"_t",
    b'"N": 7',
    b"NaN",
    b"",
    b" ",
    b"\xef\xbb\xbf",
]
LINES_PER_FILE = 250
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def mutated(line: bytes, source: random.Random) -> bytes:
    """A line with a few changes: bytes flipped, cut, repeated, or replaced by something nasty."""
    for _ in range(source.choice((0, 1, 1, 2, 3, 6))):
        start = source.randrange(len(line) + 1)
        end = min(len(line), start + source.choice((0, 0, 1, 1, 2, 8, 40)))
        kind = source.randrange(5)
        if kind == 0:
            new = source.choice(TOKENS)
        elif kind == 1:
            new = bytes([source.randrange(256)])
        elif kind == 2:
            new = line[start:end] * source.choice((0, 2, 3))
        elif kind == 3:
            other = source.randrange(len(line) + 1)
            new = line[other : other + 12]
        else:
            new = source.choice(TOKENS) + line[start:end]
        line = line[:start] + new + line[end:]
    return line


def check_fact(fact: object) -> None:
    """A fact as the type says: names that may be written, finite numbers."""
    assert type(fact) is Fact
    assert all(type(qualifier) is Qualifier for qualifier in fact.qualifiers)
    check_writable(fact, where="fuzz")
    for value in (fact.tail, *(qualifier.value for qualifier in fact.qualifiers)):
        assert type(value) in (str, Number)
        if isinstance(value, Number):
            assert type(value.value) is float
            assert math.isfinite(value.value)


def check_file(content: bytes, format_name: str, folder: Path) -> tuple[int, int, int]:
    """Read one mutated file; how many records were kept and rejected, and whether the file was refused as a whole."""
    path = folder / "fuzz"
    path.write_bytes(content)
    report = ReadReport()
    found: list[Fact] = []
    refused = 0
    try:
        found.extend(get_format(format_name).read(path, ReadOptions(max_line_bytes=2**16), report))
    except DataError as error:
        assert error.where.startswith(str(path))
        assert error.what
        assert error.advice
        refused = 1
    rejected = sum(report.rejected.values())
    assert report.read == report.kept + rejected
    assert report.kept == len(found)
    assert report.line <= content.count(b"\n") + 1
    for fact in found:
        check_fact(fact)
    assert len(report.problems) == min(rejected, PROBLEMS_SHOWN)
    for where, reason, what, advice in [*report.problems, *report.notes]:
        assert re.fullmatch(rf"{re.escape(str(path))}:[1-9][0-9]*", where)
        assert _SLUG.fullmatch(reason)
        assert what
        assert len(what) < 400
        assert advice
    again, _ = read_text("\n".join(map(write_fact, found)), "jsonl", folder)
    assert again == found
    return report.kept, rejected, refused


def fuzz(format_name: str, lines: int, seed: int, folder: Path) -> None:
    source = random.Random(f"{format_name} {seed}")
    seeds = [line.encode() for line in SEEDS[format_name]]
    kept = rejected = refused = 0
    for _ in range(lines // LINES_PER_FILE):
        content = b"\n".join(mutated(source.choice(seeds), source) for _ in range(LINES_PER_FILE))
        counts = check_file(content, format_name, folder)
        kept, rejected, refused = kept + counts[0], rejected + counts[1], refused + counts[2]
    # Both ways are well travelled, and few files end early: else the fuzzing would test nothing.
    assert kept > lines // 20
    assert rejected > lines // 20
    assert refused < lines // LINES_PER_FILE // 2


@pytest.mark.parametrize("format_name", SEEDS)
def test_mutated_lines(tmp_path, format_name):
    fuzz(format_name, 5_000, 1, tmp_path)


def test_the_format_of_mutated_files_is_known_or_asked_for(tmp_path):
    source = random.Random(3)
    path = tmp_path / "fuzz"
    for seeds in SEEDS.values():
        for _ in range(40):
            path.write_bytes(b"\n".join(mutated(source.choice(seeds).encode(), source) for _ in range(5)))
            try:
                assert infer_format(path).name
            except UsageError as error:
                assert error.advice


@pytest.mark.slow
@pytest.mark.parametrize("format_name", SEEDS)
def test_a_hundred_thousand_mutated_lines(tmp_path, format_name):
    fuzz(format_name, 100_000, 2, tmp_path)
