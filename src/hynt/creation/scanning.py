"""A quick look through a whole dump for lines with certain bytes, before it is parsed: bound by decompression."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hynt.creation.blocks import whole_lines
from hynt.creation.decompression import DumpStream


def lines_with(files: list[Path], *needles: bytes) -> Iterator[bytes]:
    """Every line that holds one of the needles; a line that holds two comes once for each."""
    for path in files:
        stream = DumpStream(path)
        try:
            for block in whole_lines(stream.read):
                for needle in needles:
                    yield from _found(block.data, needle)
        finally:
            stream.close()


def _found(data: bytes, needle: bytes) -> Iterator[bytes]:
    place = data.find(needle)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        if end < 0:
            end = len(data)
        yield data[start:end]
        place = data.find(needle, end)
