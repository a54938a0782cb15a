"""What docs/reference/json.md says that a command prints."""

from __future__ import annotations

import re

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")


def section(command: str) -> str:
    """All that stands under a command's title."""
    found = re.search(rf"^## {re.escape(command)}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert found is not None, command
    return found[1]


def names(command: str) -> list[str]:
    """Every field that is named there, in order; those in brackets too."""
    return re.findall(r"`([a-z_]+)`", section(command))


def fields(command: str) -> list[str]:
    """The fields of the object itself, in order: what stands in brackets belongs to a field."""
    return re.findall(r"`([a-z_]+)`", re.sub(r"\([^)]*\)", "", section(command)))


def meanings(command: str) -> dict[str, str]:
    """Field to meaning, where a table says it."""
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| (.*) \|$", section(command), flags=re.MULTILINE)
    return {field: meaning for fields, meaning in rows for field in re.findall(r"`([a-z_]+)`", fields)}
