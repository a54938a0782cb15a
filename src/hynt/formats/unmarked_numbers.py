"""A table whose numbers nobody marked reads well and means nothing: its first rows are looked at, to say so.

It is a guess by spelling, so nothing but a hint follows from it: house numbers are names.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable

from hynt.graph.fact import Fact

NUMBER = r"\s*[-+]?\d+([.,]\d+)*([eE][-+]?\d+)?\s*"
SHARE = 0.9
"""Of the values: some may be missing or unknown, in words."""

_ROWS = 1_000
_SPELLINGS = {
    "numeric": ("numbers", re.compile(NUMBER)),
    "dates": ("dates", re.compile(r"\s*[-+]?\d{4,}-\d\d(-\d\d(T.*)?)?\s*")),
}


class UnmarkedNumbers:
    """Counts the values of each relation that are written like numbers or dates and were read as names."""

    def __init__(self) -> None:
        self._rows = 0
        self._seen: Counter[str] = Counter()
        self._fits: dict[str, Counter[str]] = {option: Counter() for option in _SPELLINGS}

    def look(self, fact: Fact) -> None:
        """Look at one more fact, unless there were enough."""
        if self._rows == _ROWS:
            return
        self._rows += 1
        if not _SPELLINGS["numeric"][1].fullmatch(fact.head):  # else names are numbers here, as in lists of ids
            self._look(fact.relation, fact.tail)
        for qualifier in fact.qualifiers:
            self._look(*qualifier)

    def _look(self, relation: str, value: object) -> None:
        if isinstance(value, str):
            self._seen[relation] += 1
            for option, (_, spelling) in _SPELLINGS.items():
                self._fits[option][relation] += spelling.fullmatch(value) is not None

    def hints(self) -> list[str]:
        """What to say, with the option that marks them."""
        said = []
        for option, (words, _) in _SPELLINGS.items():
            names = [name for name, seen in self._seen.items() if self._fits[option][name] >= SHARE * seen]
            if names:
                said.append(
                    f"values of {', '.join(names)} are written like {words} and were read as names. "
                    f"If they are {words}, add: --{option} {as_given(names)}"
                )
        return said


def as_given(names: Iterable[str]) -> str:
    """Names as a shell and `--numeric` take them."""
    return shlex.quote(",".join(f'"{name}"' if "," in name else name for name in names))
