"""How a service is configured when it starts, and the limits it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BODY_BYTES = 64 * 1024
"""The longest body of a request; a longer one is refused before it is read to the end."""

NESTING = 12
"""How deep a body may nest; a question needs six."""

QUALIFIERS = 64
TOP = 1_000
BATCH = 256
ONLY = 1_000
"""How many candidates a question may list."""

TEXT = 1_000
"""The longest name, number or id in a question, in characters."""

HEADS = 16
POINTS = 500
"""The most heads and points of a trend."""

PAGE = 200
"""The most facts, entities or relations on one page of a list."""

HEADER_BYTES = 16 * 1024
TARGET_BYTES = 8 * 1024
"""Of a request's path and query."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ServiceSettings:
    """How to serve one run. Times are in seconds."""

    run: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None  # asked of every request but /health and /ready
    allowed_hosts: tuple[str, ...] = ()  # names in the Host header, besides loopback's own; empty elsewhere: any
    audit: Path | None = None  # what `hynt audit` wrote about the run
    device: str = "cpu"
    batching: bool = True
    window: float = 0.002  # how long the first question of a batch waits for others
    together: int = 128  # questions scored at once; they fill tiles of 64 by how many qualifiers they have
    queue: int = 1_024  # questions waiting or being answered; one more is refused
    connections: int = 1_024  # open at once
    answer_within: float = 30.0
    head_within: float = 10.0  # for a request's first line and headers to arrive
    body_within: float = 10.0
    read_within: float = 30.0  # for a client to take its answer
    idle: float = 15.0  # between two requests of a connection
    grace: float = 10.0  # for what was accepted before a stop
    log_questions: bool = False
    accept_updates: bool = False  # whether POST and DELETE /v1/facts change the graph of the run
    version: int | None = None  # of that graph, as it was then; None: the newest one, and those that come

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.host in LOOPBACK or self.host.startswith("127.")
