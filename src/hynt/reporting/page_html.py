"""HTML that cannot be broken by data: plain text is escaped wherever it is put, and only `Markup` passes as it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Characters that turn the direction of what stands around them: a name could make its neighbours read wrongly."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        """So that templates take it for what it is."""
        return self


Content: TypeAlias = str | Markup | None
Attribute: TypeAlias = str | int | float | bool | None


def shown(text: str) -> str:
    """Text with control and direction-changing characters written as escapes, as on a terminal."""
    if text.isprintable() and not _TURNING.intersection(text):
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if character in _TURNING or (unicodedata.category(character) in _UNSEEN and character != "\n")
        else character
        for character in text
    )


def html(content: Content) -> Markup:
    """Content as HTML; None is nothing."""
    if content is None:
        return Markup("")
    return content if isinstance(content, Markup) else Markup(escape(shown(content)))


def joined(parts: Iterable[Content], between: str = "") -> Markup:
    """Several contents, one after the other."""
    return Markup(html(between).join(html(part) for part in parts))


def element(name: str, *children: Content, **attributes: Attribute) -> Markup:
    """An element. `class_` is written as class, `aria_label` as aria-label; None and False leave an attribute out."""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        written.append(f" {attribute}" if value is True else f' {attribute}="{escape(shown(_plain(value)))}"')
    start = f"<{name}{''.join(written)}>"
    return Markup(start if name in _VOID else f"{start}{joined(children)}</{name}>")


def _plain(value: str | int | float) -> str:
    """Numbers of a drawing need no more than two digits after the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
