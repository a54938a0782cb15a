"""Who may ask: the Host header, the token and its file, and where a service may listen."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from hynt import Client
from hynt.errors import UsageError
from hynt.service.http.guards import read_token
from hynt.service.http.server import listening_socket
from hynt.service.settings import ServiceSettings
from tests.service.asking_http import wait_until

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize(
    "host, status",
    [
        ("localhost", 200),
        ("127.0.0.1:8000", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("[::1", 200),
        ("[evil]", 421),
        ("localhost@evil.example", 421),
    ],
)
def test_the_host_header_on_loopback(host, status, plain_site):
    assert plain_site.get("/v1/entities", Host=host).status == status


def test_another_name_may_be_allowed(site):
    page = site(allowed_hosts=("graph.example",))
    assert page.get("/v1/entities", Host="graph.example").status == 200
    assert page.get("/v1/entities", Host="localhost").status == 200
    assert page.get("/v1/entities", Host="other.example").json["type"] == "urn:hynt:problem:unknown-host"


def test_a_token_is_asked_of_all_but_the_probes(site):
    page = site(token=TOKEN)
    for path in ("/v1/entities", "/metrics", "/openapi.json", "/nothing", "/v1/similar?entity=p0"):
        found = page.get(path)
        assert (found.status, found.json["type"]) == (401, "urn:hynt:problem:token-wanted"), path
        assert found.json["detail"] == "a token is required."
        assert found.pointers == ["Authorization"]
        assert found.headers["www-authenticate"] == 'Basic realm="hynt", charset="UTF-8", Bearer realm="hynt"'
    assert page.get("/health").status == page.get("/ready").status == 200
    assert page.get("/v1/entities", Authorization=f"Bearer {TOKEN}").status == 200
    assert page.get("/v1/entities", Authorization=f"bearer {TOKEN}").status == 200
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    assert page.get("/v1/entities", Authorization=f"Basic {basic}").status == 200
    assert Client(page.url, TOKEN).entities("Person")
    for wrong in (f"Bearer {TOKEN}x", TOKEN, "Bearer", "Basic !!!", f"Digest {TOKEN}", "Basic " + "é".encode().hex()):
        assert page.get("/v1/entities", Authorization=wrong).status == 401, wrong


def test_style_and_scripts_open_no_other_door(site):
    page = site(token=TOKEN)
    assert page.get("/static/icon.svg").status == page.get("/style.css").status == 200
    for path in (
        "/static/../v1/entities",
        "/static/%2e%2e/v1/entities",
        "/static/..%2fv1/entities",
        "/static//v1",
        "/style.css/../v1/entities",
        "/static",
        "//static/icon.svg",
        "/STATIC/icon.svg",
    ):
        found = page.get(path)
        assert found.status in (401, 404), path
        assert b"Person" not in found.body


def test_the_log_holds_what_is_asked_only_when_told_to(site, caplog):
    caplog.set_level("INFO", logger="hynt.service")
    quiet, talking = site(), site(log_questions=True)
    quiet.predict(head="Secret", relation="b", tail="?")
    quiet.get("/v1/entities?query=Secret")
    wait_until(lambda: "GET /v1/entities 200" in caplog.text)
    assert "POST /v1/predict 200" in caplog.text
    assert "Secret" not in caplog.text
    talking.predict(head="Secret", relation="b", tail="?")
    wait_until(lambda: '"head": "Secret"' in caplog.text)  # the line is written once the answer is sent


def test_the_file_of_a_token(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert read_token(file) == TOKEN
    file.chmod(0o644)
    with pytest.raises(UsageError, match="other people on this machine may read the token") as refused:
        read_token(file)
    assert refused.value.advice == f"Run: chmod 600 {file}."
    file.chmod(0o600)
    for content in (b"", b"short\n", b"has a space in the middle\n", b"\xff" * 30):
        file.write_bytes(content)
        with pytest.raises(UsageError, match="no token of at least 16 plain characters"):
            read_token(file)
    with pytest.raises(UsageError, match="the token cannot be read: No such file or directory"):
        read_token(tmp_path / "none")


def test_no_open_door_without_a_token():
    for host in ("0.0.0.0", "::"):
        with pytest.raises(UsageError, match="can be reached from other machines") as refused:
            listening_socket(ServiceSettings(Path("run"), host, 0))
        assert refused.value.where == "--host"
    listening_socket(ServiceSettings(Path("run"), "0.0.0.0", 0, TOKEN)).close()
    listening_socket(ServiceSettings(Path("run"), "localhost", 0)).close()
    with pytest.raises(UsageError, match=r"cannot listen at nowhere\.invalid port 0"):
        listening_socket(ServiceSettings(Path("run"), "nowhere.invalid", 0))


def test_a_port_that_is_taken():
    with (
        listening_socket(ServiceSettings(Path("run"), port=0)) as first,
        pytest.raises(UsageError, match="Address already in use") as refused,
    ):
        listening_socket(ServiceSettings(Path("run"), port=first.getsockname()[1]))
    assert "Choose another --port" in refused.value.advice
