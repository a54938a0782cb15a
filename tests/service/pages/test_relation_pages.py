"""Relation pages: what a relation holds, what stands beside it, and where a reader goes from there."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from urllib.parse import quote

from hynt.service.pages.overview import pattern_of
from tests.service.inference.fake_engine import FakeEngine


def text_of(site, path: str) -> str:
    found = site.get(path, Accept="text/html")
    assert found.status == 200, found.body
    return html.unescape(found.body.decode())


def test_all_relations_are_listed_and_filtered(plain_site):
    page = text_of(plain_site, "/relations")
    assert set(re.findall(r'href="/relation\?id=(\w+)"', page)) == {
        "P19",
        "P108",
        "P26",
        "P1082",
        "height",
        "date",
        "place",
    }
    assert 'aria-current="page">Relations' in page
    assert re.findall(r'href="/relation\?id=(\w+)"', text_of(plain_site, "/relations?query=popul")) == ["P1082"]
    assert "No relation has that in its name" in text_of(plain_site, "/relations?query=zzz")


def test_a_relation_of_numbers(plain_site):
    page = text_of(plain_site, "/relation?id=population")
    assert "<p>People who live there.</p>" in page
    assert 'date <span class="count">all of its facts' in page
    assert "people who live there" in text_of(plain_site, "/relations")
    assert "holds numbers · 80 facts of 4 heads" in page
    assert "From 1000 to 4950" in page
    assert "<svg" in page
    assert "/ask?head=town%2F0&relation=P1082&tail=%3F&qualifier=date&value=1990" in page
    assert "Nothing is measured of it yet" in page


def test_a_relation_of_entities(plain_site):
    page = text_of(plain_site, "/relation?id=P26")
    assert "holds entities · 60 facts of 60 heads" in page
    assert "Commonest tails" not in page, "each tail comes once"
    assert "Springfield" in text_of(plain_site, "/relation?id=P19").split("Commonest tails")[1]
    assert "date" in page.split("Usual qualifiers")[1]
    only_qualifier = text_of(plain_site, "/relation?id=place")
    assert "in 60 qualifiers" in only_qualifier
    assert "Ask for one" not in only_qualifier


def test_a_relation_that_only_qualifies_leads_on(plain_site):
    place = text_of(plain_site, "/relation?id=place")
    values = re.findall(r'href="/entity\?id=([^"]+)">(\w+)', place.split("Commonest values")[1].split("</section>")[0])
    assert sorted(values) == [("town%2F0", "Springfield"), ("town%2F1", "Shelbyville"), ("town%2F2", "Ogdenville")]
    examples = place.split('id="examples"')[1].split("</section>")[0]
    assert examples.count("/ask?head=p") == 10
    assert examples.count("&relation=P26&tail=%3F&qualifier=date&") == 10
    dates = text_of(plain_site, "/relation?id=date")
    assert "Its dates" in dates
    assert re.search(r"From 1990 to 2009; half of them come before \d{4}", dates)
    assert "Commonest values" not in dates


def test_what_facts_look_like_is_said_in_a_line(plain_site):
    assert "Its facts read <b>an entity · population · a number (date)</b>." in text_of(
        plain_site, "/relation?id=P1082"
    )
    assert "read <b>an entity · spouse · an entity (date, place)</b>" in text_of(plain_site, "/relation?id=P26")
    usual = [{"relation": {"name": "point in time"}, "share": 0.99}, {"relation": {"name": "sex"}, "share": 0.3}]
    found = {"types": {"head": ["country"], "tail": []}, "name": "life expectancy", "kind": "number", "is_date": False}
    told = pattern_of({**found, "usual": usual})
    assert told == "country · life expectancy · a number (point in time; sometimes sex)"
    place = text_of(plain_site, "/relation?id=place")
    assert 'href="/relation?id=P26"' in place.split("Facts that it qualifies")[1].split("</section>")[0]


def test_wrong_turns_to_a_relation(plain_site):
    assert plain_site.get("/relation", Accept="text/html").headers["location"] == "/relations"
    missing = plain_site.get("/relation?id=nonsense", Accept="text/html")
    assert missing.status == 404
    assert b"No relation is called that" in missing.body


def test_other_pages_lead_there(site):
    engine = FakeEngine()
    engine.state.ready = False  # an entity's page does without a model
    assert "/relation?id=P1082" in text_of(site(engine), "/entity?id=town%2F0")


def test_kept_figures_are_shown():
    from hynt.service.pages.overview import quality_of

    rows = [{"group": "P1", "count": 2, "mrr": 0.5, "hits@1": 0.5, "hits@3": 1.0, "hits@10": 1.0, "mean_rank": 2.0}]
    measured = {"breakdowns": {"link": {"relation": rows}, "number": {"relation": []}}}
    (found,) = quality_of(measured, "P1")
    assert found["told"] == (
        "2 times asked for an entity of its facts, the model's first answer was right once, and one of its first ten "
        "every time."
    )
    assert "0.500" in {value for _, value in found["metrics"]}
    assert quality_of(measured, "P2") == []
    rows = [{"relation": "P2", "unit": "m3/year", "display_unit": "L/year", "mae": 0.0008}]
    numbers = {"breakdowns": {"number": {"relation": [{"group": "P2", "count": 3, "rmse": 0.1}]}}}
    (found,) = quality_of({**numbers, "evaluation": {"number": {"per_relation": rows}}}, "P2")
    assert found["told"] == "3 times asked for its number, answers were off by 0.8 L/year on average."
    rows[0] |= {"median_error": 0.0002, "worse_than_median": 1 / 3}
    (found,) = quality_of({**numbers, "evaluation": {"number": {"per_relation": rows}}}, "P2")
    assert found["told"].endswith(
        "on average, and half of them by 0.2 L/year or less; 2 times they were nearer than the median of its numbers "
        "in training."
    )
    rows[0] |= {"unit": "date", "display_unit": "", "mae": 2.0, "median_error": 0.5}
    (found,) = quality_of({**numbers, "evaluation": {"number": {"per_relation": rows}}}, "P2")
    assert found["told"].startswith("3 times asked for its date, answers were off by 2 years on average")
    assert found["told"].endswith("nearer than the median of its dates in training.")
    (found,) = quality_of(numbers, "P2")
    assert found["told"].endswith("answers were off by 10.0% of its range."), "as files of 0.1.0 say it"
    assert quality_of(None, "P1") == []


def test_what_an_empty_field_may_hold(plain_site):
    def suggested(wanted: str, **given: str) -> list[str]:
        query = "&".join(f"{name}={quote(value)}" for name, value in {"wanted": wanted, **given}.items())
        found = plain_site.get(f"/suggested?{query}")
        assert found.status == 200, found.body
        return [one["id"] for one in found.json["items"]]

    assert set(suggested("relation", head="Person 1")) == {"P19", "P108", "height", "P26"}
    assert suggested("relation", head="Curaçao") == ["P1082"]
    assert set(suggested("qualifier", relation="spouse")) == {"date", "place"}
    assert suggested("qualifier", relation="population") == ["date"]
    assert suggested("relation", head="Person 1", numbers="true") == ["height"]
    assert suggested("qualifier", relation="spouse", numbers="true") == ["date"]
    assert set(suggested("value", relation="place")) == {"town/0", "town/1", "town/2"}
    assert set(suggested("tail", relation="employer")) == {"f0", "f1"}
    assert suggested("tail", relation="population") == []
    assert set(suggested("head", relation="population")) == {f"town/{one}" for one in range(4)}
    assert len(suggested("relation", head="nobody of that name")) == 5
    assert plain_site.get("/suggested?wanted=all").status == 422


def test_a_unit_is_named_as_people_read_it():
    from hynt.graph.sentences import unit_in_words
    from hynt.graph.units.conversion import with_display

    assert [unit_in_words(unit) for unit in ("year", "percent", "kg", "m2", "1/1000", "1", "")] == [
        "years",
        "%",
        "kg",
        "m²",
        "per 1,000",
        "",
        "",
    ]
    assert unit_in_words(with_display("kg", "lb")) == "lb"


def test_the_run_that_comes_with_hynt_has_figures_and_doubtful_facts(site, tmp_path):
    """Those of a run of one's own are made by commands, which name it; an audit by it may train nothing."""
    from hynt.runs.place import run_place

    packaged = site(FakeEngine(), run=run_place("world"))
    assert "times this split was read" in text_of(packaged, "/about")
    assert re.search(
        "facts were judged, each without itself; here are the [0-9,]+ most", text_of(packaged, "/doubtful")
    )
    folder = Path(shutil.copytree(run_place("world"), tmp_path / "my run"))
    shutil.rmtree(folder / "audit")
    (folder / "measurements-test.json").unlink()
    engine = FakeEngine()
    own = site(engine, run=folder)
    assert f"hynt report '{folder}' --out report.html" in text_of(own, "/about")
    assert "keeps the figures in the run" in text_of(own, "/about")
    assert "It trains a few models" in text_of(own, "/doubtful")
    engine.state.follows = True
    doubtful = text_of(own, "/doubtful")
    assert f"hynt serve '{folder}' --audit suspicious.parquet" in doubtful
    assert "It judges every fact without itself, and trains nothing:" in doubtful


def test_a_search_for_a_relation_finds_it(plain_site):
    page = text_of(plain_site, "/?query=popul")
    assert "No entity is called that." in page
    assert '<a href="/relation?id=P1082">population</a><p class="aside">people who live there</p>' in page
    assert "Relations called" not in text_of(plain_site, "/?query=Springfield")
