"""The example on the page about the protocol runs, and its figures about tiles are those of the code."""

from __future__ import annotations

import re

from hynt.evaluation import evaluation_pass as sitting
from hynt.evaluation import tiles
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "background" / "evaluation-protocol.md").read_text(encoding="utf-8")


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "docs/background/evaluation-protocol.md", "exec"), names)
    assert names["low"] <= names["result"].metric("link.all.mrr") <= names["high"]


def test_the_sizes_on_the_page_are_those_of_the_code():
    assert f"({tiles.ROWS_ON_CUDA:,} rows on CUDA, {tiles.ROWS_ON_CPU} on a CPU" in PAGE
    assert sitting.SCORES_AT_ONCE == 1 << 26
    assert "2^26 scores" in PAGE
    sizes = [tiles.tile_rows(capacity, tiles.torch.device("cpu")) for capacity in (0, 8, 16, 32, 512)]
    assert sizes == [64, 64, 16, 4, 1]
