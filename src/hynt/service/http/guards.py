"""Who may ask, and the headers that browsers get: the Host header, the token, the headers of every answer."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hynt.errors import UsageError
from hynt.service.http.problems import MEDIA_TYPE, Fault, HttpProblem
from hynt.service.pages.rendering import TITLES, environment
from hynt.service.settings import LOOPBACK, ServiceSettings

OPEN = ("/health", "/ready")
"""What needs no token: health checks have none to show."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)

SHORTEST_TOKEN = 16


class Guards:
    """ASGI middleware that checks the host and the token of every request."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings
        self._hosts = {*LOOPBACK, settings.host, *settings.allowed_hosts}
        self._any_host = not settings.is_loopback and not settings.allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                listed = list(message.get("headers", ()))
                present = {name for name, _ in listed}
                extra = [pair for pair in HEADERS if pair[0] not in present]
                if b"cache-control" not in present:
                    extra.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*listed, *extra]}
            await send(message)

        try:
            if not _is_public(scope["path"]):
                self._check_host(headers.get(b"host", b""))
            if self.settings.token is not None and scope["path"] not in OPEN and not _is_public(scope["path"]):
                self._check_token(headers.get(b"authorization", b""), self.settings.token)
        except HttpProblem as problem:
            await send_problem(problem, scope, send_guarded, close=True)
            return
        await self.app(scope, receive, send_guarded)

    def _check_host(self, header: bytes) -> None:
        """A page elsewhere can make a browser call a name that leads to this machine (DNS rebinding); its Host header
        gives that name away.
        """
        if self._any_host or _host(header.decode("latin-1")) in self._hosts:
            return
        detail = "the Host header names no host of this service."
        advice = "Where the name is yours, whoever runs the service can let it answer to that name too."
        raise HttpProblem(421, detail, [Fault(detail, parameter="Host", advice=advice)])

    def _check_token(self, header: bytes, token: str) -> None:
        """A bearer token; or the same as the password of Basic, which is how browsers can send one."""
        kind, _, given = header.partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                given = b""
        elif kind.lower() != b"bearer":
            given = b""
        if not hmac.compare_digest(given.strip(), token.encode()):
            detail = "the token is wrong." if header else "a token is required."
            fault = Fault(detail, parameter="Authorization", advice="Send it as `Authorization: Bearer TOKEN`.")
            raise HttpProblem(
                401,
                detail,
                [fault],
                # Basic first: Chromium asks a person for the password only then.
                headers={"WWW-Authenticate": 'Basic realm="hynt", charset="UTF-8", Bearer realm="hynt"'},
            )


def _is_public(path: str) -> bool:
    """Style and scripts, the same for every service: the page that refuses a stranger needs them too."""
    return path == "/style.css" or path.startswith("/static/")


def _host(header: str) -> str:
    """Without the port: `localhost:8000` and `[::1]:8000` are localhost and ::1."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def read_token(path: Path) -> str:
    """The token in a file that only its owner may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(4096)
    except OSError as problem:
        raise UsageError(
            f"the token cannot be read: {problem.strerror}.",
            where=str(path),
            advice="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))' > FILE; chmod 600 FILE.",
        ) from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise UsageError(
            "other people on this machine may read the token.", where=str(path), advice=f"Run: chmod 600 {path}."
        )
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise UsageError(
            f"the file holds no token of at least {SHORTEST_TOKEN} plain characters.",
            where=str(path),
            advice="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))' > FILE; chmod 600 FILE.",
        )
    return token


# Refusals from outside of the application: of strangers, of what is too long, of bugs. Programs get a problem, people
# a page that stands by itself and holds nothing of the graph, because whoever sees it may have no token.

_TITLES = TITLES | {
    401: "This service asks for a token",
    408: "That took too long",
    414: "This address is too long",
    421: "This service does not go by that name",
    431: "Your browser sent too much",
}

_ADVICE = {
    401: "Your browser asks for a name and a password. The name does not matter. The password is the token, which "
    "whoever runs this service has.",
    414: "Leave out a qualifier or two.",
    421: "Open it by the address that it printed when it started, or have this name allowed by whoever runs it.",
    431: "Cookies of other services at the same address may be the cause.",
}


def wants_a_page(scope: Scope) -> bool:
    """Whether a person in a browser is asking; /v1 is for programs."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted and not is_for_programs(scope["path"])


def is_for_programs(path: str) -> bool:
    return path in ("/v1", "/mcp") or path.startswith("/v1/")


async def send_problem(
    problem: HttpProblem, scope: Scope, send: Send, *, close: bool = False, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Sends a problem as the answer; with `close` the connection ends, because the rest of the body is not wanted."""
    body, kind = problem.body(), MEDIA_TYPE
    if wants_a_page(scope):
        body, kind = _page(problem), "text/html; charset=utf-8"
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in problem.headers.items()]
    headers += more
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _page(problem: HttpProblem) -> bytes:
    content = (
        environment()
        .get_template("refused.html")
        .render(
            title=_TITLES.get(problem.status, "This did not work"),
            detail=problem.detail,
            advice=_ADVICE.get(problem.status, ""),
            status=problem.status,
        )
    )
    return content.encode()
