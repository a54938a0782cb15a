"""A service that is told to stop: whoever was let in is answered or refused in words, and nobody is let in too late."""

from __future__ import annotations

import errno
import http.client
import json
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hynt.service.http import server
from hynt.service.http.server import LingeringTransport
from tests.service.asking_http import raw_post, wait_until
from tests.service.conftest import in_thread, serving
from tests.service.inference.fake_engine import FakeEngine

QUESTION = {"head": "p0", "relation": "born in", "tail": "?", "top": 1000}
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def heard(connection: socket.socket) -> bytes:
    """Everything that comes until the service hangs up."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


def press(site, found: list[object], pause: float | None) -> None:
    """Asks until nobody listens: on a connection each, or with `pause` on one that is kept, after so long at most."""
    while True:
        connection = http.client.HTTPConnection(site.host, site.port, timeout=30)
        try:
            connection.connect()
            while True:
                connection.request("POST", "/v1/predict", json.dumps(QUESTION), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                found.append(answer.status)
                if pause is None or answer.will_close:
                    break
                time.sleep(random.random() * pause)
        except ConnectionRefusedError:
            return  # nobody listens any more: that was never accepted
        except OSError as problem:
            found.append(f"{type(problem).__name__} {'at once' if pause is None else 'kept'}")
        finally:
            connection.close()


def pressed_until_stopped(site, stop, seconds: float) -> Counter[object]:
    """What everybody heard who asked before, while and after the service was told to stop."""
    found: list[object] = []
    pauses = [None] * 16 + [0.4] * 8 + [0.02] * 8
    pressing = [threading.Thread(target=press, args=(site, found, pause)) for pause in pauses]
    for thread in pressing:
        thread.start()
    time.sleep(seconds)
    stop()
    for thread in pressing:
        thread.join(60)
        assert not thread.is_alive()
    return Counter(found)


def test_sigterm_under_load_answers_or_refuses_everyone(run, tmp_path):
    with serving(run, tmp_path / "log") as service:

        def stop():
            began = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - began < 15

        counts = pressed_until_stopped(service, stop, 1.0)
        assert set(counts) <= {200, 429, 503}, counts
        assert counts[200] > 16
        assert "stopped" in service.log
        assert "Traceback" not in service.log


@pytest.mark.slow
def test_a_hundred_stops_leave_nobody_without_a_word(graph):
    counts: Counter[object] = Counter()
    for number in range(100):
        with in_thread(graph, FakeEngine(0.01), grace=10.0) as site:
            counts += pressed_until_stopped(
                site, lambda site=site: site.service.handle_exit(signal.SIGTERM, None), 0.2 + 0.01 * (number % 10)
            )
    assert set(counts) <= {200, 503}, counts
    assert counts[200] > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("drain", ["plain", "without lingering"])
def test_a_simpler_stop_would_cut_somebody_off(drain, graph, monkeypatch):
    """Why there is more to a stop than to take no connection any more, to answer, and to refuse the rest."""
    if drain == "plain":
        monkeypatch.setattr(server, "_LAST_ARRIVALS", 0.0)
        monkeypatch.setattr(server, "turn_newcomers_away", lambda listener: False)
        monkeypatch.setattr(server, "waiting_connections", lambda listener: [])
    else:
        monkeypatch.setattr(LingeringTransport, "close", lambda self: self._transport.close())
    counts: Counter[object] = Counter()
    for number in range(100):
        with in_thread(graph, FakeEngine(0.01), grace=10.0) as site:
            stop = partial(site.service.handle_exit, signal.SIGTERM, None)
            counts += pressed_until_stopped(site, stop, 0.2 + 0.01 * (number % 10))
        if not set(counts) <= {200, 503}:
            return
    raise AssertionError(f"nobody was cut off in a hundred stops, so the simpler way will do: {counts}")


def test_nobody_gets_in_between_the_last_look_and_the_close(site, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("only Linux can turn newcomers away before it closes")
    page = site()
    late = socket.socket()
    look = server.waiting_connections

    def look_and_wait(listener):
        found = look(listener)
        late.setblocking(False)
        late.connect_ex((page.host, page.port))
        time.sleep(0.1)
        return found

    monkeypatch.setattr(server, "waiting_connections", look_and_wait)
    page.service.handle_exit(signal.SIGTERM, None)
    told: list[int] = []
    with late:
        wait_until(lambda: told.append(late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) or told[-1] != 0)
    assert told[-1] == errno.ECONNREFUSED  # a reset would mean that it was let in, and then cut off


def test_those_who_wait_to_be_accepted_get_a_word(site):
    page = site()
    loop = page.service.servers[0].get_loop()
    loop.call_soon_threadsafe(time.sleep, 0.6)  # so that nobody is accepted for a while
    time.sleep(0.1)
    with ThreadPoolExecutor(20) as clients:
        waiting = [clients.submit(page.predict, **QUESTION) for _ in range(20)]
        time.sleep(0.2)
        page.service.handle_exit(signal.SIGTERM, None)
        answers = [done.result() for done in waiting]
    assert {answer.status for answer in answers} <= {200, 503}  # 503 only where the machine is very busy
    assert {answer.headers["connection"] for answer in answers} == {"close"}


@pytest.mark.parametrize("kept", [False, True], ids=["new", "kept"])
def test_whoever_has_asked_nothing_hears_that_it_is_over(kept, site):
    page = site()
    with socket.create_connection((page.host, page.port), timeout=5) as connection:
        if kept:
            connection.sendall(HEALTH)
            answer = b""
            while b"alive" not in answer:
                answer += connection.recv(65536)
        page.service.handle_exit(signal.SIGTERM, None)
        connection.recv(1, socket.MSG_PEEK)  # the word is there
        connection.sendall(HEALTH)  # and crosses what is asked now
        head, _, body = heard(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"connection: close" in head
    assert b"retry-after: 2" in head.lower()
    assert json.loads(body)["detail"] == "the service is stopping."


def test_sigterm_does_not_wait_for_ever(site):
    page = site(FakeEngine(seconds=30), grace=1.5)
    asked: list = []
    asking = threading.Thread(target=lambda: asked.append(page.predict(**QUESTION)))
    asking.start()
    wait_until(lambda: len(page.service.served.queue) == 1)
    with socket.create_connection((page.host, page.port), timeout=5) as half:
        half.sendall(raw_post(b"{", "Content-Type: application/json", "Content-Length: 100"))
        began = time.monotonic()
        page.service.handle_exit(signal.SIGTERM, None)
        told = heard(half)
    asking.join(10)
    assert time.monotonic() - began < 5
    (answer,) = asked
    assert (answer.status, answer.json["detail"]) == (503, "the service is stopping.")
    assert told.startswith(b"HTTP/1.1 503")
    assert b"the service is stopping." in told


def test_requests_on_a_kept_connection_are_told_to_go_elsewhere(site):
    page = site(FakeEngine(seconds=0.3))
    with socket.create_connection((page.host, page.port), timeout=5) as connection:
        connection.sendall(HEALTH)
        answer = b""
        while b"alive" not in answer:
            answer += connection.recv(65536)
        assert b"connection: close" not in answer
        page.service.served.draining = True
        connection.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = heard(connection)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"connection: close" in answer
    assert b"the service is stopping" in answer


def test_an_answer_reaches_a_client_that_has_sent_more_already(site):
    page = site(FakeEngine(seconds=0.5))
    body = json.dumps(QUESTION).encode()
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    asked = head.encode() + b"\r\n\r\n" + body
    with socket.create_connection((page.host, page.port), timeout=5) as connection:
        connection.sendall(asked * 3)
        wait_until(lambda: len(page.service.served.queue) == 1)
        page.service.handle_exit(signal.SIGTERM, None)
        answer = heard(connection)  # no reset
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in answer
