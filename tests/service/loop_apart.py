"""Running a coroutine from a test, whatever else runs in this thread.

A browser that other tests keep open has an event loop in the main thread, beside which asyncio starts no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_apart(work: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine returns, run by an event loop in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
