"""What hostile material is made from: originals, odd values, and content with something changed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    10**400,
    -(10**400),
    1e308,
    float("nan"),
    [],
    {},
    [[]],
    {"a": {"b": []}},
    *TEXTS,
)
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
    """What is changed: a graph, a run that was given away, one that followed its graph, and an ensemble. Nobody writes
    to them.
    """

    graph: Path
    away: Path
    followed: Path
    ensemble: Path


def mutated(chance: random.Random, content: bytes) -> bytes:
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


def changed(chance: random.Random, content: Any) -> Any:
    """JSON with one value, somewhere, that is of another kind."""
    if isinstance(content, dict) and content and chance.random() < 0.85:
        key = chance.choice(sorted(content))
        return {**content, key: changed(chance, content[key])}
    if isinstance(content, list) and content and chance.random() < 0.85:
        return [*content[:-1], changed(chance, content[-1])]
    return chance.choice(VALUES)


def write_json(path: Path, content: Any) -> None:
    path.write_bytes(json.dumps(content).encode("utf-8", "surrogatepass"))


def sign_anyway(sign: Callable[[Path], None], folder: Path) -> None:
    try:
        sign(folder)
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return  # it is too far gone to be signed: met as it is
