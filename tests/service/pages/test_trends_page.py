"""The page of trends shows what the run answered: a chart that is described, and the values as tables."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def test_charts_and_tables_hold_the_answer(service):
    asked = {"heads": ["town/0", "town/1"], "relation": "population", "points": 80}
    answer = service.post("/v1/trends", asked).json
    page = service.get("/trends?head=town/0&head=town/1&relation=population", Accept="text/html")
    assert page.status == 200
    text = page.body.decode()
    charts = [ElementTree.fromstring(found) for found in re.findall(r"<svg [^>]*class=\"chart\".*?</svg>", text, re.S)]
    assert charts.pop(0).find(f"{SVG}title").text == "population, compared"
    assert len(charts) == len(answer["heads"])
    for chart, head in zip(charts, answer["heads"], strict=True):
        known = [row for row in answer["rows"] if row["head_id"] == head["id"] and row["kind"] == "known"]
        assert chart.find(f"{SVG}title").text == f"{head['name']}: {answer['relation_name']}"
        told = f"Known values: {head['trained_on']} trained on, {head['held_out']} held out."
        assert chart.find(f"{SVG}desc").text.endswith(told)
        marks = [one.get("class") for one in chart.iter() if one.get("class") in ("trained", "held")]
        assert len(marks) == len(known)
        assert (marks.count("trained"), marks.count("held")) == (head["trained_on"], head["held_out"])
        assert all(row["at_text"] in text for row in known)


def test_a_span_is_chosen_and_kept(service):
    path = "/trends?head=town/0&relation=population&start=1995&end=2030"
    text = service.get(path, Accept="text/html").body.decode()
    rows = re.findall(r'<th scope="row">(\d{4})', text.split('class="curve"')[1].split("</table>")[0])
    assert (rows[0], rows[-1]) == ("1995", "2030")
    assert 'name="start" value="1995"' in text
    assert 'name="end" value="2030"' in text
    backwards = service.get("/trends?head=town/0&relation=population&start=2030&end=1995", Accept="text/html")
    refused = backwards.body.decode()
    assert "Let it end after it starts" in refused
    assert 'aria-describedby="e-start"' in refused
    assert "--" not in re.sub(r"<!--.*?-->", "", refused.split("<main")[1])


def test_a_trend_is_offered_only_where_there_is_a_span(service):
    town = service.get("/entity?id=town/0", Accept="text/html").body.decode()
    assert "/trends?head=town%2F0&amp;relation=P1082" in town
    person = service.get("/entity?id=p0", Accept="text/html").body.decode()
    assert "/trends?" not in person.split("<main")[1]


def test_a_form_that_is_begun_says_what_it_lacks(service):
    for path, told in (
        ("/trends?head=town/0", "Still to fill in: relation."),
        ("/trends?relation=population", "Still to fill in: head."),
        ("/trends?start=1995", "Still to fill in: head, relation."),
    ):
        assert told in service.get(path, Accept="text/html").body.decode()
    assert "Still to fill in" not in service.get("/trends", Accept="text/html").body.decode()
