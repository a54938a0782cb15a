"""What an audit wrote is shown on pages and told to agents; what none wrote is refused, whatever it says."""

from __future__ import annotations

import html
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hynt.errors import HyntError
from hynt.service.pages.doubtful import Doubtful, check_audit
from tests.browser.hostile_names import hostile_graph
from tests.browser.service_pages import audit_rows
from tests.service.inference.fake_engine import FakeEngine
from tests.service.test_agents import called


@pytest.fixture
def audit(tmp_path):
    return audit_rows(hostile_graph(), tmp_path / "suspicious.parquet")


def rewritten(path, column, value):
    table = pq.read_table(path)
    values = value if isinstance(value, pa.Array) else pa.array([value] * len(table))
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), path)


NOTHING = pa.nulls(61)
TEXTS = ("split", "fact", "head", "relation", "tail", "component", "kind", "stored", "said")
ODD = [
    *((name, NOTHING) for name in (*TEXTS, "row", "probability", "said_probability")),
    *(("rank", "first"), ("row", "x"), ("probability", "x"), ("kind", "odd"), ("said", [["a"]]), ("tail", {"a": 1})),
]


@pytest.mark.parametrize(("column", "value"), ODD, ids=[f"{name}-{str(value)[:8]}" for name, value in ODD])
def test_columns_that_no_audit_wrote_are_refused(audit, column, value):
    rewritten(audit, column, value)
    with pytest.raises(HyntError, match="this is not the result of an audit"):
        Doubtful(audit)


@pytest.mark.parametrize("judged", ["x", "9" * 5000, "-5", "3"])
def test_so_is_a_count_that_cannot_be(audit, judged):
    pq.write_table(pq.read_table(audit).replace_schema_metadata({"judged": judged}), audit)
    with pytest.raises(HyntError, match="this is not the result of an audit"):
        Doubtful(audit)


def test_a_pipe_instead_of_an_audit_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "suspicious.parquet")
    for read in (check_audit, Doubtful):
        with pytest.raises(HyntError, match="is not a regular file"):
            read(tmp_path / "suspicious.parquet")


def test_the_page_says_what_is_wrong_with_a_file(audit, site):
    rewritten(audit, "probability", NOTHING)
    shown = site(FakeEngine(), audit=audit).get("/doubtful", Accept="text/html")
    assert "his is not the result of an audit" in html.unescape(shown.body.decode())


def test_agents_are_told_why_a_fact_is_doubtful(audit, site):
    (told,) = called(f"{site(FakeEngine(), audit=audit).url}/mcp", ("doubtful_facts", {"kind": "entity"}))
    assert not told.is_error, told.content
    first = told.structured_content["facts"][0]
    assert first["reason"].startswith("Without this fact the model gives")
    assert "as the tail, and Zürich 75.0" in first["reason"]
