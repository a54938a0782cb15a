"""The one rule for numbers in text: ASCII decimal or scientific notation, finite, and nothing else.

`float()` alone would take `nan`, `inf`, `1_000`, `１２` and round `1e999` to infinity; none of these is a number that a
graph can hold.
"""

from __future__ import annotations

import math
import re

from hynt.errors import RecordProblem
from hynt.formats.names import shortened

NUMBER_PATTERN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LONGEST_NUMBER = 400
"""Characters: more than any double needs, and short enough to be converted in no time."""

_NUMBER = re.compile(NUMBER_PATTERN)
_SPECIAL = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_ADVICE = "Write a finite decimal number in ASCII, such as 80, -0.5 or 1.2e6."


def parse_number(text: str) -> float:
    """The value of a number as written; a `RecordProblem` "bad-number" says what is wrong with anything else."""
    if len(text) > LONGEST_NUMBER:
        raise RecordProblem("bad-number", f"a number of {len(text)} characters is too long.", _ADVICE)
    if _NUMBER.fullmatch(text) is None:
        raise RecordProblem("bad-number", _what_is_wrong(text), _ADVICE)
    value = float(text)
    if math.isinf(value):
        raise RecordProblem("bad-number", f"{shortened(text)!r} is too large for a double-precision number.", _ADVICE)
    if value == 0.0 and _has_digits(text):
        raise RecordProblem(
            "bad-number", f"{shortened(text)!r} is too close to zero for a double-precision number.", _ADVICE
        )
    return value


def check_finite(value: float, text: str) -> float:
    """A number that came already parsed (from JSON, Parquet), refused where it is not finite."""
    if not math.isfinite(value):
        raise RecordProblem("bad-number", f"{shortened(text)!r} is not a finite number.", _ADVICE)
    return value


def looks_like_number(text: str) -> bool:
    """Whether a text is spelt as a number, good or bad: `80`, but also `nan` and `１２`, which no format takes."""
    if _NUMBER.fullmatch(text) is not None or _SPECIAL.fullmatch(text) is not None:
        return True
    return not text.isascii() and _NUMBER.fullmatch(_ascii_digits(text)) is not None


def _has_digits(text: str) -> bool:
    """Whether the part before the exponent has a digit other than zero: then a value of zero is an underflow."""
    return any(character in "123456789" for character in re.split("[eE]", text)[0])


def _ascii_digits(text: str) -> str:
    return "".join("0" if character.isdecimal() else character for character in text.replace("−", "-"))


def _what_is_wrong(text: str) -> str:
    shown = repr(shortened(text))
    if not text:
        return "a number is empty."
    if _SPECIAL.fullmatch(text):
        return f"{shown} is not a finite number."
    if not text.isascii() and _NUMBER.fullmatch(_ascii_digits(text)):
        return f"{shown} is written with characters that are not ASCII."
    return f"{shown} is not a number."
