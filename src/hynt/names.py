"""Finds the name someone probably meant: the shared last word of every "unknown name" error."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest in spelling, or None when none is close. Case does not count."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    matches = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def advice_on(name: str, known: Iterable[str], prefix: str = "") -> str:
    """What to do about an unknown name: the nearest known one, then all of them."""
    names = list(known)
    listed = f"Known here: {', '.join(names)}." if names else "Nothing is known here."
    match = nearest(name, names)
    return listed if match is None else f"Did you mean {prefix}{match}? {listed}"
