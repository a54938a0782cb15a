"""How long a line of text is, without a font at hand: pages are drawn by whichever font the reader has."""

from __future__ import annotations

import unicodedata

_CHARACTERS = {
    0.30: "ijlIJ'",
    0.34: " ,./:;\\|·’",
    0.41: "frt!-()[]²³",
    0.53: 'sz?*_`"°–',
    0.64: "abcdeghknopquvxyEFLPSTY0123456789${}€",
    0.70: "ABCKRVXZ",
    0.79: "DGHNOQU&",
    0.86: "wM#+<=>^~",
    1.00: "mW@%…—",
}
_WIDTHS = {character: width for width, characters in _CHARACTERS.items() for character in characters}
"""In parts of the size, rounded up, of DejaVu Sans: the font of pictures, and wider than most fonts of pages."""
_OTHER, _WIDE, _BOLD = 0.78, 1.15, 1.13


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Inches that a line of text of so many points takes."""
    return sum(map(_width, text)) * size / 72 * (_BOLD if bold else 1.0)


def _width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _WIDTHS.get(unicodedata.normalize("NFD", character)[0], _OTHER)  # é is as wide as e
