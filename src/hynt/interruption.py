"""Ctrl-C asks training to stop after the step at hand, so that what is saved is whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Stopper:
    """Whether someone has asked to stop, and who tells them that they were heard."""

    asked = False
    say: Callable[[str], None] = staticmethod(lambda text: None)
    """Until a job puts whoever watches it here."""


@contextmanager
def stopping_on_signals() -> Iterator[Stopper]:
    """Ctrl-C, or a polite kill, sets `asked`; a second one stops at once, without saving.

    Signals can be caught in the main thread alone; elsewhere the stopper is simply never asked.
    """
    stopper = Stopper()
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        if stopper.asked:
            raise KeyboardInterrupt
        stopper.asked = True
        with suppress(RuntimeError):  # a line was being written at that very moment
            stopper.say("stopping: what is done is being saved. Once more stops at once, without saving.")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_parent() -> None:
    """From now on this process ends when the one that started it is gone: one that is killed cannot end the others, and
    they must not go on in the dark.
    """
    from multiprocessing import parent_process

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# A polite end (`kill`, a closing terminal, a job scheduler's time limit) cleans up as Ctrl-C does.


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
