"""The ASGI application: endpoints, pages, static files, and around them what every request passes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hynt import __version__
from hynt.service.http import answer_schemas, endpoints
from hynt.service.http.guards import HEADERS, Guards, is_for_programs, send_problem, wants_a_page
from hynt.service.http.problems import MEDIA_TYPE, Fault, HttpProblem, code_place, invalid
from hynt.service.http.schemas import RefusedBody
from hynt.service.pages import routes as pages
from hynt.service.pages.rendering import problem_page
from hynt.service.served_run import ServedRun
from hynt.service.settings import BODY_BYTES, HEADER_BYTES, TARGET_BYTES, ServiceSettings

STATIC = Path(__file__).parents[1] / "pages" / "static"
_ABOUT = """Ask a trained run for the missing component of a fact.

Every failure is an RFC 9457 problem; `errors` names the field at fault by a JSON pointer or a parameter."""


def create_application(served: ServedRun, settings: ServiceSettings) -> FastAPI:
    """The whole service, which starts and stops the run. Agents are served where `mcp` is installed."""
    agents = None
    if importlib.util.find_spec("mcp") is not None:
        from mcp.server.transport_security import TransportSecuritySettings

        from hynt.service.agents import agent_server

        agents = agent_server(served, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with agents.session_manager.run() if agents else contextlib.nullcontext():
            await served.start()
            try:
                yield
            finally:
                await served.stop()

    application = FastAPI(
        title="hynt",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    application.state.served, application.state.settings = served, settings
    application.include_router(endpoints.router)
    application.include_router(pages.router)
    if agents:
        tools = agents.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=BODY_BYTES,
            # `Guards` checks the host, for every address alike.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        application.router.routes.extend(tools.routes)
    application.mount("/static", LastingFiles(directory=STATIC), name="static")
    _add_refusals(application)
    application.openapi = lambda: _described(application)  # type: ignore[method-assign]
    # The last one added is the outermost: what is observed includes what guards and limits refuse.
    application.add_middleware(RequestLimits, settings=settings)
    application.add_middleware(Guards, settings=settings)
    application.add_middleware(Observing, served=served)
    return application


class LastingFiles(StaticFiles):
    """Files that browsers may keep: pages link to them with a version in the query."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


# ---------------------------------------------------------------------- refusals


def _add_refusals(application: FastAPI) -> None:
    async def told(request: Request, error: Exception) -> Response:
        problem = problem_of(error, request.url.path)
        return problem_page(request, problem) if wants_a_page(request.scope) else response_to(problem)

    for kind in (HttpProblem, HTTPException, RequestValidationError, TimeoutError):
        application.add_exception_handler(kind, told)


def problem_of(error: Exception, path: str) -> HttpProblem:
    """Any failure on the way through the application as a problem."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, RefusedBody):
        return error.problem
    if isinstance(error, RequestValidationError):
        return invalid(_faults(error.errors()))
    if isinstance(error, HTTPException):
        more = " GET /v1 lists what there is." if is_for_programs(path) else ""
        known = {404: f"there is nothing at this address.{more}", 405: f"this address does not know the method.{more}"}
        return HttpProblem(error.status_code, known.get(error.status_code, error.detail), headers=error.headers)
    return HttpProblem(503, "there was no answer in time.", headers={"Retry-After": "2"})


def response_to(problem: HttpProblem) -> Response:
    """A problem as the client gets it."""
    return Response(problem.body(), problem.status, dict(problem.headers), MEDIA_TYPE)


def _faults(found: Sequence[Any]) -> list[Fault]:
    """One fault per place: a value that may be of several types is reported once, not once per type."""
    together: dict[tuple[str | None, str | None], list[Fault]] = {}
    for fault in map(_fault, found):
        together.setdefault((fault.pointer, fault.parameter), []).append(fault)
    return [
        Fault("; or: ".join(fault.detail for fault in group), pointer, parameter)
        for (pointer, parameter), group in together.items()
    ]


_WORDS = {
    "missing": "this is missing",
    "extra_forbidden": "this field is not known here",
    "model_attributes_type": "this must be an object of fields and values",
    "too_short": "this must have at least {min_length} of them",
    "too_long": "at most {max_length} are taken, and these are {actual_length}",
}
"""What pydantic finds most often, in words for people who do not know pydantic."""


def _fault(found: Any) -> Fault:
    """One of pydantic's findings: what it is and where, never what was sent."""
    place, *path = found["loc"]
    own = _WORDS.get(found["type"])
    detail = str(found["msg"]).removeprefix("Value error, ") if own is None else own.format(**found.get("ctx", {}))
    if place != "body":
        return Fault(detail, parameter=str(path[0]) if path else str(place))
    steps = [str(step) for step in path if step not in ("one", "many") and not _is_type_tag(step)]
    pointer = "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')[:100]}" for step in steps)
    return Fault(detail, pointer)


def _is_type_tag(step: Any) -> bool:
    """pydantic names the branch of a union it tried, which is no field of the body."""
    return isinstance(step, str) and (step in ("str", "int", "float") or "[" in step or "constrained" in step)


def _described(application: FastAPI) -> dict[str, Any]:
    if application.openapi_schema is None:
        found = get_openapi(
            title=application.title,
            version=application.version,
            description=application.description,
            routes=application.routes,
        )
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas["ProblemModel"] = answer_schemas.ProblemModel.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        for name, inner in schemas["ProblemModel"].pop("$defs", {}).items():
            schemas[name] = inner
        # FastAPI documents refusals of its own shape; ours are problems.
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for name in schemas.keys() & answer_schemas.EXAMPLES.keys():
            schemas[name]["examples"] = answer_schemas.EXAMPLES[name]
        application.openapi_schema = found
    return application.openapi_schema


# Counts and logs every request: method, path pattern, status, time. What was asked stays out of the log.

LOG = logging.getLogger("hynt.service")


class Observing:
    """ASGI middleware, the outermost: it also turns unforeseen errors into problems."""

    def __init__(self, app: ASGIApp, served: ServedRun) -> None:
        self.app, self.served, self.log_questions = app, served, served.settings.log_questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":  # answered like GET; the connection leaves the body out
            scope = {**scope, "method": "GET"}
        began, status = time.perf_counter(), 0
        asked = bytearray()

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.served.draining:  # so that a client with more to ask opens a connection elsewhere
                    message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        async def receive_seen() -> Message:
            message = await receive()
            if self.log_questions:
                asked.extend(message.get("body", b""))
            return message

        try:
            await self.app(scope, receive_seen, send_seen)
        except Exception as error:
            LOG.error("%s %s met a bug in hynt: %s", method, _pattern(scope), code_place(error))
            if status:
                raise
            bug = HttpProblem(500, "this is a bug in hynt; its log says more.")
            await send_problem(bug, scope, send_seen, close=True, more=HEADERS)
        finally:
            seconds = time.perf_counter() - began
            path = _pattern(scope)
            self.served.metrics.requests.labels(path, str(status or 499)).inc()
            self.served.metrics.seconds.observe(seconds)
            question = f" {bytes(asked[:2000])!r} ?{scope['query_string']!r}" if self.log_questions else ""
            LOG.info("%s %s %d %.1f ms%s", method[:10], path, status or 499, 1000 * seconds, question)


def _pattern(scope: Scope) -> str:
    """The path as the application wrote it, so that neither labels nor logs hold what a client made up."""
    route = scope.get("route")
    path: str = getattr(route, "path", "").replace(":path}", "}")
    return path or ("/static" if scope["path"].startswith("/static/") else "other")


# Limits that hold before anything is parsed: the length of an address, the size and pace of a body.
#
# A body is read to its end here, with its bytes counted, whether its length was announced or not. While the answer is
# being made the connection is watched: a client that hangs up takes its question out of the queue.


class RequestLimits:
    """ASGI middleware that limits the size of a request and the time it may take."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            _check_head(scope)
            body = await self._body(scope, receive)
        except HttpProblem as problem:
            await send_problem(problem, scope, send, close=True)
            return
        if body is not None:
            await self._answered(scope, receive, send, body)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None where the client hung up."""
        announced = _announced(scope)
        if announced > BODY_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.body_within):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > BODY_BYTES:
                        raise _too_large()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise HttpProblem(408, f"the body did not arrive within {self.settings.body_within:g} s.") from None

    async def _answered(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        given, gone = False, asyncio.Event()

        async def receive_again() -> Message:
            nonlocal given
            if given:
                await gone.wait()
                return {"type": "http.disconnect"}
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        work, watch = asyncio.ensure_future(self.app(scope, receive_again, send)), asyncio.ensure_future(hung_up())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()  # a failure goes on to whoever tells it
        finally:
            for task in (work, watch):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await task


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 19 else BODY_BYTES + 1
    return 0


def _check_head(scope: Scope) -> None:
    if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > TARGET_BYTES:
        raise HttpProblem(414, f"the address is longer than {TARGET_BYTES:,} bytes.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
        raise HttpProblem(431, f"the headers are longer than {HEADER_BYTES:,} bytes.")
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
        raise HttpProblem(400, "the length of the body is given twice: Content-Length and Transfer-Encoding.")


def _too_large() -> HttpProblem:
    return HttpProblem(413, f"the body is larger than {BODY_BYTES:,} bytes.")
