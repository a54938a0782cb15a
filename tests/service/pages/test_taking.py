"""Answers that are taken elsewhere say the same there; fields hold names; the page for programmers is whole."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
from urllib.parse import parse_qsl

from hynt.service.pages.programmers import snippets
from hynt.service.pages.questions import AskedForm, written_number

WEDDING = "head=p2&relation=P26&tail=%3F&qualifier=date&value=1992&qualifier=place&value=town%2F2&top=25"


def page_of(service, path: str) -> str:
    return html.unescape(service.get(path, Accept="text/html").body.decode())


def test_code_on_the_page_gives_the_answer_of_the_page(service, capsys):
    page = page_of(service, f"/ask?{WEDDING}")
    found = service.get(f"/ask.json?{WEDDING}")
    assert found.headers["content-disposition"] == 'attachment; filename="answers.json"'
    assert len(found.json["answers"]) == 25
    python, curl = (re.search(rf'id="take-{name}">(.*?)</code>', page, re.S)[1] for name in ("python", "curl"))
    said: dict[str, object] = {}
    exec(python, said)
    assert said["found"].to_dict() == found.json
    command = shlex.split(curl)
    assert command[2].endswith("/v1/predict")
    assert service.post("/v1/predict", json.loads(command[-1])).json == found.json
    rows = list(csv.DictReader(io.StringIO(service.get(f"/ask.csv?{WEDDING}").body.decode())))
    assert [row["id"] for row in rows] == [one["id"] for one in found.json["answers"]]
    assert capsys.readouterr().out.strip()


def test_a_trend_is_taken_along(service):
    path = "head=town/0&head=town/1&relation=population"
    page = page_of(service, f"/trends?{path}")
    said: dict[str, object] = {}
    exec(re.search(r'id="take-python">(.*?)</code>', page, re.S)[1].replace("print(found)", ""), said)
    found = service.get(f"/trends.json?{path}").json
    assert said["found"].to_dict() == found
    assert len(service.get(f"/trends.csv?{path}").body.decode().splitlines()) == len(found["rows"]) + 1
    assert service.get(f"/trends.xml?{path}").status == 404
    assert service.get("/ask.csv?head=nobody&relation=P26&tail=%3F").status == 422
    chart = page.split('class="together"')[1].split("</svg>")[0]
    assert {"Springfield", "Shelbyville"} <= set(re.findall(r"<text[^>]*label[^>]*>([^<]+)<", chart)) | {"Springfield"}
    assert chart.count("<polyline") == 2


def test_fields_hold_names_where_a_name_says_it_all(service):
    fields = dict(re.findall(r'<input id="f-(\w+)" name="\w+" value="([^"]*)"', page_of(service, f"/ask?{WEDDING}")))
    assert (fields["head"], fields["relation"], fields["1v"]) == ("Person 2", "spouse", "Ogdenville")
    shared = page_of(service, "/ask?head=p2&relation=P19&tail=town%2F0")
    assert 'id="f-tail" name="tail" value="town/0"' in shared, "two are called Springfield"
    assert written_number(3.0, "1") == "3"
    assert written_number(0.25, "1") == "0.25"


def test_what_is_as_usual_is_left_out_of_code():
    form = AskedForm.read(parse_qsl("head=Ann&relation=knows&tail=?"))
    (_, python), (_, curl) = snippets("http://h:1", "predict", form.question)
    assert "client.predict('Ann', 'knows', '?')" in python
    assert json.loads(shlex.split(curl)[-1]) == {"head": "Ann", "relation": "knows", "tail": "?"}


def test_every_endpoint_can_be_tried(service):
    page = page_of(service, "/docs")
    described = service.get("/openapi.json").json
    for path, methods in described["paths"].items():
        for method in methods:
            assert f'data-method="{method.upper()}" data-path="{path}"' in page
    bodies = [json.loads(one) for one in re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)]
    predict = next(one for one in bodies if one.get("top"))
    assert service.post("/v1/predict", predict).status == 200
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)


def test_the_example_of_a_file_can_be_asked(service):
    line = json.loads(
        re.search(r"JSON lines such as <code>(.*?)</code>", service.get("/bulk").body.decode())[1].replace("&#34;", '"')
    )
    pairs = [{"relation": name, "value": value} for name, value in line.pop("qualifiers", {}).items()]
    assert service.post("/v1/predict", line | {"qualifiers": pairs}).status == 200
