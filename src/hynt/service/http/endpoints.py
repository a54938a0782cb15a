"""The JSON endpoints: each says what it takes and gives, and leaves the rest to the served run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.routing import APIRoute

from hynt import __version__
from hynt.asking.graph_updates import GivenChange
from hynt.graph.lookup import EntityPosition
from hynt.service.http import answer_schemas, schemas
from hynt.service.http.metrics import MEDIA_TYPE as METRICS_TYPE
from hynt.service.http.problems import MEDIA_TYPE as PROBLEM_TYPE
from hynt.service.http.problems import VERSION, HttpProblem, unavailable
from hynt.service.http.schemas import StrictRoute
from hynt.service.served_run import ServedRun, served_by
from hynt.service.settings import PAGE, TEXT, TOP

_WORDS = {
    400: "The request cannot be read.",
    401: "A bearer token is required.",
    403: "The service was not started with `--accept-updates`.",
    404: "There is nothing of that name.",
    408: "The request came too slowly.",
    409: "The model learned a vector per entity, and cannot follow its graph.",
    413: "The body is larger than 64 KiB.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    431: "The headers are too long.",
    421: "The Host header names another machine.",
    422: "A field is wrong; `errors` says which.",
    429: "The queue is full; `Retry-After` says when to try again.",
    503: "The model is not loaded, or too busy.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How an endpoint may refuse, for the description."""
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}}
    return {
        status: {"description": _WORDS[status], "content": content} for status in (*statuses, 400, 401, 414, 421, 431)
    }


def served_listing(request: Request, response: Response) -> ServedRun:
    """The served run, for an answer that comes from the graph and not from the model."""
    served = served_by(request)
    response.headers[VERSION] = str(served.version)
    return served


Answer = TypeVar("Answer", bound=Callable[..., Any])
Served = Annotated[ServedRun, Depends(served_by)]
ServedListing = Annotated[ServedRun, Depends(served_listing)]
Top = Annotated[int, Query(ge=1, le=TOP)]
Limit = Annotated[int, Query(ge=1, le=PAGE)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Name = Annotated[str, Query(min_length=1, max_length=TEXT, examples=["Japan"])]
Typed = Annotated[str, Query(max_length=TEXT, examples=["jap"])]

EntityPath = Annotated[str, Path(examples=["Japan", "country/Japan"])]
RelationPath = Annotated[str, Path(examples=["population"])]

router = APIRouter(route_class=StrictRoute)

ASKED = (408, 413, 415, 422, 429, 503)
CHANGED = (403, 408, 409, 413, 415, 422, 503)


def endpoint(request: str, tag: str, summary: str, model: Any, *refused: int) -> Callable[[Answer], Answer]:
    """`GET /v1/…` and the like, as the description lists it; `refused` are the statuses of its own refusals."""
    method, path = request.split()
    return router.api_route(
        path, methods=[method], tags=[tag], summary=summary, response_model=model, responses=refusals(*refused)
    )


def _json(body: bytes, version: int | None = None) -> Response:
    headers = {} if version is None else {VERSION: str(version)}
    return Response(body, media_type="application/json", headers=headers)


async def _one(served: ServedRun, kind: str, job: dict[str, Any]) -> Response:
    found = await served.asked(kind, [job])
    return _json(found[0], found.version)


@endpoint(
    "POST /v1/predict",
    "asking",
    "Ask for the missing component of a fact, or of several",
    answer_schemas.AnswersModel | answer_schemas.ResultsModel,
    *ASKED,
)
async def predict(served: Served, asked: schemas.OneOrMany) -> Response:
    """One question gives its answers; `{"questions": […]}` gives `{"results": […]}` in the same order."""
    if isinstance(asked, schemas.Question):
        return await _one(served, "predict", asked.model_dump())
    found = await served.asked("predict", [question.model_dump() for question in asked.questions], "questions")
    return _json(b'{"results": [' + b", ".join(found) + b"]}", found.version)


@endpoint("POST /v1/facts", "graph", "Add facts, without training again", answer_schemas.UpdateModel, *CHANGED)
async def add_facts(served: Served, given: schemas.GivenFacts) -> dict[str, Any]:
    """They are on disk and listed at once; `Hynt-Version` of later answers says when the model counts them."""
    source = given.source or "the service"
    change = GivenChange(facts=given.tuples(), skip_known=given.skip_known, source=source, key=given.key)
    return await served.update(change)


@endpoint("DELETE /v1/facts", "graph", "Take facts away", answer_schemas.UpdateModel, *CHANGED)
async def remove_facts(served: Served, given: schemas.GivenFacts) -> dict[str, Any]:
    """Written as the graph has them; one that is not there is refused, and nothing is changed."""
    return await served.update(GivenChange(remove=given.tuples(), source=given.source or "the service", key=given.key))


@endpoint("POST /v1/explain", "asking", "What mattered to an answer", answer_schemas.ExplanationModel, *ASKED)
async def explain(served: Served, asked: schemas.ExplainedQuestion) -> Response:
    """Each part of the question is taken away in turn, and the answers are compared."""
    return await _one(served, "explain", asked.model_dump())


@endpoint("POST /v1/trends", "asking", "How a number moves over time", answer_schemas.TrendModel, *ASKED)
async def trends(served: Served, asked: schemas.TrendQuestion) -> Response:
    """The run's answers along an axis, with intervals, beside the values that the graph knows."""
    return await _one(served, "trends", asked.model_dump())


@endpoint(
    "GET /v1/similar", "asking", "Entities that the run sees as most alike", answer_schemas.SimilarModel, 422, 429, 503
)
async def similar(served: Served, entity: Name, top: Top = 10) -> Response:
    """By the cosine of the angle between the vectors that the model has learned."""
    return await _about_entity(served, "similar", entity, top)


@endpoint(
    "GET /v1/proposals",
    "asking",
    "Facts that the graph lacks about an entity",
    answer_schemas.ProposalsModel,
    422,
    429,
    503,
)
async def proposals(served: Served, entity: Name, top: Top = 10) -> Response:
    """Those with relations that most of its peers have, at least as probable as not, most probable first."""
    return await _about_entity(served, "propose", entity, top)


async def _about_entity(served: ServedRun, kind: str, entity: str, top: int) -> Response:
    try:
        return await _one(served, kind, {"entity": entity, "top": top})
    except HttpProblem as problem:
        faults = [
            replace(fault, pointer=None, parameter="entity" if fault.pointer else None) for fault in problem.faults
        ]
        raise HttpProblem(problem.status, problem.detail, faults, problem.headers) from None


@endpoint("GET /v1/entities", "graph", "Find entities by name", answer_schemas.EntitiesModel, 422)
async def entities(served: ServedListing, query: Typed = "", limit: Limit = 10) -> dict[str, Any]:
    """Names that begin so, words that begin so, then names spelled alike; the id as written always comes first."""
    return await served.entities(query, limit)


@endpoint(
    "GET /v1/entities/{identity:path}", "graph", "An entity and its facts", answer_schemas.EntityFactsModel, 404, 422
)
async def entity(
    served: ServedListing,
    identity: EntityPath,
    offset: Offset = 0,
    limit: Limit = 50,
    position: EntityPosition | None = None,
) -> dict[str, Any]:
    """By id or name; facts as head, then as tail, then as the value of a qualifier."""
    return await served.entity(identity, offset, limit, position)


@endpoint("GET /v1/relations", "graph", "The relations of the graph", answer_schemas.RelationsModel, 422)
async def relations(
    served: ServedListing,
    query: Typed = "",
    kind: Literal["entity", "number"] | None = None,
    offset: Offset = 0,
    limit: Limit = PAGE,
) -> dict[str, Any]:
    """Those with the most facts first."""
    return await served.relations(query, kind, offset, limit)


@endpoint(
    "GET /v1/relations/{identity:path}",
    "graph",
    "A relation and the distribution of its numbers",
    answer_schemas.RelationNumbersModel,
    404,
    422,
)
async def relation(served: ServedListing, identity: RelationPath) -> dict[str, Any]:
    """The relation is given by its id or its name."""
    return await served.relation(identity)


@router.get("/v1/", include_in_schema=False)
@endpoint("GET /v1", "operation", "What there is to ask", answer_schemas.IndexModel)
async def index(served: Served) -> dict[str, Any]:
    """Every endpoint in a line; `description` leads to their schemas and examples."""
    listed = [
        {"method": method, "path": route.path.replace("{identity:path}", "{id}"), "summary": route.summary}
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    ]
    return {"hynt": __version__, "graph": served.graph.name, "description": "/openapi.json", "endpoints": listed}


@router.get("/health", tags=["operation"], summary="Alive", response_model=answer_schemas.HealthModel)
async def health() -> Response:
    """Answers as long as the HTTP process does; needs no token."""
    return _json(b'{"alive": true}')


@endpoint("GET /ready", "operation", "Whether the model is loaded", answer_schemas.ReadyModel, 503)
async def ready(served: Served) -> dict[str, Any]:
    """503 with the reason while the model is loaded, loaded again, or the service is stopping; needs no token."""
    state = served.engine.state
    if served.draining or not state.ready:
        reason = "the service is stopping" if served.draining else state.reason
        raise unavailable(f"not ready: {reason} (restarts so far: {state.restarts}).", 2)
    return {"ready": True, "reason": "", "restarts": state.restarts}


@router.get(
    "/metrics",
    tags=["operation"],
    summary="Counts and times for Prometheus",
    response_class=Response,
    responses={**refusals(), 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(served: Served) -> Response:
    """All counters and histograms in Prometheus' text format."""
    return Response(served.metrics.text(), media_type=METRICS_TYPE)
