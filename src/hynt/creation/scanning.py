"""A quick look through a whole dump for lines with certain bytes, before it is parsed: bound by decompression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hynt.creation.blocks import whole_lines
from hynt.creation.decompression import DumpStream


@dataclass(frozen=True)
class Scan:
    """The files of a dump, and who hears how many bytes of them were looked through."""

    files: list[Path]
    tell: Callable[[int], None] = lambda taken: None

    def lines_with(self, *needles: bytes) -> Iterator[bytes]:
        """Every line that holds one of the needles; a line that holds two comes once for each."""
        before = 0
        for path in self.files:
            stream = DumpStream(path)
            try:
                for block in whole_lines(stream.read):
                    for needle in needles:
                        yield from _found(block.data, needle)
                    self.tell(before + stream.bytes_read)
            finally:
                stream.close()
            before += path.stat().st_size


def _found(data: bytes, needle: bytes) -> Iterator[bytes]:
    place = data.find(needle)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        if end < 0:
            end = len(data)
        yield data[start:end]
        place = data.find(needle, end)
