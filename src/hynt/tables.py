"""What results have in common: ways out of hynt as a table, and reading a result as the plain values it stands for.

A `Table` makes itself an Arrow table once; pandas, polars, DuckDB and whoever else takes Arrow's stream gets it from
there. No heavy import at the top: a result that nobody turns into a table costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError

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
