"""Refusals from outside of the application: of strangers, of what is too long, of bugs. Programs get a problem, people
a page that stands by itself and holds nothing of the graph, because whoever sees it may have no token.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Scope, Send

from hynt.service.http.problems import MEDIA_TYPE, Problem
from hynt.service.pages.rendering import TITLES, environment

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
    421: "Open it by the address that it printed when it started, or start it with --allowed-host and this name.",
    431: "Cookies of other services at the same address may be the cause.",
}


def wants_a_page(scope: Scope) -> bool:
    """Whether a person in a browser is asking; /v1 is for programs."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted and not is_for_programs(scope["path"])


def is_for_programs(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


async def tell(
    problem: Problem, scope: Scope, send: Send, *, close: bool = False, more: Sequence[tuple[bytes, bytes]] = ()
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


def _page(problem: Problem) -> bytes:
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
