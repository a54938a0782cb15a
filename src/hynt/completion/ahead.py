"""Making the next items while the last ones are worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")

_WAITING = 2
"""Items that may lie ready: enough to keep both sides busy, few enough to keep memory bounded."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made by a thread of their own. What goes wrong there is raised here, in its place."""
    ready: queue.Queue[tuple[bool, Item | BaseException | None]] = queue.Queue(_WAITING)
    left = threading.Event()

    def make() -> None:
        try:
            for item in items:
                if not _put(ready, (True, item), left):
                    return
            _put(ready, (False, None), left)
        except BaseException as problem:  # noqa: BLE001 - raised again by whoever waits
            _put(ready, (False, problem), left)

    maker = threading.Thread(target=make, name="reading questions", daemon=True)
    maker.start()
    try:
        while True:
            is_item, found = ready.get()
            if is_item:
                yield found  # type: ignore[misc]
            elif isinstance(found, BaseException):
                raise found
            else:
                return
    finally:
        left.set()
        maker.join()


def _put(
    ready: queue.Queue[tuple[bool, Item | BaseException | None]],
    found: tuple[bool, Item | BaseException | None],
    left: threading.Event,
) -> bool:
    """Whether it was taken; not where nobody waits any more."""
    while not left.is_set():
        try:
            ready.put(found, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
