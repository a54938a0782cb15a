"""Whatever the OpenAPI description allows, and much that it does not, is answered as described: no 5xx but 503."""

from __future__ import annotations

from collections import Counter

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

RIGHT, WRONG = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance, not_a_server_error]
REAL = {
    "head": ["p0", "Person 3", "town/1", "?"],
    "relation": ["born in", "P26", "height", "population", "?"],
    "tail": ["?", "?", "town/0", "Globex", 170, "170 cm"],
    "answer": ["town/0", "p1"],
    "over": ["date"],
    "heads": [["town/0"], ["town/1", "town/2"]],
    "qualifiers": [
        [],
        [{"relation": "date", "value": 1995}],
        [{"relation": "place", "value": "?"}],
        [{"relation": "date", "value": "1995-06"}, {"relation": "place", "value": "town/2"}],
    ],
}
"""What made-up requests hardly ever hit: names of the graph, to put in place of some of theirs."""


def explore(service, cases: int) -> Counter[int]:
    """Sends so many generated requests, right and wrong ones by turns, to all operations; counts their statuses."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    busy = [one for one in operations if one.query or one.path_parameters or one.body]
    assert {"POST /v1/predict", "POST /v1/trends", "POST /v1/explain"} <= {one.label for one in busy}
    statuses: Counter[int] = Counter()
    with requests.Session() as session:
        for operation in operations:
            # Where any text will do, no request is wrong.
            modes = [RIGHT, WRONG] if operation.query or operation.body else [RIGHT]
            count = -(-cases // (len(modes) * len(busy))) if operation in busy else 2
            for mode in modes:
                _explored(operation, mode, count, session, statuses)
    return statuses


def _explored(operation, mode, count, session, statuses) -> None:
    @given(operation.as_strategy(mode), st.data())
    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def asked(case, data):
        if mode is RIGHT and isinstance(case.body, dict):
            for question in case.body.get("questions", [case.body]):
                for field in question:
                    if field in REAL and data.draw(st.booleans()):
                        question[field] = data.draw(st.sampled_from(REAL[field]))
        try:
            response = case.call(session=session, timeout=30)
        except requests.exceptions.InvalidHeader:
            assume(False)
        statuses[response.status_code] += 1
        assert response.status_code < 500 or response.status_code == 503, response.text
        case.validate_response(response, checks=CHECKS)

    asked()


def test_three_hundred_requests(service):
    statuses = explore(service, 300)
    assert sum(statuses.values()) >= 300
    assert statuses[200] >= 30
    assert statuses[422] >= 50


@pytest.mark.slow
def test_five_thousand_requests(service):
    statuses = explore(service, 5_200)
    assert sum(statuses.values()) >= 5_000
    assert statuses[200] >= 300
    assert service.get("/ready").json["restarts"] == 0
