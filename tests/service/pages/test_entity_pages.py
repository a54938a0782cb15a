"""Entity pages: telling relations first, facts narrowed by words, small curves, what looks wrong, what is around."""

from __future__ import annotations

import html
import re
from datetime import date
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hynt.formats.from_python import graph_from_facts
from hynt.graph.views import GraphViews
from hynt.service.pages.doubtful import COLUMNS, Doubtful
from hynt.service.pages.questions import beginnings
from tests.browser.hostile_names import hostile_graph
from tests.browser.service_pages import audit_rows
from tests.service.conftest import in_thread
from tests.service.inference.fake_engine import FakeEngine


@pytest.fixture(scope="module")
def plain_site(graph):
    engine = FakeEngine()
    engine.state.ready = False  # facts are told without a model
    with in_thread(graph, engine) as found:
        yield found


def text_of(site, path: str) -> str:
    found = site.get(path, Accept="text/html")
    assert found.status == 200, found.body
    return html.unescape(found.body.decode())


def relations_of(page: str) -> list[str]:
    return re.findall(r'<dt><a href="/relation\?id=(\w+)"', page)


def test_what_most_have_comes_first_and_says_what_a_thing_is():
    facts = [(f"p{index}", "height", (150.0 + index)) for index in range(8)]
    facts += [(f"p{index}", "likes", f"p{other}") for index in range(8) for other in (1, 2, 3) if other != index]
    facts += [(f"p{index}", "born in", "town") for index in range(8)]
    facts += [("p0", "nickname", "zero")]
    views = GraphViews(graph_from_facts({"train": facts, "valid": [], "test": []}))
    found = views.entity_by_relation("p0", "head", "", "", 0, 10, 2)
    assert [one["relation"]["id"] for one in found["groups"]] == ["born in", "likes", "height", "nickname"]
    likes = found["groups"][1]
    assert (likes["count"], len(likes["facts"])) == (3, 2)
    assert (found["total"], found["facts"]) == (4, 6)


def test_a_series_is_drawn_small_and_told_newest_first(plain_site):
    page = text_of(plain_site, "/entity?id=town%2F0")
    assert 'class="chart spark"' in page
    assert "1000 (1990) to 1950 (2009)" in page
    group = page.split('href="/relation?id=P1082"')[1].split("</div>")[0]
    assert re.findall(r'class="quantity">([\d,]+)</span>\s*<span class="pair">', group)[:2] == ["1950", "1900"]
    assert "all 20" in group
    whole = text_of(plain_site, "/entity?id=town%2F0&position=head&relation=P1082")
    assert relations_of(whole) == ["P1082"]
    assert "20 facts" in whole
    assert 'class="chart spark"' not in text_of(plain_site, "/entity?id=p1")


def test_isotopes_found_year_by_year_are_no_series():
    facts = [
        ("tin", "abundance", float(mass), [("found", date(1800 + mass, 1, 1)), ("mass", mass)])
        for mass in range(110, 115)
    ]
    facts += [("town", "people", float(year), [("date", date(year, 1, 1))]) for year in (1990, 2000, 2010)]
    graph = graph_from_facts({"train": facts, "valid": [], "test": []})
    (group,) = GraphViews(graph).entity_by_relation("tin", "head", "", "", 0, 10, 2)["groups"]
    assert group["series"] == []
    assert [one["text"] for one in beginnings(graph)["trends"]] == ["town: people"]


@pytest.mark.parametrize(
    "words, expected", [("place ogden", {"P26"}), ("1994", {"P1082", "P26"}), ("zzz", set()), ("BORN", {"P19"})]
)
def test_words_narrow_the_facts(plain_site, words, expected):
    page = text_of(plain_site, f"/entity?id=town%2F2&words={words.replace(' ', '+')}")
    assert set(relations_of(page)) == expected
    assert ("The graph holds no fact here" in page) == (not expected)


def test_a_fact_is_led_to_where_it_stands(plain_site):
    found = plain_site.get("/fact?split=valid&row=0", Accept="text/html")
    assert found.status == 303
    where, anchor = found.headers["location"].split("#")
    assert anchor == "valid-0"
    assert f'<dd id="{anchor}">' in text_of(plain_site, where)
    for query in ("split=valid&row=9999", "split=nothing&row=0"):
        assert plain_site.get(f"/fact?{query}", Accept="text/html").status == 404


def test_the_drawing_leads_on(plain_site):
    page = text_of(plain_site, "/neighbourhood?id=p1")
    drawing = page.split("<svg")[1].split("</svg>")[0]
    assert 'role="group"' in drawing
    linked = set(re.findall(r'<a href="/neighbourhood\?id=([^"]+)"', drawing))
    assert "town%2F1" in linked
    assert "p1" not in linked, "the entity of the drawing leads nowhere"
    assert "151" in drawing, "numbers are part of it"
    assert plain_site.get("/neighbourhood?id=nobody", Accept="text/html").status == 404


def test_what_an_audit_found_stands_on_the_page(tmp_path):
    graph = hostile_graph()
    found = Doubtful(audit_rows(graph, tmp_path / "suspicious.parquet"))
    assert len(found.page(None, 0).rows) == 25
    worst = found.page(None, 0).rows[0]
    told = found.about(worst["head"])
    assert told[0]["rank"] == 1
    assert len(told) <= 5
    last = found.page(None, 50).rows[-1]
    assert last["rank"] not in [row["rank"] for row in found.about(last["head"])]


def test_the_doubtful_part_of_a_fact_is_called_by_its_relation(graph, site, tmp_path):
    """ "value of qualifier 1" says nothing to people."""
    row, fact = next((row, one) for row, one in enumerate(graph.facts("train")) if one.relation == "P1082")
    judged = {
        "split": "train",
        "row": row,
        "head": fact.head,
        "relation": fact.relation,
        "tail": "1000",
        "fact": "town · population",
        "stored": "1990",
        "said": "1974",
        "low_text": "1972",
        "high_text": "1976",
        "residual": 4.04,
        "kind": "number",
        "reason": "far off",
    }
    components = ("value of qualifier 1", "tail", "head")
    rows = [
        dict.fromkeys(COLUMNS) | judged | {"rank": rank, "component": part} for rank, part in enumerate(components, 1)
    ]
    rows[2] |= {
        "kind": "entity",
        "stored": "Springfield",
        "said": "Ogdenville",
        "probability": 0.0,
        "said_probability": 0.5,
    }
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "suspicious.parquet")
    engine = FakeEngine()
    engine.state.ready = False
    served = site(engine, audit=tmp_path / "suspicious.parquet")
    page = text_of(served, "/doubtful")
    assert (
        "Without this fact the model expects 1974 as date, between 1972 and 1976 in 9 of 10 cases; the graph says "
        "1990. That is 4 times as far away as the interval reaches." in page
    )
    assert "the model expects 1974 as population, between" in page
    assert "gives Springfield hardly any chance as the head, and Ogdenville 50.0\u00a0%." in page
    own = text_of(served, f"/entity?id={quote(fact.head)}")
    assert "the model would have said 1974 as date" in own
