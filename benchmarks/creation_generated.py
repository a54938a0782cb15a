"""A Wikidata dump of any size in the real format, for benchmarks: real proportions, made-up content.

    python -m benchmarks.creation_generated --bytes 2000000000 --out generated.json.gz

An entity has names in many languages, a dozen statements (most of them identifiers, as in Wikidata), references,
qualifiers and sitelinks; a line has 16 KB on average, with a long tail. Lines are made from a few thousand templates.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

TEMPLATES = 2000
_UNITS = ("1", "Q11573", "Q828224", "Q11570", "Q4917", "Q25269")
_LANGUAGES = [f"{first}{second}" for first in "abcdefghij" for second in "kmnorst"]
_MARK = b'"id":"Q0000000000"'


def templates(seed: int, count: int = TEMPLATES, entities: int = 1_000_000) -> list[bytes]:
    """Lines of entities whose id is a mark to be replaced."""
    random_numbers = random.Random(seed)
    return [_line(random_numbers, entities) for _ in range(count)]


def lines(total_bytes: int, seed: int = 0) -> Iterator[bytes]:
    """Lines of a dump, about so many bytes in all; ids count up from Q1."""
    made = [template.split(_MARK) for template in templates(seed)]
    written, identity = 0, 0
    yield b"["
    while written < total_bytes:
        for before, after in made:
            identity += 1
            line = b'%s"id":"Q%d"%s,' % (before, identity, after)
            written += len(line) + 1
            yield line
    yield b"]"


def write(path: Path, total_bytes: int, seed: int = 0) -> int:
    """Write a dump, packed as the file's name says; how many entities it has."""
    count = -2
    with _opened(path) as file:
        held: list[bytes] = []
        for line in lines(total_bytes, seed):
            held.append(line)
            count += 1
            if len(held) == 500:
                file.write(b"\n".join(held) + b"\n")
                held = []
        file.write(b"\n".join(held) + b"\n")
    return count


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "wb", compresslevel=1))
    if path.suffix == ".bz2":
        return cast(BinaryIO, bz2.open(path, "wb"))
    if path.suffix == ".zst":
        # A long window finds the templates again, so that 20 GB take little room.
        settings = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True, strategy=1)
        return cast(BinaryIO, zstandard.open(path, "wb", cctx=zstandard.ZstdCompressor(compression_params=settings)))
    return path.open("wb")


def _line(numbers: random.Random, entities: int) -> bytes:
    def words(count: int) -> str:
        return " ".join(f"{numbers.getrandbits(24):x}" for _ in range(count))

    def item() -> dict[str, Any]:
        identity = 1 + int(entities * numbers.random() ** 3)
        return {
            "value": {"entity-type": "item", "numeric-id": identity, "id": f"Q{identity}"},
            "type": "wikibase-entityid",
        }

    def quantity() -> dict[str, Any]:
        unit = numbers.choice(_UNITS)
        address = unit if unit == "1" else f"http://www.wikidata.org/entity/{unit}"
        return {"value": {"amount": f"+{numbers.lognormvariate(5, 2):.2f}", "unit": address}, "type": "quantity"}

    def time() -> dict[str, Any]:
        year, month, day = numbers.randrange(1500, 2025), numbers.randrange(1, 13), numbers.randrange(1, 29)
        return {
            "value": {
                "time": f"+{year}-{month:02d}-{day:02d}T00:00:00Z",
                "timezone": 0,
                "before": 0,
                "after": 0,
                "precision": numbers.choice((9, 10, 11, 11)),
                "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
            },
            "type": "time",
        }

    def place() -> dict[str, Any]:
        latitude, longitude = round(numbers.uniform(-90, 90), 6), round(numbers.uniform(-180, 180), 6)
        return {
            "value": {
                "latitude": latitude,
                "longitude": longitude,
                "altitude": None,
                "precision": 0.0001,
                "globe": "http://www.wikidata.org/entity/Q2",
            },
            "type": "globecoordinate",
        }

    def text() -> dict[str, Any]:
        return {"value": words(2), "type": "string"}

    def snak(name: str, value: dict[str, Any]) -> dict[str, Any]:
        return {
            "snaktype": "value",
            "property": name,
            "hash": f"{numbers.getrandbits(160):040x}",
            "datavalue": value,
            "datatype": value["type"],
        }

    claims: dict[str, list[Any]] = {}
    for _ in range(min(int(numbers.lognormvariate(2.3, 0.7)) + 1, 200)):
        make = numbers.choices((text, item, time, quantity, place), (55, 28, 8, 6, 3))[0]
        name = {"text": 2000, "item": 1000, "time": 500, "quantity": 3000, "place": 625}[make.__name__]
        name += numbers.randrange(100) if make is not place else 0
        held: dict[str, Any] = {"mainsnak": snak(f"P{name}", make()), "type": "statement"}
        if numbers.random() < 0.2:
            pairs = [("P585", time()), (f"P{1000 + numbers.randrange(20)}", item())][: numbers.randrange(1, 3)]
            held["qualifiers"] = {relation: [snak(relation, value)] for relation, value in pairs}
            held["qualifiers-order"] = [relation for relation, _ in pairs]
        held |= {"id": f"Q1${numbers.getrandbits(128):032x}", "rank": "normal"}
        held["references"] = [
            {
                "hash": f"{numbers.getrandbits(160):040x}",
                "snaks-order": ["P248", "P813"],
                "snaks": {"P248": [snak("P248", item())], "P813": [snak("P813", time())]},
            }
        ]
        claims.setdefault(f"P{name}", []).append(held)
    spoken = numbers.sample(_LANGUAGES, min(len(_LANGUAGES), int(numbers.lognormvariate(2.5, 0.8)) + 1))
    labels = {language: {"language": language, "value": words(3)} for language in ["en", *spoken]}
    descriptions = {language: {"language": language, "value": words(5)} for language in spoken}
    sites = {f"{language}wiki": {"site": f"{language}wiki", "title": words(3), "badges": []} for language in spoken[:8]}
    content = {
        "type": "item",
        "id": "Q0000000000",
        "labels": labels,
        "descriptions": descriptions,
        "aliases": {"en": [{"language": "en", "value": words(2)}]},
        "claims": claims,
        "sitelinks": sites,
        "pageid": 1,
        "ns": 0,
        "lastrevid": 1234567890,
        "modified": "2026-01-02T03:04:05Z",
    }
    return json.dumps(content, separators=(",", ":")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=2_000_000_000, help="size before packing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print(f"{write(arguments.out, arguments.bytes, arguments.seed):,} entities")


if __name__ == "__main__":
    main()
