"""The numbers of a trend as a CSV file."""

from __future__ import annotations

import csv
import io

from hynt.trends.trends import COLUMNS, Trend


def trend_csv(trend: Trend) -> bytes:
    """A row for each point of a curve and one for each known value, as `Trend.rows` has them; UTF-8, empty for none."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in trend.rows())
    return file.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> object:
    """Floats with all their digits, so that a reader gets the very same numbers. A text that a spreadsheet would take
    for a formula begins with an apostrophe.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return repr(value) if isinstance(value, float) else value
