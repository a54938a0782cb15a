"""Talking to a service as any client does, byte by byte where need be."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def pointers(self) -> list[str]:
        """Where a problem says the faults are."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        return [fault.get("pointer", fault.get("parameter", "")) for fault in self.json.get("errors", [])]


class Site:
    """A service at an address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, timeout=30
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, value: Any, **headers: str) -> Answer:
        return self.send("POST", path, json.dumps(value), {"Content-Type": "application/json", **headers})

    def predict(self, **question: Any) -> Answer:
        return self.post("/v1/predict", question)

    def raw(self, content: bytes, timeout: float = 10.0) -> bytes:
        """Everything that comes back until the service hangs up."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            connection.sendall(content)
            found = b""
            while piece := connection.recv(65536):
                found += piece
            return found


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Machines differ in speed: a test waits for what must come, not for a time that is often enough."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.01)


def raw_post(body: bytes, *headers: str, path: str = "/v1/predict") -> bytes:
    """A request in bytes, whose connection is closed after the answer."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
