"""Failures as RFC 9457 problem details: what is wrong, with which field, and what to do about it."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from hynt.errors import HyntError, Meant

MEDIA_TYPE = "application/problem+json"

SLUGS = {
    400: "malformed-request",
    401: "token-wanted",
    403: "not-allowed",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-too-slow",
    409: "conflict",
    413: "body-too-large",
    414: "address-too-long",
    415: "json-wanted",
    421: "unknown-host",
    422: "invalid-question",
    429: "queue-full",
    431: "headers-too-large",
    500: "bug",
    503: "not-available",
}
"""The last part of each problem's `type`, by status."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request, and where: a JSON pointer into the body, or the name of a parameter."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    advice: str = ""
    namesakes: tuple[Meant, ...] = ()
    nearest: tuple[Meant, ...] = ()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Fault:
        names = {name: tuple(map(Meant.from_dict, told.get(name, ()))) for name in ("namesakes", "nearest")}
        return cls(**{**told, **names})

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    def under(self, prefix: str) -> Fault:
        """The same fault of a question that is itself part of a body."""
        return replace(self, pointer=f"#{prefix}{(self.pointer or '').removeprefix('#')}", parameter=None)


VERSION = "Hynt-Version"
"""The header that says which version of the graph an answer was made from."""


class HttpProblem(Exception):
    """A refusal with a status; raised anywhere between the served run and an endpoint."""

    def __init__(
        self, status: int, detail: str, faults: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.faults, self.headers = status, detail, tuple(faults), dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": f"urn:hynt:problem:{SLUGS.get(self.status, 'other')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return found | ({"errors": [fault.to_dict() for fault in self.faults]} if self.faults else {})

    def body(self) -> bytes:
        """UTF-8 JSON; what cannot be written so (a lone surrogate of an address) stays an escape."""
        return json.dumps(self.to_dict(), ensure_ascii=False).encode("utf-8", "backslashreplace")


def invalid(faults: Sequence[Fault]) -> HttpProblem:
    """422: the request was understood and cannot be answered."""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return HttpProblem(422, f"{faults[0].detail}{more}", tuple(faults))


def unavailable(detail: str, seconds: int = 1) -> HttpProblem:
    """503, with when to try again."""
    return HttpProblem(503, detail, headers={"Retry-After": str(max(1, seconds))})


_PLACES = (
    (re.compile(r"(head|heads|relation|tail|top|level|over|start|end|points|answer|entity)"), "/{0}"),
    (re.compile(r"(relation|value) of qualifier (\d+)"), "/qualifiers/{index}/{0}"),
    (re.compile(r"qualifier (\d+)"), "/qualifiers/{index}"),
    (re.compile(r"candidate (\d+)"), "/only/{index}"),
    (re.compile(r"candidates"), "/candidates"),
    (re.compile(r"fact (\d+)(?:, .*)?"), "/facts/{index}"),
)


def pointer_of(where: str) -> str | None:
    """From the place that the library names to a JSON pointer: "value of qualifier 2" is #/qualifiers/1/value."""
    for pattern, pointer in _PLACES:
        found = pattern.fullmatch(where)
        if found:
            index = int(found[found.lastindex or 0]) - 1 if "{index}" in pointer else 0
            return "#" + pointer.format(found[1] if found.lastindex else "", index=index)
    return None


def fault_of(error: HyntError) -> Fault:
    """What the library refused, as a fault of a question."""
    return Fault(error.what, pointer_of(error.where), None, error.advice, error.namesakes, error.nearest)


def code_place(error: BaseException) -> str:
    """What failed and where in the code; not what was asked, which the message of an error may hold."""
    frames = traceback.extract_tb(error.__traceback__)
    steps = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    return f"{type(error).__name__} at {steps}"
