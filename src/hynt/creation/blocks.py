"""A dump as blocks of whole lines, each with its place: bounded memory, however long a line is.

Blocks depend on the bytes alone, never on how fast or in which pieces they came, so that a build that is run again cuts
the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 256 << 20
"""The longest lines of Wikidata are near 30 MB."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines, without the last line's end."""

    offset: int  # of the first byte, in the decompressed file
    data: bytes
    too_long: bool = False  # a line too long to hold started at the offset; its bytes are gone
    cut_off: bool = False  # the last line of the file, which has no end


def whole_lines(
    read: Callable[[int], bytes], start: int = 0, end: int | None = None, longest: int = LONGEST_LINE
) -> Iterator[Block]:
    """The lines that start in [start, end).

    `read` stands at `start`, or one byte before it where start > 0: that byte tells whether a line starts at `start`,
    so that two ranges that meet share no line and lose none.
    """
    offset = max(start - 1, 0)  # of what is pending
    pending = bytearray()  # of a line whose end has not come yet
    dropping = start > 0  # whether the line being read is thrown away up to its end
    while data := read(BLOCK_BYTES):
        if offset == 0 and not pending and data.startswith(_BYTE_ORDER_MARK):
            data, offset = data[len(_BYTE_ORDER_MARK) :], len(_BYTE_ORDER_MARK)
        if dropping:
            cut = data.find(b"\n") + 1
            offset += cut or len(data)
            if not cut:
                continue
            data, dropping = data[cut:], False
        last = data.rfind(b"\n")
        if last < 0:
            pending += data
            if len(pending) > longest:
                if end is None or offset < end:
                    yield Block(offset, b"", too_long=True)
                offset += len(pending)
                pending, dropping = bytearray(), True
            continue
        pending += data[:last]
        block, pending = bytes(pending), bytearray(data[last + 1 :])
        if end is not None:
            if offset >= end:
                return
            # A line starts behind each line end: the first one that starts at `end` or later belongs to the next range.
            cut = block.find(b"\n", max(end - offset - 1, 0))
            if cut >= 0:
                yield Block(offset, block[:cut])
                return
        yield Block(offset, block)
        offset += len(block) + 1
    if pending and (end is None or offset < end):
        yield Block(offset, bytes(pending), cut_off=True)
