"""Hanging up so that the other side hears the last word.

A socket that is closed with unread bytes resets the connection, and the answer that explains it is lost on its way.
So where a client is still sending, the writing half is closed, what comes is thrown away, and the rest follows when
the client has hung up too, or after a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

LINGER = 1.0
"""Seconds."""


class LingeringTransport:
    """A transport whose `close` is patient where there may be more to come."""

    def __init__(self, transport: asyncio.Transport, has_more: Callable[[], bool]) -> None:
        self._transport, self._has_more = transport, has_more
        self._is_closing = False
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        if self._is_closing or self._transport.is_closing():
            return
        if not self._has_more() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._is_closing = True
        self._transport.resume_reading()
        self._transport.write_eof()
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._transport.close)

    def finish(self) -> None:
        """The other side has hung up."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
