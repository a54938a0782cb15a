"""How results look in a notebook: plain HTML that takes its colours from the page around it, so that it fits a light
one and a dark one. No script, nothing fetched, and nothing in the data can break it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hynt.markup import Content, Markup, element, joined

_LINE = "1px solid color-mix(in srgb, currentColor 22%, transparent)"
STYLE = (
    ".hynt-box{color:inherit;font-variant-numeric:tabular-nums;max-width:60em}"
    ".hynt-box p{margin:.3em 0}.hynt-box .hynt-quiet{opacity:.7}"
    f".hynt-box table{{border-collapse:collapse;color:inherit;background:none;margin:.4em 0;border-bottom:{_LINE}}}"
    ".hynt-box tr{background:none}"
    f".hynt-box th,.hynt-box td{{text-align:left;padding:.15em .8em .15em 0;border:0;border-top:{_LINE};"
    "white-space:normal;vertical-align:top;background:none;color:inherit}"
    ".hynt-box thead th{font-weight:600;border-top:0}.hynt-box tbody th{font-weight:400}"
    ".hynt-box .hynt-number{text-align:right}"
)
SHOWN = 20
"""Rows of a long table; the rest is counted."""


def box(title: str, *parts: Content) -> str:
    """A result: its title in bold, and what is said about it."""
    return element(
        "div",
        joined([Markup("<style>"), Markup(STYLE), Markup("</style>")]),
        element("p", element("strong", title)) if title else None,
        *parts,
        class_="hynt-box",
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Content]], *, numbers: Iterable[int] = ()) -> Markup:
    """Rows of text under headings; `numbers` are the columns that stand to the right."""
    right = frozenset(numbers)

    def look(place: int) -> str | None:
        return "hynt-number" if place in right else None

    head = element(
        "tr", *(element("th", title, scope="col", class_=look(place)) for place, title in enumerate(columns))
    )
    body = [element("tr", *(element("td", cell, class_=look(place)) for place, cell in enumerate(row))) for row in rows]
    return element("table", element("thead", head) if any(columns) else None, element("tbody", *body))


def pairs(named: Iterable[tuple[str, Content]]) -> Markup:
    """Names and values side by side."""
    rows = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in named]
    return element("table", element("tbody", *rows))


def quiet(*texts: str) -> Markup:
    """What is good to know, a paragraph each."""
    return joined(element("p", text, class_="hynt-quiet") for text in texts)


def more(count: int, what: str) -> Markup | None:
    """`… and 12 more facts`, where some were left out."""
    return quiet(f"… and {count:,} more {what}") if count > 0 else None
