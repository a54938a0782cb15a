"""The ASGI application: endpoints, pages, static files, and around them what every request passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from hynt import __version__
from hynt.service.front import Front
from hynt.service.http import answer_schemas, endpoints
from hynt.service.http.guards import Guards
from hynt.service.http.limits import Limits
from hynt.service.http.observing import Observing
from hynt.service.http.problems import MEDIA_TYPE, Fault, Problem, invalid
from hynt.service.http.refusals import is_for_programs, wants_a_page
from hynt.service.http.strict_json import Refused
from hynt.service.pages import routes as pages
from hynt.service.pages.rendering import problem_page
from hynt.service.settings import ServiceSettings

STATIC = Path(__file__).parents[1] / "pages" / "static"
_ABOUT = """Ask a trained run for the missing component of a fact.

Every failure is an RFC 9457 problem; `errors` names the field at fault by a JSON pointer or a parameter."""


def create_application(front: Front, settings: ServiceSettings) -> FastAPI:
    """The whole service; starting and stopping the front belongs to it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await front.start()
        try:
            yield
        finally:
            await front.stop()

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
    application.state.front, application.state.settings = front, settings
    application.include_router(endpoints.router)
    application.include_router(pages.router)
    application.mount("/static", LastingFiles(directory=STATIC), name="static")
    _add_refusals(application)
    application.openapi = lambda: _described(application)  # type: ignore[method-assign]
    # The last one added is the outermost: what is observed includes what guards and limits refuse.
    application.add_middleware(Limits, settings=settings)
    application.add_middleware(Guards, settings=settings)
    application.add_middleware(Observing, front=front)
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

    for kind in (Problem, HTTPException, RequestValidationError, TimeoutError):
        application.add_exception_handler(kind, told)


def problem_of(error: Exception, path: str) -> Problem:
    """Any failure on the way through the application as a problem."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, RequestValidationError):
        return invalid(_faults(error.errors()))
    if isinstance(error, HTTPException):
        more = " GET /v1 lists what there is." if is_for_programs(path) else ""
        known = {404: f"there is nothing at this address.{more}", 405: f"this address does not know the method.{more}"}
        return Problem(error.status_code, known.get(error.status_code, error.detail), headers=error.headers)
    return Problem(503, "there was no answer in time.", headers={"Retry-After": "2"})


def response_to(problem: Problem) -> Response:
    """A problem as the client gets it."""
    return Response(problem.body(), problem.status, dict(problem.headers), MEDIA_TYPE)


def _faults(found: Sequence[Any]) -> list[Fault]:
    """One for each place: what may be of several types is told once, not once for each of them."""
    together: dict[tuple[str | None, str | None], list[Fault]] = {}
    for fault in map(_fault, found):
        together.setdefault((fault.pointer, fault.parameter), []).append(fault)
    return [
        Fault("; or: ".join(fault.detail for fault in group), pointer, parameter)
        for (pointer, parameter), group in together.items()
    ]


def _fault(found: Any) -> Fault:
    """One of pydantic's findings: its words and where it is, never what was sent."""
    place, *path = found["loc"]
    detail = str(found["msg"]).removeprefix("Value error, ")
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
        for name, schema in schemas.items():  # FastAPI drops every null, of examples too
            model = getattr(answer_schemas, name, None)
            if model is not None and "examples" in schema:
                schema["examples"] = model.model_config["json_schema_extra"]["examples"]
        application.openapi_schema = found
    return application.openapi_schema
