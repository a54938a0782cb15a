"""docs/reference/file-formats.md: its examples are read, and every reason that a text format gives is explained."""

from __future__ import annotations

import re

import pytest

from hynt.formats.registry import FORMATS
from tests.conftest import ROOT
from tests.formats.graphs import read_text

PAGE = (ROOT / "docs" / "reference" / "file-formats.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```([a-z-]+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TEXT_FORMATS = ("hynt", "stare", "nary-json", "tsv", "jsonl")


def test_every_text_format_has_an_example():
    assert sorted(name for name, _ in EXAMPLES) == sorted(TEXT_FORMATS)


@pytest.mark.parametrize("format_name, text", EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_are_read(tmp_path, format_name, text):
    found, report = read_text(text, format_name, tmp_path, strict=True)
    assert len(found) >= 2
    assert not report.rejected
    assert not report.noted


def test_every_reason_is_explained():
    folder = ROOT / "src" / "hynt" / "formats"
    reasons = set()
    shared = ("lines", "values")
    for module in (*shared, "hynt", "plain", "tsv", "jsonl", "nary_json"):
        source = (folder / f"{module}.py").read_text(encoding="utf-8")
        reasons.update(re.findall(r'(?:RecordProblem|\.note)\(\s*"([a-z0-9-]+)"', source))
    assert len(reasons) > 20
    assert not {reason for reason in reasons if f"`{reason}`" not in PAGE}


def test_every_format_is_listed():
    assert not {name for name in FORMATS if f"`{name}`" not in PAGE}
