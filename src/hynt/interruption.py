"""Ctrl-C asks training to stop after the step at hand, so that what is saved is whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class Stopper:
    """Whether someone has asked to stop, and who tells them that they were heard."""

    asked = False
    say: Callable[[str], None] = staticmethod(lambda text: None)
    """Until a job puts whoever watches it here."""


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None], *names: str) -> Iterator[None]:
    """Within the block these signals call `handler`, in the main thread: elsewhere, or where the system has no such
    signal, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        names = ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def stopping_on_signals() -> Iterator[Stopper]:
    """Ctrl-C, or a polite kill, sets `asked`; a second one stops at once, without saving."""
    stopper = Stopper()

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        if stopper.asked:
            raise KeyboardInterrupt
        stopper.asked = True
        with suppress(RuntimeError):  # a line was being written at that very moment
            stopper.say("stopping: what is done is being saved. Once more stops at once, without saving.")

    with handling(ask, "SIGINT", "SIGTERM"):
        yield stopper


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block a polite end (`kill`, a closing terminal, a job scheduler's time limit) raises
    KeyboardInterrupt, as Ctrl-C does, so that half-written folders are removed.
    """

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        raise KeyboardInterrupt

    with handling(stop, "SIGTERM", "SIGHUP"):
        yield


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
