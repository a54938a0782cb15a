"""Every refusal is an RFC 9457 problem that names the field at fault."""

from __future__ import annotations

import pytest

from hynt.service.http.problems import pointer_of

QUESTION = {"head": "p0", "relation": "born in", "tail": "?"}
WRONG = [
    ({}, ["#/head", "#/relation", "#/tail"]),
    (QUESTION | {"head": 3}, ["#/head"]),
    (QUESTION | {"head": ""}, ["#/head"]),
    (QUESTION | {"head": "x" * 1001}, ["#/head"]),
    (QUESTION | {"head": "Person 999"}, ["#/head"]),
    (QUESTION | {"relation": "born on"}, ["#/relation"]),
    (QUESTION | {"tail": "Springfield", "head": "?", "relation": "P999"}, ["#/relation"]),
    (QUESTION | {"tail": ["?"]}, ["#/tail"]),
    (QUESTION | {"tail": True}, ["#/tail"]),
    (QUESTION | {"tail": 1e301}, ["#/tail"]),
    (QUESTION | {"tail": "nobody", "head": "?"}, ["#/tail"]),
    (QUESTION | {"top": 0}, ["#/top"]),
    (QUESTION | {"top": 1001}, ["#/top"]),
    (QUESTION | {"top": "3"}, ["#/top"]),
    (QUESTION | {"level": 0.7}, ["#/level"]),
    (QUESTION | {"candidates": ["kind"]}, ["#/candidates/0"]),
    (QUESTION | {"only": ["Globex", "nobody"]}, ["#/only/1"]),
    (QUESTION | {"extra": 1}, ["#/extra"]),
    (QUESTION | {"a/b~c": 1}, ["#/a~1b~0c"]),
    (QUESTION | {"qualifiers": [{"relation": "date", "value": 1990}] * 65}, ["#/qualifiers"]),
    (QUESTION | {"qualifiers": [{"relation": "date"}]}, ["#/qualifiers/0/value"]),
    (QUESTION | {"qualifiers": [{"relation": "when", "value": 1}]}, ["#/qualifiers/0/relation"]),
    (
        QUESTION | {"qualifiers": [{"relation": "date", "value": 1990}, {"relation": "date", "value": "soon"}]},
        ["#/qualifiers/1/value"],
    ),
    (QUESTION | {"tail": "town/0"}, [""]),  # no blank: the fault is the whole question
    ([], ["#"]),
    ("?", ["#"]),
    (None, ["#"]),
    ({"questions": []}, ["#/questions"]),
    ({"questions": [QUESTION] * 257}, ["#/questions"]),
    ({"questions": [QUESTION, QUESTION | {"top": 0}]}, ["#/questions/1/top"]),
    (
        {"questions": [QUESTION | {"head": "nobody"}, QUESTION, QUESTION | {"relation": "?"}]},
        ["#/questions/0/head", "#/questions/2"],
    ),
    ({"questions": [QUESTION], "top": 3}, ["#/top"]),
]


@pytest.mark.parametrize("body, pointers", WRONG, ids=lambda value: str(value)[:50])
def test_a_wrong_question(body, pointers, service):
    found = service.post("/v1/predict", body)
    assert found.status == 422
    assert found.pointers == pointers
    problem = found.json
    assert problem["type"] == "urn:hynt:problem:invalid-question"
    assert (problem["title"], problem["status"]) == ("Unprocessable Entity", 422)
    assert problem["detail"]


def test_what_the_library_advises_is_passed_on(service):
    found = service.predict(head="Persn 7", relation="born in", tail="?").json
    assert found["detail"] == "the graph has no entity called 'Persn 7'."
    assert found["errors"][0]["advice"].startswith("Give an entity's id or name. The nearest are 'Person 7'")


@pytest.mark.parametrize(
    "path, parameter",
    [
        ("/v1/entities?limit=0", "limit"),
        ("/v1/entities?limit=201", "limit"),
        ("/v1/entities?query=" + "x" * 1001, "query"),
        ("/v1/entities/p0?offset=-1", "offset"),
        ("/v1/entities/p0?position=front", "position"),
        ("/v1/relations?kind=date", "kind"),
        ("/v1/similar", "entity"),
        ("/v1/similar?entity=p0&top=1001", "top"),
        ("/v1/similar?entity=nobody", "entity"),
    ],
)
def test_a_wrong_parameter(path, parameter, service):
    found = service.get(path)
    assert (found.status, found.pointers) == (422, [parameter])


@pytest.mark.parametrize(
    "body, pointers",
    [
        ({"heads": [], "relation": "population"}, ["#/heads"]),
        ({"heads": ["town/0"] * 17, "relation": "population"}, ["#/heads"]),
        ({"heads": ["town/0", "town/0"], "relation": "population"}, ["#/heads"]),
        ({"heads": ["nobody"], "relation": "population"}, ["#/heads"]),
        ({"heads": ["town/0"], "relation": "born in"}, ["#/relation"]),
        ({"heads": ["town/0"], "relation": "population", "points": 501}, ["#/points"]),
        ({"heads": ["town/0"], "relation": "population", "over": "place"}, ["#/over"]),
        ({"heads": ["town/0"], "relation": "population", "start": 2000, "end": 1990}, ["#/start"]),
        (
            {"heads": ["town/0"], "relation": "population", "qualifiers": [{"relation": "place", "value": "x"}]},
            ["#/qualifiers/0/value"],
        ),
    ],
)
def test_a_wrong_trend(body, pointers, service):
    found = service.post("/v1/trends", body)
    assert (found.status, found.pointers) == (422, pointers)


def test_an_explanation_takes_no_number_of_answers(service):
    found = service.post("/v1/explain", QUESTION | {"top": 3})
    assert (found.status, found.pointers) == (422, ["#/top"])  # it has the first five: nothing is taken and ignored


def test_an_answer_that_cannot_be_explained(service):
    found = service.post("/v1/explain", QUESTION | {"answer": "nobody"})
    assert (found.status, found.pointers) == (422, ["#/answer"]), service.log[-600:]


@pytest.mark.parametrize(
    "method, path, status, slug",
    [
        ("GET", "/nothing-here", 404, "not-found"),
        ("GET", "/v1/predict", 405, "method-not-allowed"),
        ("DELETE", "/health", 405, "method-not-allowed"),
        ("GET", "/v1/entities/", 404, "not-found"),
        ("GET", "/v1/../../etc/passwd", 404, "not-found"),
        ("GET", "/static/%2e%2e/settings.py", 404, "not-found"),
    ],
)
def test_wrong_addresses(method, path, status, slug, service):
    found = service.send(method, path)
    assert (found.status, found.json["type"]) == (status, f"urn:hynt:problem:{slug}")


def test_a_body_that_is_not_said_to_be_json(service):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", ""):
        found = service.send("POST", "/v1/predict", "{}", {"Content-Type": kind})
        assert (found.status, found.json["type"]) == (415, "urn:hynt:problem:json-wanted")


def test_pointers():
    assert pointer_of("value of qualifier 2") == "#/qualifiers/1/value"
    assert pointer_of("candidate 12") == "#/only/11"
    assert pointer_of("somewhere") is None
