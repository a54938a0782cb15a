"""Messages between the front and the inference process: two lengths, a JSON header, raw bytes.

Plain data over a pipe, so that neither side can make the other run anything; answers travel as the bytes that the
client will get, so that the front need not read them.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, BinaryIO, NamedTuple

_LENGTHS = struct.Struct(">II")
_LONGEST = 1 << 30


class Frame(NamedTuple):
    """One message."""

    header: dict[str, Any]
    body: bytes = b""

    def encoded(self) -> bytes:
        header = json.dumps(self.header, ensure_ascii=False, allow_nan=False).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next message; None where the other side has closed the pipe."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header, body = _LENGTHS.unpack(lengths)
    content = stream.read(header + body)
    return _frame(content, header) if len(content) == header + body else None


async def receive_frame(stream: asyncio.StreamReader) -> Frame | None:
    """The same, without waiting on the thread."""
    try:
        header, body = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
        if header + body > _LONGEST:
            return None  # something else wrote to the pipe: treated as an end, and the process is replaced
        return _frame(await stream.readexactly(header + body), header)
    except asyncio.IncompleteReadError:
        return None


def _frame(content: bytes, header: int) -> Frame:
    return Frame(json.loads(content[:header]), content[header:])
