"""A polite end (`kill`, a closing terminal, a job scheduler's time limit) cleans up as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, a termination signal raises KeyboardInterrupt, so that half-written folders are removed."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set signal handlers
        yield
        return

    def stop(number: int, frame: Any) -> None:  # noqa: ARG001 - the signature of a signal handler
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), stop) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
