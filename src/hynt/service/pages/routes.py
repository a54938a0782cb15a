"""The pages: search, relations, ask, trends, doubtful facts, about. Rendered here, so that they work without scripts;
scripts only make them quicker to use. Each page asks the same served run as the JSON endpoints do.
"""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from hynt.errors import HyntError
from hynt.graph.lookup import EntityPosition
from hynt.runs.journal import Journal
from hynt.runs.place import name_in_commands
from hynt.service.http.problems import HttpProblem
from hynt.service.pages.answers import answered, refusal, told
from hynt.service.pages.doubtful import KINDS, PAGE, Doubtful, audit_path, why
from hynt.service.pages.overview import (
    described,
    figures,
    measured_of,
    pattern_of,
    quality_of,
    relation_chart,
    sections_of,
    validated_of,
)
from hynt.service.pages.programmers import endpoints_of, snippets
from hynt.service.pages.programmers import router as taking_router
from hynt.service.pages.questions import TOPS, AskedForm, address, beginnings, changed
from hynt.service.pages.rendering import page, problem_page, stylesheet
from hynt.service.pages.trends import TrendForm, explained_fault, panels, together
from hynt.service.served_run import ServedRun, served_by
from hynt.service.settings import TEXT

FOUND = 20
FACTS, GROUPS, FEW = 50, 30, 4
"""Facts of one relation a page; relations a page, and facts of each."""
ALIKE, MISSING = 8, 6
PATIENCE = 1.0
"""Seconds that facts wait for what the model adds to them."""

TextQuery = Annotated[str, Query(max_length=TEXT)]
Offset = Annotated[int, Query(ge=0, le=10**9)]

router = APIRouter(include_in_schema=False)
router.include_router(taking_router)


async def _beginnings(request: Request) -> dict[str, Any]:
    """Made once for each service, away from the loop that answers everybody."""
    state, served = request.app.state, served_by(request)
    best = tuple(served.engine.state.examples)  # known once the model is loaded
    if getattr(state, "beginnings_of", None) != best:
        state.beginnings = await asyncio.to_thread(beginnings, served.graph, best)
        state.beginnings_of = best
    found: dict[str, Any] = state.beginnings
    return found


@router.get("/style.css")
async def style() -> Response:
    """What all pages look like; its address has a digest of it, so browsers may keep it."""
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(stylesheet(), media_type="text/css; charset=utf-8", headers=headers)


@router.get("/state")
async def state(request: Request) -> JSONResponse:
    """For pages that wait until the model is loaded."""
    now = served_by(request).engine.state
    return JSONResponse({"ready": now.ready, "reason": now.reason})


@router.get("/suggested")
async def suggested(
    request: Request,
    wanted: Literal["head", "relation", "tail", "qualifier", "value"],
    head: TextQuery = "",
    relation: TextQuery = "",
    numbers: bool = False,
) -> JSONResponse:
    """For fields that have the focus and nothing in them yet."""
    return JSONResponse(await served_by(request).suggested(wanted, head.strip(), relation.strip(), numbers=numbers))


@router.get("/")
async def home(request: Request, query: TextQuery = "") -> Response:
    """Search, or what to begin with."""
    if not query.strip():
        return page(request, "home.html", about=await served_by(request).about(), **await _beginnings(request))
    found = await served_by(request).entities(query.strip(), FOUND)
    relations = (await served_by(request).relations(query.strip(), None, 0, FEW))["relations"]
    return page(
        request, "search.html", found=found, relations=relations, header_query=query, **await _beginnings(request)
    )


@router.get("/entity")
async def entity(
    request: Request,
    id: TextQuery = "",  # noqa: A002
    offset: Offset = 0,
    position: EntityPosition | None = None,
    relation: TextQuery = "",
    words: TextQuery = "",
) -> Response:
    """The page of an entity: its facts in words, those of telling relations first, and where to go from them."""
    if not id:
        return RedirectResponse("/", 303)
    served, words = served_by(request), words.strip()
    limit = FACTS if relation else GROUPS
    narrowed = {"position": position, "relation": relation.strip(), "words": words}
    try:
        found = await served.entity_by_relation(id, **narrowed, offset=offset, limit=limit, few=FEW)
    except HttpProblem as problem:
        return _unknown(request, problem, id)
    own = found["entity"]["id"]

    def at(offset: int, position: str | None, relation: str = relation) -> str:
        given = [("id", own), ("position", position), ("relation", relation), ("words", words)]
        return address("/entity", [*given, ("offset", offset or None)])

    whole = position is None and not (relation or words or offset)
    return page(
        request,
        "entity.html",
        found=found,
        written=served.views.name_to_write(own),
        sections=sections_of(found["groups"], own),
        position=position,
        relation=relation,
        words=words,
        offset=offset,
        limit=limit,
        at=at,
        alike=await _alike(served, own) if whole else [],
        wrong=await _wrong(request, own) if whole else [],
        whole=whole,
    )


def _unknown(request: Request, problem: HttpProblem, name: str) -> Response:
    """A name that is unknown or ambiguous: each likely meaning links to the page that was asked for."""
    where, fault = request.url.path, problem.faults[0]
    is_relation = where == "/relation"
    told = refusal(fault)
    near = [one | {"address": address(where, [("id", one["value"])])} for one in told["near"]]
    unknown = "No relation is called that" if is_relation else "Nothing is known by that name"
    title = "Several are called that" if fault.namesakes else unknown
    detail = fault.detail if near else f"{fault.detail} {fault.advice}"  # names to choose from say it better
    query = {} if is_relation else {"header_query": name}
    return problem_page(request, problem, **told | {"title": title, "detail": detail, "near": near} | query)


async def _wrong(request: Request, entity: str) -> list[dict[str, Any]]:
    """Facts of an entity that look wrong; none where there is no audit, or none that can be read."""
    try:
        audit = await _audit(request)
    except HyntError:
        return []  # the page of doubtful facts says what is wrong with it
    found = [] if audit is None else await asyncio.to_thread(audit.about, entity)
    return [row | await served_by(request).judged_fact(row) for row in found]


@router.get("/fact")
async def fact(request: Request, split: TextQuery, row: Offset) -> Response:
    """Leads to a fact where it stands on the page of its head."""
    found = await served_by(request).fact_place(split, row)
    if found is None:
        return problem_page(request, HttpProblem(404, "the graph has no such fact."))
    given = [("id", found["head"]["id"]), ("position", "head"), ("relation", found["relation"]["id"])]
    where = address("/entity", [*given, ("offset", found["place"] // FACTS * FACTS or None)])
    return RedirectResponse(f"{where}#{split}-{row}", 303)


@router.get("/neighbourhood")
async def neighbourhood(request: Request, id: TextQuery = "", narrow: bool = False) -> Response:  # noqa: A002
    """Facts around an entity, drawn: each entity of the drawing leads to its own neighbourhood."""

    def leads(one: str) -> str:
        return address("/neighbourhood", [("id", one), ("narrow", 1 if narrow else "")])

    try:
        found = await served_by(request).neighbourhood(id, leads, narrow=narrow)
    except HttpProblem as problem:
        return _unknown(request, problem, id)
    return page(request, "neighbourhood.html", found=found)


@router.get("/missing")
async def missing(request: Request, id: TextQuery = "") -> Response:  # noqa: A002
    """Facts that the graph probably lacks about an entity; the page of the entity takes its part from here."""
    try:
        found = await served_by(request).propose(id, MISSING)
    except HttpProblem as problem:
        return _unknown(request, problem, id) if problem.status == 422 else problem_page(request, problem)
    return page(request, "missing.html", found=found)


@router.get("/relations")
async def relations(request: Request, query: TextQuery = "", offset: Offset = 0) -> Response:
    """All relations, those with the most facts first."""
    found = await served_by(request).relations(query.strip(), None, offset, FACTS)
    return page(
        request,
        "relations.html",
        found=found,
        query=query.strip(),
        offset=offset,
        limit=FACTS,
        at=lambda offset, query: address("/relations", [("query", query), ("offset", offset or None)]),
    )


@router.get("/relation")
async def relation(request: Request, id: TextQuery = "") -> Response:  # noqa: A002
    """The page of a relation: what it holds, what usually stands beside it, and how well it is predicted."""
    if not id:
        return RedirectResponse("/relations", 303)
    served = served_by(request)
    try:
        found = await served.relation_in_use(id)
    except HttpProblem as problem:
        return _unknown(request, problem, id)
    measured, _ = await asyncio.to_thread(measured_of, served.settings.run)
    return page(
        request,
        "relation.html",
        found=found,
        pattern=pattern_of(found) if found["facts"] else "",
        chart=relation_chart(found),
        quality=quality_of(measured, found["id"]),
        examples=[
            {"text": fact["text"], "address": AskedForm.of(fact).with_blank("tail").address}
            for fact in found["examples"]
        ],
    )


async def _alike(served: ServedRun, entity: str) -> list[dict[str, Any]]:
    """Entities that the model sees as most alike; none where it is not there, too busy, or keeps no vectors."""
    if not served.engine.state.ready:
        return []
    try:
        async with asyncio.timeout(PATIENCE):
            found: list[dict[str, Any]] = (await served.similar(entity, ALIKE))["similar"]
            return found
    except (HttpProblem, TimeoutError):
        return []


@router.get("/ask")
async def ask(request: Request) -> Response:
    """Build a fact with a blank, and see the answers."""
    given = request.query_params.multi_items()
    form = AskedForm.read(given).named(served_by(request).views.name_to_write)
    new = changed(form, request.query_params)
    if new is not None:
        return RedirectResponse(new.address, 303)
    result = await answered(served_by(request), form)
    failed = result.get("problem")
    status = failed.status if failed is not None else 200
    wrong = {fault["place"]: fault for fault in result.get("faults", ())}
    return page(
        request,
        "ask.html",
        status,
        form=form,
        result=result,
        told=told(result),
        wrong=wrong,
        tops=TOPS,
        take=snippets(_base(request), "predict", form.filled.question),
        **await _beginnings(request),
    )


@router.get("/trends")
async def trends(request: Request) -> Response:
    """A number of one or several heads over time."""
    served = served_by(request)
    form = TrendForm.read(request.query_params.multi_items()).named(served.views.name_to_write)
    content: dict[str, Any] = {
        "asked": form,
        "panels": [],
        "found": None,
        "faults": [],
        "wrong": {},
        "left_out": form.left_out,
        "missing": form.missing,
        **await _beginnings(request),
    }
    if not form.is_whole:
        return page(request, "trends.html", **content)
    try:
        found = await served.trends(form.asked)
    except HttpProblem as problem:
        if problem.status != 422:
            return problem_page(request, problem)
        faults = [await explained_fault(served, form, fault) for fault in problem.faults]
        wrong = {fault["place"]: fault for fault in faults}
        return page(request, "trends.html", **{**content, "faults": faults, "wrong": wrong})
    drawn = {"found": found, "panels": panels(found), "together": together(found)}
    take = snippets(_base(request), "trends", form.asked)
    return page(request, "trends.html", **{**content, **drawn, "take": take})


@router.get("/bulk")
async def bulk(request: Request) -> Response:
    """Many questions from a file, which the browser reads and asks in batches. The example is from the graph."""
    begun = (await _beginnings(request))["questions"]
    form = AskedForm.read(parse_qsl(urlsplit(begun[0]["address"]).query) if begun else [("tail", "?")])
    asked = form.named(served_by(request).views.name_to_write).question
    line = {key: asked[key] for key in ("head", "relation", "tail")}
    if asked["qualifiers"]:
        line["qualifiers"] = {one["relation"]: one["value"] for one in asked["qualifiers"]}
    return page(request, "bulk.html", line=json.dumps(line, ensure_ascii=False))


def _base(request: Request) -> str:
    """The address of the service, as this browser calls it."""
    return str(request.base_url).rstrip("/")


@router.get("/doubtful")
async def doubtful(request: Request, kind: TextQuery = "", offset: Offset = 0) -> Response:
    """Facts that an audit found doubtful, if there is one of the run."""
    run, chosen = name_in_commands(served_by(request).settings.run), kind if kind in KINDS else None
    try:
        audit = await _audit(request)
        found = None if audit is None else await asyncio.to_thread(audit.page, chosen, offset)
        for row in [] if found is None else found.rows:
            row |= await served_by(request).judged_fact(row)
            row["why"] = why(row, row["part"])
    except HyntError as problem:
        return problem_page(request, HttpProblem(500, problem.sentences))
    return page(
        request,
        "doubtful.html",
        found=found,
        run=run,
        trains=not served_by(request).engine.state.follows,
        kinds=KINDS,
        kind=chosen or "",
        offset=offset,
        limit=PAGE,
        at=lambda offset, kind: address("/doubtful", [("kind", kind), ("offset", offset or None)]),
    )


async def _audit(request: Request) -> Doubtful | None:
    """What an audit found, read once; None where there is no audit of the run."""
    settings, state = served_by(request).settings, request.app.state
    path = audit_path(settings.run, settings.audit)
    if path is not None and not hasattr(state, "doubtful"):
        state.doubtful = await asyncio.to_thread(Doubtful, path)
    return None if path is None else state.doubtful


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Every endpoint, with a form to try it."""
    described = await asyncio.to_thread(request.app.openapi)
    groups = endpoints_of(described, await _beginnings(request), served_by(request).views.name_to_write)
    question = next(one["body"] for group in groups for one in group["endpoints"] if one["path"] == "/v1/predict")
    (_, python), _ = snippets(_base(request), "predict", json.loads(question))
    return page(request, "docs.html", groups=groups, python=python)


@router.get("/about")
async def about(request: Request) -> Response:
    """The run's figures and how they were measured."""
    served = served_by(request)
    measured, why = await asyncio.to_thread(measured_of, served.settings.run)
    validated = await asyncio.to_thread(validated_of, served.settings.run) if measured is None else None
    told = await served.about()
    return page(
        request,
        "about.html",
        about=told,
        described=described(told, (await asyncio.to_thread(Journal(served.settings.run).versions))[: served.version]),
        why=why,
        run=name_in_commands(served.settings.run),
        validated=validated,
        figures=figures(measured) if measured is not None else None,
    )
