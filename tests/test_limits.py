"""Every limit is documented with the value it has."""

from __future__ import annotations

import re

from hynt import limits
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "": 1}


def test_the_page_lists_every_limit_with_its_value():
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\d,.e]+) ?(KiB|MiB|GiB|) ?[^|]*\|", PAGE, re.MULTILINE)
    written = {name: float(number.replace(",", "")) * UNITS[unit] for name, number, unit in rows}
    assert written == {name: value for name, value in vars(limits).items() if name.isupper()}
