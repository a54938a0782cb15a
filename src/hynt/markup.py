"""HTML that cannot be broken by data: plain text is escaped wherever it is put, and only `Markup` passes as it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\ufffe\uffff")
"""Characters that turn the direction of what stands around them, so that a name could make its neighbours read wrongly,
and two that no XML may hold."""


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


def percent(probability: float) -> str:
    """A probability as people read it; no line ends within it."""
    if 0.0005 <= probability < 0.9995:
        return f"{100 * probability:.1f}\u00a0%"
    return ">\u00a099.9\u00a0%" if probability > 0.5 else "<\u00a00.1\u00a0%"


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


# Tables and figures of a page: numbers stand aligned, wide ones scroll within themselves, each has a caption.


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether it holds numbers or bars."""

    title: str
    look: str = ""  # "number", "bar", "long" or ""


@dataclass(frozen=True)
class Row:
    """The cells of a row; the first one is its heading."""

    cells: Sequence[Content]
    look: str = ""


@dataclass(frozen=True)
class RowGroup:
    """Rows under a heading of their own."""

    title: str
    rows: Sequence[Row]


def table(caption: str, columns: Sequence[Column], groups: Sequence[RowGroup], *, hide_caption: bool = False) -> Markup:
    """A table that scrolls sideways where it is wider than the screen, also by keyboard."""
    head = element("tr", *(element("th", one.title, scope="col", class_=one.look or None) for one in columns))
    bodies = []
    for group in groups:
        rows = []
        if group.title:
            rows.append(
                element("tr", element("th", group.title, colspan=len(columns), scope="colgroup"), class_="group")
            )
        rows += [_row(row, columns) for row in group.rows]
        bodies.append(element("tbody", *rows))
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="quiet" if hide_caption else None),
            element("thead", head),
            *bodies,
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _row(row: Row, columns: Sequence[Column]) -> Markup:
    first, *others = row.cells
    cells = [element("th", first, scope="row", class_=columns[0].look or None)]
    cells += [element("td", cell, class_=column.look or None) for cell, column in zip(others, columns[1:], strict=True)]
    return element("tr", *cells, class_=row.look or None)


def definitions(pairs: Sequence[tuple[str, Content]]) -> Markup:
    """Names and values, side by side."""
    return element(
        "dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs), class_="facts"
    )


def figure(chart: Markup, caption: Content, keys: Sequence[tuple[str, str]] = ()) -> Markup:
    """A chart with its caption; `keys` are the classes of its marks and what they stand for."""
    return element("figure", chart, legend(keys) if keys else None, element("figcaption", caption))


def legend(keys: Sequence[tuple[str, str]]) -> Markup:
    """What the marks of a chart stand for."""
    return element("ul", *(element("li", name, class_=f"key {look}") for look, name in keys), class_="keys")


def section(identity: str, title: str, *content: Content, lead: str = "") -> Markup:
    """A part of the page with a heading that can be linked to, and what it is about."""
    return element(
        "section",
        element("h2", title, id=f"{identity}-heading"),
        element("p", lead, class_="lead") if lead else None,
        *content,
        id=identity,
        aria_labelledby=f"{identity}-heading",
    )


def paragraphs(*texts: Content) -> Markup:
    """Each text that is not empty as a paragraph."""
    return joined(element("p", html(text)) for text in texts if text)


def folded(summary: str, *content: Content) -> Markup:
    """What few will want to read, one click away."""
    return element("details", element("summary", summary), *content)


def long_table(title: str, columns: Sequence[Column], rows: Sequence[Row], most: int, rest: str = "more") -> Markup:
    """A card with a table of the first rows; the others are one click away."""
    shown, others = rows[:most], rows[most:]
    folded_table = table(f"{title}, the others", columns, [RowGroup("", others)], hide_caption=True)
    return element(
        "div",
        table(title, columns, [RowGroup("", shown)]),
        folded(f"{len(others):,} {rest}", folded_table) if others else None,
        class_="card",
    )
