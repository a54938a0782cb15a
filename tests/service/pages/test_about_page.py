"""What a run says of itself is shown where it can be read, and costs the page that part alone where it cannot."""

from __future__ import annotations

import json

import pytest

from hynt.service.pages.overview import validated_of

LINE = {"phase": "x", "epoch": 1, "validation": {"link": {"triplet": {"mrr": 0.5, "count": 3}, "all": {"mrr": 0.5}}}}
ODD = [
    '{"phase": "x", "epoch": 1, "validation": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001,
    json.dumps({**LINE, "epoch": "first"}),
    json.dumps({**LINE, "epoch": float("inf")}),
    json.dumps({**LINE, "validation": [1]}),
    json.dumps({**LINE, "validation": {"link": {"triplet": {"count": "many"}}}}),
    "[1]",
]


@pytest.mark.parametrize("line", ODD, ids=lambda line: line[-30:])
def test_a_record_that_no_training_wrote_is_left_out(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    assert validated_of(tmp_path) is None
