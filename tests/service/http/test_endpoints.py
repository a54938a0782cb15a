"""What each endpoint gives, and that it is what the description says."""

from __future__ import annotations

import json
import re

import pytest

import hynt
from hynt.service.http import answer_schemas, schemas
from tests.service.asking_http import wait_until

QUESTION = {"head": "p0", "relation": "born in", "tail": "?"}


def test_entities_are_found_by_what_was_typed(service):
    found = service.get("/v1/entities?query=spring&limit=5").json
    assert [(one["id"], one["match"]) for one in found["entities"]] == [("town/0", "prefix"), ("f0", "prefix")]
    assert found["entities"][0] | {"facts": 0} == {
        "id": "town/0",
        "name": "Springfield",
        "type": "",
        "facts": 0,
        "match": "prefix",
    }
    assert found["entities"][0]["facts"] == 15 + 20 + 20  # births, weddings, populations
    assert service.get("/v1/entities?query=curacao").json["entities"][0]["id"] == "town/3"
    assert service.get("/v1/entities?query=Shelbivile").json["entities"][0]["match"] == "similar"
    assert service.get("/v1/entities?query=p7").json["entities"][0] | {"facts": 0} == {
        "id": "p7",
        "name": "Person 7",
        "type": "",
        "facts": 0,
        "match": "exact",
    }
    assert service.get("/v1/entities?limit=3").json["more"] is True
    assert service.get("/v1/entities?query=zzzz").json == {"query": "zzzz", "entities": [], "more": False}


def test_facts_of_an_entity_come_by_page(service, graph):
    first = service.get("/v1/entities/town%2F0?limit=10").json
    assert first["counts"] == {"head": 20, "tail": 15, "value": 20}
    assert first["total"] == 55
    texts, offset = [], 0
    while page := service.get(f"/v1/entities/town%2F0?limit=20&offset={offset}").json["facts"]:
        texts += [fact["text"] for fact in page]
        offset += 20
    assert len(set(texts)) == len(texts) == 55
    tails = service.get("/v1/entities/town%2F0?position=tail&limit=200").json
    assert tails["total"] == len(tails["facts"]) == 15
    assert {fact["relation"]["name"] for fact in tails["facts"]} == {"born in"}
    number = service.get("/v1/entities/town%2F0?limit=1").json["facts"][0]
    assert number["tail"] == {"number": 1000.0, "literal": "1000", "unit": "", "text": "1000"}
    assert number["qualifiers"][0]["value"] == {"number": 1990.0, "literal": "1990", "unit": "date", "text": "1990"}


def test_an_entity_may_be_named_but_not_in_two_ways(service):
    assert service.get("/v1/entities/globex").json["entity"]["id"] == "f1"
    shared = service.get("/v1/entities/Springfield")
    assert shared.status == 404
    assert "2 entities are called 'Springfield'" in shared.json["detail"]
    assert [(one["id"], one["name"]) for one in shared.json["errors"][0]["namesakes"]] == [
        ("town/0", "Springfield"),
        ("f0", "Springfield"),
    ]
    unknown = service.get("/v1/entities/Globax")
    assert unknown.status == 404
    (fault,) = unknown.json["errors"]
    assert "The nearest are 'Globex'" in fault["advice"]
    assert fault["nearest"][0] == {"id": "f1", "name": "Globex", "type": "", "positions": []}


def test_relations_and_their_numbers(service):
    found = service.get("/v1/relations").json
    assert found["total"] == 7
    assert found["relations"][0] == {
        "id": "date",
        "name": "date",
        "kind": "number",
        "unit": "date",
        "display_unit": "",
        "is_date": True,
        "description": "",
        "facts": 0,
        "qualifiers": 140,
    }
    assert [one["id"] for one in service.get("/v1/relations?query=BORN").json["relations"]] == ["P19"]
    assert service.get("/v1/relations?kind=number&limit=1&offset=1").json["total"] == 3
    meant = service.get("/v1/relations?query=how+many+people+live+there").json["relations"]
    assert [one["id"] for one in meant] == ["P1082"], "most of the words are in its meaning"
    population = service.get("/v1/relations/population").json
    assert population["description"] == "people who live there"
    assert population["id"] == "P1082"
    assert (population["numbers"]["minimum"], population["numbers"]["maximum"]) == (1000, 4950)
    assert sum(population["numbers"]["counts"]) == population["numbers"]["count"] == 80
    assert len(population["numbers"]["edges"]) == len(population["numbers"]["counts"]) + 1
    assert service.get("/v1/relations/P19").json["numbers"] is None
    assert service.get("/v1/relations/born").status == 404


def test_operation(service):
    assert service.get("/health").json == {"alive": True}
    assert service.get("/ready").json == {"ready": True, "reason": "", "restarts": 0}


def test_metrics_are_prometheus_text(service):
    service.get("/health")
    found = service.get("/metrics")
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = found.body.decode()
    assert text.endswith("\n")
    line = re.compile(
        r"# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\})? (\d+(\.\d+)?(e[+-]\d+)?)"
    )
    assert [one for one in text.splitlines() if not line.fullmatch(one)] == []
    assert re.search(r'hynt_requests_total\{path="/health",status="200"\} \d+', text)
    assert "hynt_ready 1" in text
    buckets = [int(count) for count in re.findall(r'hynt_request_seconds_bucket\{le="[^"]+"\} (\d+)', text)]
    assert buckets == sorted(buckets)
    assert f"hynt_request_seconds_count {buckets[-1]}" in text


def test_the_description_has_examples_that_are_right(service):
    described = service.get("/openapi.json").json
    assert described["info"]["version"] == hynt.__version__
    assert set(described["paths"]) >= {
        "/v1/predict",
        "/v1/entities",
        "/v1/entities/{identity}",
        "/v1/relations",
        "/v1/trends",
        "/v1/explain",
        "/v1/similar",
        "/health",
        "/ready",
        "/metrics",
    }
    parts = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for operation in methods.values():
            for one in operation.get("parameters", ()):
                assert one["schema"].get("examples") or not one["required"], (path, one["name"])
            told = [answer["content"] for answer in operation["responses"].values() if "content" in answer]
            for content in [*told, operation.get("requestBody", {}).get("content", {})]:
                for kind, form in content.items():
                    names = re.findall(r"schemas/(\w+)", json.dumps(form["schema"]))
                    assert names or kind == "text/plain", path
                    for name in names:
                        _check_examples(parts[name]["examples"], getattr(schemas, name, None) or name)
    assert "HTTPValidationError" not in described["components"]["schemas"]


def _check_examples(examples, kind):
    """Each is a whole answer or question, with all that is described and nothing else."""
    assert examples, kind
    kind = getattr(answer_schemas, kind) if isinstance(kind, str) else kind
    for example in examples:
        assert _read_and_written(kind, example) == example


def _read_and_written(kind, answer):
    return kind.model_validate(answer).model_dump(mode="json", exclude_unset=True, exclude_defaults=True)


@pytest.mark.parametrize(
    "path, body, kind",
    [
        ("/v1/predict", QUESTION, answer_schemas.AnswersModel),
        ("/v1/predict", {"questions": [QUESTION]}, answer_schemas.ResultsModel),
        ("/v1/explain", QUESTION, answer_schemas.ExplanationModel),
        ("/v1/trends", {"heads": ["town/0"], "relation": "population"}, answer_schemas.TrendModel),
        ("/v1/similar?entity=p0", None, answer_schemas.SimilarModel),
        ("/v1/entities?query=p", None, answer_schemas.EntitiesModel),
        ("/v1/entities/p0", None, answer_schemas.EntityFactsModel),
        ("/v1/relations", None, answer_schemas.RelationsModel),
        ("/v1/relations/population", None, answer_schemas.RelationNumbersModel),
        ("/v1", None, answer_schemas.IndexModel),
        ("/v1/entities?limit=0", None, answer_schemas.ProblemModel),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_of_an_answer_is_described(path, body, kind, service):
    found = service.get(path) if body is None else service.post(path, body)
    assert _read_and_written(kind, found.json) == found.json


def test_every_answer_tells_browsers_what_is_allowed(service):
    for path in ("/health", "/nothing-here", "/v1/entities?limit=x"):
        headers = service.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_the_log_holds_nothing_that_was_asked(service):
    service.predict(head="Secret Person", relation="born in", tail="?")
    service.get("/v1/entities?query=SecretQuery")
    service.get("/v1/entities/SecretPath")
    assert "POST /v1/predict 422" in service.log
    wait_until(lambda: "GET /v1/entities/{identity} 404" in service.log)
    assert "Secret" not in service.log


def test_the_index_lists_what_is_described(service):
    found = service.get("/v1")
    assert found.body == service.get("/v1/").body
    listed = {(one["method"], one["path"]) for one in found.json["endpoints"]}
    described = {
        (method.upper(), path.replace("{identity}", "{id}"))
        for path, methods in service.get(found.json["description"]).json["paths"].items()
        for method in methods
    }
    assert listed == described
    assert all(one["summary"] for one in found.json["endpoints"])


@pytest.mark.parametrize("path", ["/health", "/v1/entities?query=p", "/", "/about", "/nothing-here", "/style.css"])
def test_the_head_of_an_answer_may_be_asked_for(path, plain_site):
    whole, head = plain_site.get(path), plain_site.send("HEAD", path)
    assert (head.status, head.body) == (whole.status, b"")
    assert head.headers["content-length"] == whole.headers["content-length"] == str(len(whole.body))
    assert plain_site.send("HEAD", "/v1/predict").status == 405
