"""Tables and figures of a page: numbers stand aligned, wide ones scroll within themselves, each has a caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hynt.reporting.page_html import Content, Markup, element, html, joined


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
class Group:
    """Rows under a heading of their own."""

    title: str
    rows: Sequence[Row]


def table(caption: str, columns: Sequence[Column], groups: Sequence[Group], *, hide_caption: bool = False) -> Markup:
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


def section(identity: str, title: str, *content: Content) -> Markup:
    """A part of the page with a heading that can be linked to."""
    return element(
        "section",
        element("h2", title, id=f"{identity}-heading"),
        *content,
        id=identity,
        aria_labelledby=f"{identity}-heading",
    )


def paragraphs(*texts: Content) -> Markup:
    """Text, a paragraph each."""
    return joined(element("p", html(text)) for text in texts if text)


def folded(summary: str, *content: Content) -> Markup:
    """What few will want to read, one click away."""
    return element("details", element("summary", summary), *content)
