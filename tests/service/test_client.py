"""`hynt.Client`: what it gives beside answers, and how it tells failures."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import hynt
from hynt import Client
from hynt.errors import UsageError
from hynt.service.client import ServiceProblem, _batches, _written
from tests.service.asking_http import wait_until
from tests.service.inference.fake_engine import FakeEngine


def test_it_needs_neither_the_extra_nor_torch():
    code = (
        "import sys, hynt; hynt.Client; "
        "sys.exit(any(name in sys.modules for name in ('fastapi', 'uvicorn', 'pydantic', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_it_gives(service):
    client = Client(f"{service.url}/")
    assert client.is_ready()
    table = client.predict(head="p0", relation="born in", tail="?", top=3).to_pandas()
    assert list(table.columns) == ["rank", "id", "name", "probability", "score", "known", "new"]
    assert len(table) == 3
    assert client.entities("spring")[0]["id"] == "town/0"
    assert client.entity("town/0", limit=1)["total"] == 55
    assert client.relations("born")[0]["name"] == "born in"
    assert client.relations("live people")[0]["description"] == "people who live there"
    assert len(client.similar("p0", top=2)) == 2
    assert client.trends("town/0", "population", points=3, qualifiers=[])["relation"] == "P1082"
    assert "influences" in client.explain(("p0", "born in", "?"))
    assert repr(client) == f"Client('{service.url}')"


def test_refusals_say_which_field(service):
    client = Client(service.url)
    with pytest.raises(ServiceProblem, match="the graph has no entity called 'nobody'") as refused:
        client.predict(("p0", "born in", "?"), candidates=["type", ["Globex", "nobody"]])
    assert (refused.value.status, refused.value.where) == (422, "#/only/1")
    with pytest.raises(ServiceProblem) as refused:
        client.predict_many([("p0", "born in", "?"), ("p0", "born", "?")])
    assert refused.value.where == "#/questions/1/relation"
    with pytest.raises(ServiceProblem) as refused:
        client.similar("nobody")
    assert refused.value.where == "entity"
    with pytest.raises(ServiceProblem, match="'Globax'"):
        client.entity("Globax")


@pytest.mark.parametrize("head, relation", [("Springfield", "spouse"), ("Persn 1", "spouse"), ("p0", "spose")])
def test_names_are_refused_as_a_loaded_run_refuses_them(service, predictor, head, relation):
    with pytest.raises(UsageError) as here:
        predictor.predict(head, relation, "?")
    with pytest.raises(ServiceProblem) as there:
        Client(service.url).predict(head, relation, "?")
    assert (there.value.what, there.value.namesakes) == (here.value.what, here.value.namesakes)
    assert there.value.namesakes or there.value.nearest[0].name in there.value.advice


def test_a_full_queue_says_when_to_come_back(site):
    page = site(FakeEngine(seconds=1.0), queue=1)
    client = Client(page.url)
    asking = threading.Thread(target=lambda: page.predict(head="a", relation="b", tail="?"), daemon=True)
    asking.start()
    wait_until(lambda: len(page.service.served.queue) == 1)
    with pytest.raises(ServiceProblem) as refused:
        client.predict(("c", "d", "?"))
    assert (refused.value.status, refused.value.retry_after) == (429, 1)


def test_a_token_is_sent(site):
    page = site(token="correct-horse-battery")
    with pytest.raises(ServiceProblem, match="a token is required") as refused:
        Client(page.url).entities("p")
    assert refused.value.status == 401
    assert Client(page.url, token="correct-horse-battery").entities("Person", limit=1)


def test_nobody_there():
    client = Client("http://127.0.0.1:9", timeout=1)
    assert not client.is_ready()
    with pytest.raises(ServiceProblem, match="the service cannot be reached") as refused:
        client.entities("x")
    assert (refused.value.status, refused.value.where) == (0, "http://127.0.0.1:9")
    assert refused.value.advice == "Is `hynt serve` running there?"


@pytest.mark.parametrize("url", ["localhost:8000", "file:///etc/passwd", "ftp://host/", "http://"])
def test_addresses_that_are_none(url):
    with pytest.raises(UsageError, match="is not an address of a service"):
        Client(url)


def test_what_cannot_be_sent():
    client = Client("http://127.0.0.1:9")
    with pytest.raises(UsageError, match="the question cannot be sent"):
        client.predict(head="a", relation="b", tail=float("nan"))


def test_values_are_written_as_a_service_reads_them():
    assert _written(hynt.number(80, "kg", "80")) == "80 kg"
    assert _written(hynt.number(1952.19, "date", "1952-03-11")) == "1952-03-11"
    assert _written(datetime.date(1995, 6, 30)) == "1995-06-30"
    assert _written(3) == 3


def test_many_questions_go_in_requests_that_are_short_enough():
    small, large = {"head": "a"}, {"head": "a" * 30_000}
    assert [len(batch) for batch in _batches([small] * 600)] == [256, 256, 88]
    assert [len(batch) for batch in _batches([large] * 5)] == [1, 1, 1, 1, 1]
    assert list(_batches([])) == []


@pytest.mark.parametrize(
    "status, told", [(302, "the service answered 302 Found"), (200, "whatever answers here is not a service of hynt")]
)
def test_it_does_not_follow_and_is_not_fooled(status, told):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://evil.example/")
            self.end_headers()
            self.wfile.write(b"<p>Welcome")

        def log_message(self, *given):
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ServiceProblem, match=told):
            Client(f"http://127.0.0.1:{server.server_port}", token="secret-token-here").entities("x")
