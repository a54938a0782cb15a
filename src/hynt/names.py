"""Finds the name someone probably meant: the shared last word of every "unknown name" error."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar

from hynt.errors import UsageError

_LONGEST_LIST = 4_000
"""Characters of a list of what is known: all settings fit, and not all columns of any table."""


def spelled_like(name: str, known: Iterable[str], count: int) -> list[str]:
    """Up to `count` known names close in spelling, the closest first. Case does not count."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    return [by_folded[match] for match in get_close_matches(name.casefold(), by_folded, count)]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest in spelling, or None when none is close."""
    return next(iter(spelled_like(name, known, 1)), None)


def advice_on(name: str, known: Iterable[str], prefix: str = "") -> str:
    """What to do about an unknown name: the nearest known one, then all of them."""
    names = list(known)
    told = ", ".join(names)
    if len(told) > _LONGEST_LIST:
        told = f"{told[:_LONGEST_LIST].rpartition(', ')[0] or told[:_LONGEST_LIST]} and more"
    listed = f"Known here: {told}." if names else "Nothing is known here."
    match = nearest(name, names)
    return listed if match is None else f"Did you mean {prefix}{match}? {listed}"


def check_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses the first option that what takes options does not know."""
    unknown = sorted(set(given).difference(known))
    if unknown:
        raise UsageError(f"{what} has no option {unknown[0]!r}.", advice=advice_on(unknown[0], known))


def named_twice(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def plural(count: int, noun: str, nouns: str = "") -> str:
    """So many of something, such as 1 fact or 2 facts."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def as_given(names: Iterable[str]) -> str:
    """Names as a shell and `--numeric` take them."""
    return shlex.quote(",".join(f'"{name}"' if "," in name else name for name in names))


def shortened(text: str, length: int = 60) -> str:
    """A text for a message: whole if it is short, else its beginning."""
    return text if len(text) <= length else text[: length - 3] + "..."


# Named things in one visible place: formats, models, presets.

T = TypeVar("T")


class Registry(Generic[T]):
    """Names and what they stand for, in the order they were added.

    It refuses a name it already has, because two things under one name would make a run depend on import order; and an
    unknown name is answered with the nearest one and the whole list.
    """

    def __init__(self, kind: str) -> None:
        """`kind` is the singular word for what is kept here ("format", "model"); errors use it."""
        self.kind = kind
        self._things: dict[str, T] = {}

    def add(self, name: str, thing: T) -> T:
        """Keeps `thing` under `name` and gives it back."""
        if name in self._things:
            raise ValueError(f"a {self.kind} named {name!r} is already registered: {self._things[name]!r}")
        self._things[name] = thing
        return thing

    def get(self, name: str) -> T:
        """What `name` stands for; an unknown name is a `UsageError` that lists what is known."""
        if name not in self._things:
            raise UsageError(f"unknown {self.kind} {name!r}", advice=advice_on(name, self._things))
        return self._things[name]

    def items(self) -> Iterator[tuple[str, T]]:
        """Names with what they stand for, in order."""
        return iter(self._things.items())

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self._things)})"
