"""Memory stays where it is, however much is asked."""

from __future__ import annotations

import http.client
import json
import random
from pathlib import Path

import pytest

from tests.service.conftest import serving
from tests.service.test_under_load import child_of

LARGEST_GROWTH = 0.05


def resident(pid: int) -> int:
    """Bytes that a process holds in memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    raise AssertionError(line)


def mixed(draw: random.Random) -> tuple[str, str, bytes | None]:
    """A request as they come: mostly questions, also lists, refusals and nonsense."""
    person, town = f"p{draw.randrange(60)}", f"town/{draw.randrange(4)}"
    pairs = [{"relation": "date", "value": draw.uniform(1980, 2020)}, {"relation": "place", "value": town}]
    choices = [
        ("POST", "/v1/predict", {"head": person, "relation": "born in", "tail": "?", "top": draw.randint(1, 60)}),
        ("POST", "/v1/predict", {"head": person, "relation": "spouse", "tail": "?", "qualifiers": pairs}),
        ("POST", "/v1/predict", {"head": person, "relation": "height", "tail": "?"}),
        ("POST", "/v1/predict", {"questions": [{"head": person, "relation": "?", "tail": town}] * draw.randint(1, 40)}),
        ("POST", "/v1/predict", {"head": f"nobody {draw.random()}", "relation": "born in", "tail": "?"}),
        ("POST", "/v1/predict", {"head": "x" * draw.randint(1, 60_000)}),
        ("POST", "/v1/trends", {"heads": [town], "relation": "population", "points": draw.randint(2, 40)}),
        ("POST", "/v1/explain", {"head": person, "relation": "spouse", "tail": "?", "qualifiers": pairs}),
        ("GET", f"/v1/entities?query=person+{draw.randint(0, 99)}", None),
        ("GET", f"/v1/entities/{person}", None),
        ("GET", f"/v1/similar?entity={person}", None),
        ("GET", f"/made-up/{draw.random()}", None),
        ("GET", "/metrics", None),
        ("GET", "/v1/relations", None),
    ]
    method, path, body = draw.choice(choices)
    return method, path, None if body is None else json.dumps(body).encode()


def ask(service, count: int, draw: random.Random) -> None:
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    for _ in range(count):
        method, path, body = mixed(draw)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        assert response.status in (200, 404, 422), (response.status, path)
    connection.close()


def growth_of(run, log, warm_up: int, count: int) -> dict[str, float]:
    draw = random.Random(11)
    with serving(run, log, "--quiet") as service:
        processes = {"http": service.process.pid, "inference": child_of(service.process.pid)}
        ask(service, warm_up, draw)
        before = {name: resident(pid) for name, pid in processes.items()}
        ask(service, count, draw)
        return {name: resident(pid) / before[name] - 1 for name, pid in processes.items()}


@pytest.mark.slow
def test_five_hundred_mixed_requests(run, tmp_path):
    growth = growth_of(run, tmp_path / "log", 300, 500)
    assert max(growth.values()) < LARGEST_GROWTH, growth


@pytest.mark.slow
def test_ten_thousand_mixed_requests(run, tmp_path):
    growth = growth_of(run, tmp_path / "log", 1_000, 10_000)
    assert max(growth.values()) < LARGEST_GROWTH, growth
