"""What results have in common: ways out of hynt as a table, reading a result as the plain values it stands for, and how
it looks in a notebook.

A `Table` makes itself an Arrow table once; pandas, polars, DuckDB and whoever else takes Arrow's stream gets it from
there. No heavy import at the top: a result that nobody turns into a table costs nothing. In a notebook a result is
plain HTML that takes its colours from the page around it, so that it fits a light one and a dark one. No script,
nothing fetched, and nothing in the data can break it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.markup import Content, Markup, element, joined

if TYPE_CHECKING:
    import pyarrow as pa


class Table(ABC):
    """Something with rows and named columns."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, from which all other forms are made."""

    def to_pandas(self) -> Any:
        """A pandas data frame.

        >>> run.predict("Japan", "capital", "?", top=3).to_pandas()["rank"].tolist()
        [1, 2, 3]
        """
        pandas_or_refusal()
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A polars data frame.

        >>> graph.to_polars().height == len(graph)
        True
        """
        try:
            import polars
        except ImportError:
            raise missing("polars") from None
        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's own door between libraries: `pyarrow.table(x)`, `polars.DataFrame(x)`, DuckDB's `FROM x`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class PlainValues(ABC):
    """A result that also reads as the mapping `to_dict` makes of it: `found["notes"]`, `"notes" in found`,
    `dict(found)`; it equals that mapping too.
    """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as plain values that JSON can hold."""

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def keys(self) -> Iterable[str]:
        """The names that `[…]` takes."""
        return self.to_dict().keys()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainValues):
            return type(other) is type(self) and self.to_dict() == other.to_dict()
        return self.to_dict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, repr=False)
class FoundValues(PlainValues):
    """A result that was put together as plain values."""

    found: Mapping[str, Any]  # as JSON has it

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values that JSON can hold."""
        return dict(self.found)


def text_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells under their headings as lines of text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (columns, *rows)]


_FORMULA = re.compile(r"(?![-+][0-9][0-9,.]*\Z)[=+\-@\t\r\n]")
"""How a text begins that a spreadsheet would work out; a plain number is none. `bulk.js` has the same."""


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV under the names that any of them has. Numbers have all their digits, a list becomes words, what is
    missing stays empty, and an apostrophe keeps a text from being a spreadsheet's formula.
    """
    written = list(rows)
    columns = list(dict.fromkeys(name for row in written for name in row))
    if not columns:
        return ""
    lines: list[list[Any]] = [columns, *([row.get(name) for name in columns] for row in written)]
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in lines)


def _csv_cell(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        value = "; ".join(
            str(one.get("text", one.get("value", one)) if isinstance(one, dict) else one) for one in value
        )
    text = f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else str(value)
    return '"' + text.replace('"', '""') + '"' if re.search('[",\n\r]', text) else text


def arrow_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """An Arrow table of rows that were made one by one."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=schema)


def pandas_or_refusal() -> Any:
    """The pandas module, or a clear word that it is missing."""
    try:
        import pandas
    except ImportError:
        raise missing("pandas") from None
    return pandas


def missing(package: str) -> UsageError:
    """What to say where a data frame is wanted and its library is not there."""
    return UsageError(f"{package} is not installed.", advice=f"pip install {package}, or use .to_dict().")


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


def notebook_table(columns: Sequence[str], rows: Iterable[Sequence[Content]], *, numbers: Iterable[int] = ()) -> Markup:
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
