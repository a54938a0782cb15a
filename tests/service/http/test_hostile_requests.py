"""Bodies, headers and clients that mean no good: each is refused with a problem, and the service goes on."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from hynt.service.http.problems import HttpProblem
from hynt.service.http.schemas import depth, parse
from hynt.service.settings import BODY_BYTES
from tests.service.asking_http import raw_post, wait_until
from tests.service.inference.fake_engine import FakeEngine

JSON = "Content-Type: application/json"


def problem_in(answer: bytes) -> dict:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head, answer[:300]
    return json.loads(body)


@pytest.mark.parametrize(
    "body, status, words",
    [
        (b"", 422, "this is missing"),
        (b"{", 400, "the body is not JSON: Expecting property name enclosed in double quotes, at line 1, column 2."),
        (b"{}{}", 400, "Extra data"),
        (b"\xef\xbb\xbf{}", 400, "not JSON"),
        (b'{"head": "\xff"}', 400, "the body is not UTF-8: byte 11 is wrong."),
        (b'{"head": "\\ud800", "relation": "a", "tail": "?"}', 400, "half a character"),
        (b'{"head": "a\x00"}', 400, "not JSON"),
        (b'{"head": "a", "head": "b"}', 400, "names a field twice"),
        (b'{"tail": NaN}', 400, "NaN is not a JSON number."),
        (b'{"tail": -Infinity}', 400, "-Infinity is not a JSON number."),
        (b'{"head": "p0", "relation": "height", "tail": 1e999}', 422, ""),
        (b'{"tail": ' + b"9" * 5000 + b"}", 400, "cannot be read"),
        (b"[" * 13 + b"]" * 13, 422, "the body nests deeper than 12 levels."),
        (b"[" * 60_000, 422, "the body nests deeper than 12 levels."),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 422, "the body nests deeper than 12 levels."),
        (b'"' + b"[" * 100 + b'"', 422, "must be an object of fields and values"),
        (b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]>", 400, "not JSON"),
    ],
)
def test_bodies(body, status, words, service):
    answer = service.send("POST", "/v1/predict", body, {"Content-Type": "application/json"})
    assert answer.status == status, answer.body
    assert words in answer.json["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_numbers_too_large_for_a_float(service):
    body = (
        b'{"head": "p0", "relation": "height", "tail": "?", "qualifiers": [{"relation": "date", "value": 1' + b"0" * 400
    )
    answer = service.send("POST", "/v1/predict", body + b"}]}", {"Content-Type": "application/json"})
    assert (answer.status, answer.pointers) == (422, ["#/qualifiers/0/value"])


def test_depth_looks_past_quotes():
    assert depth('{"a": ["[[[[", "\\"[["]}') == 2
    assert depth("]]][") == 0
    assert parse(b'{"a": [1]}') == {"a": [1]}
    with pytest.raises(HttpProblem, match="nests deeper"):
        parse(b"[" * 20)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_long(announced, plain_site):
    page = plain_site
    if announced:  # refused before a byte of it is read
        answer = page.raw(raw_post(b"", JSON, f"Content-Length: {BODY_BYTES + 1}"))
    else:
        piece = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
        answer = page.raw(raw_post(piece * 9, JSON, "Transfer-Encoding: chunked"))
    assert answer.startswith(b"HTTP/1.1 413")
    assert problem_in(answer)["detail"] == "the body is larger than 65,536 bytes."


def test_a_body_of_the_longest_length(service):
    question = {"head": "p0", "relation": "born in", "tail": "?"}
    body = json.dumps(question).encode()
    answer = service.send("POST", "/v1/predict", body.ljust(BODY_BYTES), {"Content-Type": "application/json"})
    assert answer.status == 200
    answer = service.send("POST", "/v1/predict", body.ljust(BODY_BYTES + 1), {"Content-Type": "application/json"})
    assert answer.status == 413


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50, 400),  # TLS where none is spoken
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (raw_post(b"zz\r\n", JSON, "Transfer-Encoding: chunked"), 400),
        (raw_post(b"2\r\n{}\r\n0\r\n\r\n", JSON, "Transfer-Encoding: chunked", "Content-Length: 2"), 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 414),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: " + b"a" * 17_000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 20_000, 431),
        (b"GET http://elsewhere/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /%ff%00%2e HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_hardly_http(request_bytes, status, plain_site):
    page = plain_site
    try:
        answer = page.raw(request_bytes)
    except (ConnectionResetError, BrokenPipeError):  # it hung up before all was sent
        assert status == 431
    else:
        assert answer.split(b" ")[1] == str(status if status != 501 else 400).encode(), answer[:200]
        assert problem_in(answer)["status"] == int(answer.split(b" ")[1])
        assert b"nosniff" in answer
    assert page.get("/health").status == 200


def test_a_second_request_behind_the_first_is_answered_in_turn(plain_site):
    twice = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + (
        b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    answer = plain_site.raw(twice)
    assert answer.index(b'{"alive": true}') < answer.index(b"urn:hynt:problem:not-found")


def test_clients_that_send_too_slowly(site):
    page = site(head_within=0.3, body_within=0.3)
    began = time.monotonic()
    assert problem_in(page.raw(b""))["detail"] == "no whole request came within 0.3 s."
    assert problem_in(page.raw(b"GET /health HTT"))["status"] == 408
    answer = page.raw(raw_post(b"{", JSON, "Content-Length: 100"))
    assert problem_in(answer)["detail"] == "the body did not arrive within 0.3 s."
    assert time.monotonic() - began < 5


def test_a_slow_sender_between_two_requests(site):
    page = site(head_within=0.3)
    with socket.create_connection((page.host, page.port), timeout=5) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while b"alive" not in heard:
            heard += connection.recv(65536)
        connection.sendall(b"GET /heal")
        assert b"408" in connection.recv(65536)


def test_slow_senders_do_not_hold_up_others(site):
    page = site(head_within=2.0, body_within=2.0)
    slow = [socket.create_connection((page.host, page.port), timeout=5) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        began = time.monotonic()
        assert page.predict(head="a", relation="b", tail="?").status == 200
        assert time.monotonic() - began < 1.5
    finally:
        for connection in slow:
            connection.close()


def test_a_client_that_does_not_take_its_answer_is_let_go(site):
    engine = FakeEngine()
    engine.size = 20_000_000
    page = site(engine, read_within=0.5)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((page.host, page.port))
        body = json.dumps({"head": "a", "relation": "b", "tail": "?"}).encode()
        connection.sendall(raw_post(body, JSON, f"Content-Length: {len(body)}").replace(b"Connection: close\r\n", b""))
        wait_until(lambda: bool(page.service.server_state.connections))
        wait_until(lambda: not page.service.server_state.connections)


def test_a_client_that_hangs_up_takes_its_question_with_it(site):
    engine = FakeEngine(seconds=1.0)
    page = site(engine, window=0.0)
    queue = page.service.served.queue
    first = threading.Thread(target=page.predict, kwargs={"head": "first", "relation": "b", "tail": "?"})
    first.start()
    wait_until(lambda: len(queue) == 1)
    body = json.dumps({"head": "second", "relation": "b", "tail": "?"}).encode()
    with socket.create_connection((page.host, page.port)) as connection:
        connection.sendall(raw_post(body, JSON, f"Content-Length: {len(body)}"))
        wait_until(lambda: len(queue) == 2)
    first.join()
    wait_until(lambda: len(queue) == 0)
    assert [[job["head"] for job in batch] for batch in engine.batches] == [["first"]]


def test_too_many_connections(site):
    page = site(connections=3)
    held = [socket.create_connection((page.host, page.port), timeout=5) for _ in range(3)]
    try:
        wait_until(lambda: len(page.service.server_state.connections) == 3)
        answer = page.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert problem_in(answer)["detail"] == "too many connections are open."
    finally:
        for connection in held:
            connection.close()
    wait_until(lambda: not page.service.server_state.connections)
    assert page.get("/health").status == 200


def test_a_client_that_is_gone_before_the_last_word_is_no_bug():
    """Its reset would otherwise end in a traceback in the log, for whoever sends many of them."""
    from unittest.mock import Mock

    from hynt.service.http.server import LingeringTransport

    gone = Mock()
    gone.is_closing.return_value = False
    gone.write_eof.side_effect = OSError(107, "Transport endpoint is not connected")
    LingeringTransport(gone, lambda: True).close()
    gone.close.assert_called_once_with()
